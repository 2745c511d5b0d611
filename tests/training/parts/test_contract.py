"""What is asked of a part, and what is done with it before and after it is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from torch import nn

from reticent.core.errors import InvalidInput
from reticent.published import PublishedObfuscator
from reticent.training.parts import BetaVAE, Identity, LabelAware, NoiseAware
from reticent.training.parts.contract import (
    fitted,
    needs_labels,
    network_of,
    resolved,
    trains_for_release,
)
from reticent.training.progress import silent

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
NAMES = {"ours": NoiseAware, "plain": PublishedObfuscator}


class Drawn(BaseEstimator):
    """A random linear layer, from torch's generator and from a seed of its own."""

    def __init__(self, outputs: int = 2, random_state: int | None = None) -> None:
        self.outputs = outputs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Drawn:
        self.layer_ = nn.Linear(X.shape[1], self.outputs)
        self.number_ = np.random.RandomState(self.random_state).randint(2**30)
        self.labels_ = y
        return self

    def network(self) -> nn.Module:
        return self.layer_


class Nested(Drawn):
    """One with a part of its own."""

    def __init__(self, inner: Drawn, random_state: int | None = None) -> None:
        super().__init__(random_state=random_state)
        self.inner = inner


class Greedy(BaseEstimator):
    """Breaks the contract: its constructor does not store what it is given."""

    def __init__(self, size: int = 1) -> None:
        self.size = [size]

    def fit(self, X: Any, y: Any) -> Greedy:
        return self

    def network(self) -> nn.Module:
        return nn.Linear(1, 1)


def fit(part: Any, seed: int = 5, release: Any = None) -> Any:
    return fitted(part, X, Y, seed=seed, release=release, report=silent)


def test_an_argument_becomes_a_part_of_its_own() -> None:
    assert type(resolved("plain", parameter="obfuscator", names=NAMES)) is PublishedObfuscator
    mine = Drawn(outputs=4)
    found = resolved(mine, parameter="obfuscator", names=NAMES)
    assert found is not mine
    assert found.get_params() == mine.get_params()
    module = nn.Linear(3, 2)
    trained = resolved(module, parameter="obfuscator", names=NAMES)
    assert network_of(fit(trained), parameter="obfuscator") is module


@pytest.mark.parametrize(
    "given",
    ["best", 3, NoiseAware, BaseEstimator(), Greedy(), NoiseAware(first_noise=2.0)],
)
def test_what_is_no_part_or_has_no_sense_is_refused_before_anything_is_trained(given: Any) -> None:
    with pytest.raises(InvalidInput):
        resolved(given, parameter="obfuscator", names=NAMES)


def test_a_fit_leaves_the_callers_instance_alone_and_repeats() -> None:
    mine = Drawn()
    first, second, other = fit(mine), fit(mine), fit(mine, seed=6)
    assert not hasattr(mine, "layer_")
    assert mine.random_state is None
    assert torch.equal(first.layer_.weight, second.layer_.weight)
    assert not torch.equal(first.layer_.weight, other.layer_.weight)
    assert first.number_ == second.number_ != other.number_
    assert first.random_state == 5
    np.testing.assert_array_equal(first.labels_, Y)


def test_a_seed_of_its_own_stays_and_parts_of_parts_are_seeded() -> None:
    nested = fit(Nested(Drawn(), random_state=1))
    assert (nested.random_state, nested.inner.random_state) == (1, 5)


def test_only_a_part_that_asks_is_told_of_the_release() -> None:
    assert [trains_for_release(part) for part in (NoiseAware(), LabelAware())] == [True, True]
    assert not any(trains_for_release(part) for part in (Identity(), Drawn()))
    fit(Drawn(), release=object())  # would be an unexpected argument


class Supervised(Drawn):
    """Says by its tags that it needs labels."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def test_tags_say_whether_a_foreign_part_needs_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert needs_labels(Supervised())
    assert get_tags(NoiseAware()).target_tags.required
    assert not get_tags(BetaVAE()).target_tags.required
    # As in scikit-learn 1.5, which has another word for it.
    monkeypatch.delattr(BaseEstimator, "__sklearn_tags__")
    for needed in (True, False):
        tags = {"requires_y": needed}
        monkeypatch.setattr(Drawn, "_get_tags", lambda _, tags=tags: tags, raising=False)
        assert needs_labels(Drawn()) == needed
