"""Parts that somebody else wrote, through a whole fit, release, save and load; and what
scikit-learn does with parts.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from torch import nn

from reticent.core.errors import InvalidInput
from reticent.core.scopes import Scope
from reticent.ledger.ledger import Ledger
from reticent.lipschitz import IntervalBound
from reticent.networks import Network, from_torch
from reticent.systems import (
    BetaVAE,
    Calibration,
    PosthocClassifier,
    PosthocEncoder,
)

LABELS = np.arange(240) % 3
PICTURES = np.clip(
    np.random.default_rng(0).normal(0.3, 0.05, (240, 4, 6))
    + 0.4 * (np.arange(6) // 2 == LABELS[:, None])[:, None, :],
    0,
    1,
)
WORDS = np.array(["ape", "bee", "cat"])[LABELS]
TOTAL: dict[str, Any] = {"epsilon": 8.0, "delta": 0.0, "radius": 0.05, "random_state": 0}


class ColumnMeans(BaseEstimator):
    """Means of columns: an embedder of another package."""

    def __init__(self, width: int = 2) -> None:
        self.width = width

    def fit(self, X: Any, y: Any = None) -> ColumnMeans:
        self.shape_, self.labels_ = X.shape, y
        height, columns = X.shape[1:]
        layer = nn.Linear(height * columns, columns // self.width, bias=False)
        weight = torch.zeros(columns // self.width, height, columns)
        for place in range(columns // self.width):
            weight[place, :, place * self.width : (place + 1) * self.width] = 1
        with torch.no_grad():
            layer.weight.copy_(weight.flatten(1) / (height * self.width))
        self.module_ = nn.Sequential(nn.Flatten(), layer)
        return self

    def network(self) -> nn.Module:
        return self.module_


class ClassDirections(BaseEstimator):
    """Differences of class means: an obfuscator of another package, as a description."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, X: Any, y: Any) -> ClassDirections:
        means = np.stack([X[y == label].mean(axis=0) for label in np.unique(y)])
        layer = nn.Linear(X.shape[1], len(means) - 1)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(self.scale * (means[1:] - means[0])))
            layer.bias.zero_()
        self.rows_ = len(X)
        self.network_ = from_torch(layer, (X.shape[1],))
        return self

    def network(self) -> Network:
        return self.network_


def test_foreign_parts_from_picture_to_a_loaded_bundle(tmp_path: Path) -> None:
    embedder, obfuscator = ColumnMeans(), ClassDirections(scale=5.0)
    encoder = PosthocEncoder(**TOTAL, embedder=embedder, obfuscator=obfuscator)
    encoder.fit(PICTURES, WORDS)
    for mine, learned in ((embedder, "module_"), (obfuscator, "network_")):
        assert not hasattr(mine, learned)
    # An embedder sees the training part in its own shape, with classes for labels.
    assert encoder.embedder_.shape_ == (192, 4, 6)
    assert set(encoder.embedder_.labels_) == {0, 1, 2}
    assert encoder.obfuscator_.rows_ == 192
    # What is released is what the two parts say, on embeddings of float32.
    means = PICTURES.reshape(240, 4, 3, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(encoder.embed(PICTURES), means, atol=1e-6)
    expected = encoder.obfuscator_.network().forward(encoder.embed(PICTURES))
    np.testing.assert_array_equal(encoder.exact(PICTURES), expected)

    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        scope = Scope(subject="patients")
        cost = encoder.guarantee
        ledger.grant(scope, type(cost)(10 * cost.epsilon, 1e-9, cost.adjacency))
        answer = encoder.release(PICTURES[:10], ledger=ledger, scope=scope)
        assert answer.receipt.booked
    predicted = encoder.classes_[encoder.head_.predict(encoder.release(PICTURES).values)]
    assert (predicted == WORDS).mean() > 0.8

    folder = encoder.save(tmp_path / "bundle")
    for given in (None, ColumnMeans().fit(PICTURES), ColumnMeans().fit(PICTURES).network()):
        loaded = PosthocEncoder.load(folder, embedder=given)
        assert loaded.bundle_identity_ == encoder.bundle_identity_
        np.testing.assert_array_equal(
            loaded.simulate(PICTURES, seed=1).values, encoder.simulate(PICTURES, seed=1).values
        )


def test_an_embedder_that_is_trained_further_changes_no_fitted_system() -> None:
    part = BetaVAE(latent_dimension=2, epochs=1, width=8, random_state=0).fit(PICTURES)
    for embedder in (part.network(), nn.Sequential(nn.Flatten(), nn.Linear(24, 2))):
        encoder = PosthocEncoder(**TOTAL, embedder=embedder, obfuscator=nn.Linear(2, 1))
        before = encoder.fit(PICTURES).embed(PICTURES)
        with torch.no_grad():
            for weight in embedder.parameters():
                weight.mul_(2)
        np.testing.assert_array_equal(encoder.embed(PICTURES), before)


def test_foreign_parts_go_by_what_their_networks_are() -> None:
    class Wrong(ClassDirections):
        def network(self) -> Any:
            return from_torch(nn.Linear(7, 2), (7,))

    with pytest.raises(InvalidInput, match=r"expected a network of 3 inputs, .* got 7"):
        PosthocEncoder(**TOTAL, embedder=ColumnMeans(), obfuscator=Wrong()).fit(PICTURES, WORDS)
    with pytest.raises(InvalidInput, match="one logit for each of 3 labels of y, got 2"):
        PosthocClassifier(**TOTAL, embedder=ColumnMeans(), classifier=ClassDirections()).fit(
            PICTURES, WORDS
        )


class OwnBound(IntervalBound):
    """Intervals by another name: the bound of another package."""

    kind = "own"


def test_a_bound_of_ones_own_is_named_on_the_card_and_needed_to_load(tmp_path: Path) -> None:
    settings = {**TOTAL, "embedder": "identity", "obfuscator": nn.Linear(3, 2)}
    points = PICTURES.mean(axis=1)[:, ::2]
    encoder = PosthocEncoder(**settings, calibration=Calibration(certificate=OwnBound)).fit(points)
    assert encoder.query_.bound.kind == "own"
    assert "the user's own bound 'own' holds at every point" in encoder.card().to_markdown()
    by_class, by_name = (
        PosthocEncoder(**settings, calibration=Calibration(certificate=given)).fit(points)
        for given in (IntervalBound, "interval")
    )
    assert "own bound" not in by_class.card().to_markdown()
    assert by_class.bundle_identity_ == by_name.bundle_identity_
    folder = encoder.save(tmp_path / "own")
    loaded = PosthocEncoder.load(folder, certificate=OwnBound)
    assert loaded.bundle_identity_ == encoder.bundle_identity_
    with pytest.raises(InvalidInput, match="pass certificate=<its class>"):
        PosthocEncoder.load(folder)

    class Other(OwnBound):
        kind = "other"

    with pytest.raises(InvalidInput, match="by another bound than the Other"):
        PosthocEncoder.load(folder, certificate=Other)
