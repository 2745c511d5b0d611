"""A space is its map: equal maps share a budget, others do not, whatever they are called."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from reticent.core import Guarantee, Scope
from reticent.core.errors import CorruptBundle, IncompatibleGuarantees, InvalidInput
from reticent.core.regions import Box
from reticent.ledger import Ledger
from reticent.release import Bundle
from reticent.systems import (
    Calibration,
    LabelAware,
    Named,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
)
from reticent.systems.embedding import BetaVaeEmbedding, IdentityEmbedding, ModuleEmbedding
from reticent.systems.embedding.embedding import arrays_digest
from reticent.training.embedder import Embedder, EmbedderConfig

BOX = Box.cube(2, 3.0)


def scaling(factor: float) -> nn.Sequential:
    module = nn.Sequential(nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        module[0].weight.copy_(factor * torch.eye(2))
    return module


def blobs() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 300)
    return random.normal(size=(300, 2)) + 3.0 * labels[:, None], labels


SMALL: dict[str, Any] = {"delta": 0.0, "radius": 0.5}
TRAINING: dict[str, Any] = {"hidden": (4,), "epochs": 1}
LABELS: dict[str, Any] = {**SMALL, "classifier": LabelAware(**TRAINING)}


def classifier(embedder: Any, seed: int = 0, **changes: Any) -> PosthocClassifier:
    settings = {**LABELS, "epsilon": 5.0, "embedder": embedder, "random_state": seed, **changes}
    return PosthocClassifier(**settings).fit(*blobs())


def test_two_embedders_of_one_shape_do_not_share_a_budget(tmp_path: Path) -> None:
    # Points .5 apart for the one are 10 apart for the other: both answers together tell them apart
    # far better.
    one, other = classifier(scaling(1.0)), classifier(scaling(20.0))
    assert (
        one.guarantee.adjacency.describe().split(" (identity")[0]
        == other.guarantee.adjacency.describe().split(" (identity")[0]
    )
    with pytest.raises(IncompatibleGuarantees, match="identity"):
        one.guarantee.compose(other.guarantee)
    scope = Scope(subject="patient-7")
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(scope, Guarantee(10.0, 1e-9, one.guarantee.adjacency))
        assert one.release([[0.0, 0.0]], ledger=ledger, scope=scope).receipt.booked
        with pytest.raises(IncompatibleGuarantees):
            other.release([[0.0, 0.0]], ledger=ledger, scope=scope)


def test_an_embedding_and_a_label_of_one_embedder_share_a_budget(tmp_path: Path) -> None:
    # Other epsilon, seed, mechanism, path, certificate, obfuscator and grid; the same embedder,
    # rows and so the same box.
    module = scaling(1.0)
    labels = classifier(module, calibration=Calibration(certificate="interval"))
    vectors = PosthocEncoder(
        **SMALL,
        epsilon=2.0,
        embedder=scaling(1.0),
        obfuscator=NoiseAware(outputs=2, **TRAINING),
        random_state=7,
    ).fit(*blobs())
    assert labels.query_.bound.kind != vectors.query_.bound.kind
    total = labels.guarantee.compose(vectors.guarantee)
    assert total.epsilon == pytest.approx(labels.guarantee.epsilon + vectors.guarantee.epsilon)
    loaded = PosthocClassifier.load(
        labels.save(tmp_path / "labels"), embedder=scaling(7.0)
    )  # takes the stored weights
    assert loaded.guarantee == labels.guarantee


def test_the_metric_the_radius_and_the_box_part_spaces() -> None:
    base = classifier("identity")
    moved = PosthocClassifier(
        **{**LABELS, "epsilon": 5.0, "embedder": "identity", "random_state": 0}
    ).fit(blobs()[0] * 1.5, blobs()[1])
    for other in (
        classifier("identity", radius=0.4),
        classifier("identity", input_norm="l1"),
        moved,
    ):
        with pytest.raises(IncompatibleGuarantees):
            base.guarantee.compose(other.guarantee)
    assert (
        base.guarantee.compose(classifier("identity", seed=5).guarantee).epsilon
        > base.guarantee.epsilon
    )


class Scaled(nn.Module):
    """Equal parameters whatever ``scale`` is, and other outputs."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.linear = nn.Linear(2, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.scale * self.linear(inputs)


class Wider(nn.Linear):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 20.0 * super().forward(inputs)


def test_what_cannot_be_read_has_a_serial_unless_its_owner_vouches(tmp_path: Path) -> None:
    one, other = (ModuleEmbedding(Scaled(scale), None) for scale in (1.0, 20.0))
    assert one.serial
    assert one.identity(BOX) != other.identity(BOX)
    assert one.identity(BOX) == one.identity(BOX)
    named, again = (classifier(Named(Scaled(1.0), "clinic encoder 3")) for _ in range(2))
    assert named.query_.embedding.serial == ""  # type: ignore[attr-defined]
    unnamed = classifier(Scaled(1.0))
    with pytest.raises(IncompatibleGuarantees):
        unnamed.guarantee.compose(classifier(Scaled(1.0)).guarantee)
    # The two named ones have other weights, drawn at random: the word for a module does not cover
    # them.
    with pytest.raises(IncompatibleGuarantees):
        named.guarantee.compose(again.guarantee)
    loaded = PosthocClassifier.load(unnamed.save(tmp_path / "own"), embedder=Scaled(1.0))
    assert loaded.guarantee == unnamed.guarantee
    with pytest.raises(InvalidInput, match="made with another Scaled than the Sequential"):
        PosthocClassifier.load(tmp_path / "own", embedder=nn.Sequential())


def test_a_name_covers_what_only_its_owner_knows() -> None:
    one, other = Scaled(1.0), Scaled(1.0)
    other.load_state_dict(one.state_dict())
    named = [ModuleEmbedding(module, None, name="clinic encoder 3") for module in (one, other)]
    assert named[0].identity(BOX) == named[1].identity(BOX)
    # Rows that were scaled before they came: nothing here can see it, a name can say it.
    raw, scaled = (
        IdentityEmbedding(2, name=name)
        for name in ("blood values, mmol/l", "blood values, z-scores")
    )
    assert raw.identity(BOX) != scaled.identity(BOX)


def test_a_beta_vae_with_something_exchanged_is_no_beta_vae() -> None:
    config = EmbedderConfig(image_shape=(4, 4), latent_dimension=2, width=8)
    assert BetaVaeEmbedding.describes(Embedder(config).eval())
    exchanged = Embedder(config).eval()
    exchanged.encoder[2] = nn.SiLU()  # type: ignore[index]
    hooked = Embedder(config).eval()
    hooked.encoder.register_forward_hook(lambda *_: None)
    other = Embedder(config).eval()
    other.scale = 2.0  # type: ignore[assignment]

    class Own(Embedder):
        pass

    for module in (exchanged, hooked, other, Own(config).eval()):
        assert not BetaVaeEmbedding.describes(module)


def test_a_bundle_needs_the_layers_that_it_was_fitted_with(tmp_path: Path) -> None:
    folder = classifier(scaling(1.0)).save(tmp_path / "bundle")
    hooked = scaling(1.0)
    hooked[0].register_forward_hook(lambda *_: None)
    for wrong in (
        hooked,
        nn.Sequential(Wider(2, 2, bias=False)),
        nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU()),
    ):
        with pytest.raises(InvalidInput, match="expected the same layers"):
            PosthocClassifier.load(folder, embedder=wrong)


@pytest.mark.parametrize(
    "change",
    [
        lambda settings, arrays: arrays.update(
            {"embedder.0.weight": 1e6 * arrays["embedder.0.weight"]}
        ),
        lambda settings, arrays: settings["requirement"].update(
            space="embedding of something else"
        ),
        lambda settings, arrays: settings["requirement"].update(identity="0" * 64),
        lambda settings, arrays: arrays.update({"domain.upper": 2.0 * arrays["domain.upper"]}),
        lambda settings, arrays: settings["embedding"].update(name="another"),
    ],
    ids=["weights", "space", "identity", "box", "name"],
)
def test_a_bundle_whose_map_is_not_that_of_its_identity_is_refused(
    change: Callable[..., None], tmp_path: Path
) -> None:
    stored = Bundle.read(classifier(scaling(1.0)).save(tmp_path / "good"))
    settings, arrays = stored.settings, dict(stored.arrays)
    change(settings, arrays)
    Bundle(stored.system, settings, arrays, stored.card).write(tmp_path / "bad")
    with pytest.raises(CorruptBundle, match="states another space"):
        PosthocClassifier.load(tmp_path / "bad", embedder=scaling(1.0))


def test_digests_of_arrays_tell_names_types_shapes_and_bytes_apart() -> None:
    base = {"a": np.zeros((2, 3)), "b": np.arange(3)}
    others = [
        {"a": np.zeros((3, 2)), "b": np.arange(3)},
        {"a": np.zeros((2, 3), np.float32), "b": np.arange(3)},
        {"c": np.zeros((2, 3)), "b": np.arange(3)},
        {"a": np.zeros((2, 3)), "b": np.arange(1, 4)},
        {"a": np.zeros((2, 3))},
        {"a": np.full((2, 3), -0.0), "b": np.arange(3)},
    ]
    assert len({arrays_digest(arrays) for arrays in (base, *others)}) == 7
    assert arrays_digest(dict(reversed(base.items()))) == arrays_digest(base)
    assert arrays_digest(
        {"a": np.zeros((3, 2)).T, "b": np.arange(3).astype(">i8")}
    ) == arrays_digest(base)


def own_module() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.Dropout(0.5))


def test_dropout_is_off_whatever_mode_the_module_was_left_in() -> None:
    module = own_module()
    embedding = ModuleEmbedding(module, (4, 4))
    module.train()
    inputs = np.ones((3, 16))
    np.testing.assert_array_equal(embedding.embed(inputs), embedding.embed(inputs))
