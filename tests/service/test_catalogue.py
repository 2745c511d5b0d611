from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from reticent.core import Guarantee, Replace, Scope
from reticent.core.errors import InvalidInput, NotPermitted, UnknownName, UntrustedSignature
from reticent.service.catalogue import Catalogue
from reticent.service.models import ModelShelf
from reticent.systems.value_models import train_value_model
from tests.service.conftest import RECORDS


def anybody(*_: str) -> bool:
    return True


def test_who_is_charged_and_how_each_is_asked(served_bundles: Path) -> None:
    found = Catalogue(served_bundles, trusted_with=["curated"])
    routes = {bundle.name: (bundle.route, bundle.subject) for bundle in found}
    assert routes == {
        "labels": ("answers", RECORDS),
        "free": ("free", RECORDS),
        "rows": ("device", None),
        "curated": ("answers", None),
    }
    labels = found.find("labels", may_ask=anybody)
    assert found.find(labels.identity, may_ask=anybody) is labels
    scope, names = labels.scopes("acme", None)
    assert scope == Scope("acme", RECORDS, labels.identity)
    assert names == [RECORDS]
    curated = found.find("curated", may_ask=anybody)
    scopes, names = curated.scopes("acme", ["b", "a", "b"])
    assert isinstance(scopes, list)
    assert [scope.subject for scope in scopes] == ["b", "a", "b"]
    assert names == ["a", "b"]
    with pytest.raises(InvalidInput, match="subject"):
        curated.scopes("acme", None)
    with pytest.raises(InvalidInput, match="data set"):
        labels.scopes("acme", "another")
    with pytest.raises(NotPermitted):
        found.find("rows", may_ask=anybody).inputs([[0.0, 0.0]], None)
    with pytest.raises(UnknownName):
        found.find("labels", may_ask=lambda *names: False)


def test_folders_that_cannot_be_served(
    served_bundles: Path, signing_keys: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="expected a folder"):
        Catalogue(tmp_path / "nothing")
    with pytest.raises(InvalidInput, match="at least one bundle"):
        Catalogue(tmp_path)
    with pytest.raises(InvalidInput, match="trusted_with"):
        Catalogue(served_bundles, trusted_with=["no such"])
    with pytest.raises(UntrustedSignature):
        Catalogue(served_bundles, trusted_key=signing_keys[1])
    for name in ("one", "two"):
        shutil.copytree(served_bundles / "free", tmp_path / name)
    with pytest.raises(InvalidInput, match="the same bundle"):
        Catalogue(tmp_path)


def test_a_model_of_private_records_is_no_model_of_released_values(
    served_bundles: Path, tmp_path: Path
) -> None:
    for name in ("labels", "rows"):  # predicts from private records; does not predict
        shutil.copytree(served_bundles / name, tmp_path / name / name)
        with pytest.raises(InvalidInput, match="released values"):
            ModelShelf(tmp_path / name)
    assert list(ModelShelf(None)) == []


def test_a_model_of_released_values_is_no_bundle(tmp_path: Path) -> None:
    one_hot = np.eye(2)[[0, 0, 0, 1, 1, 1]]
    model = train_value_model(
        "linear",
        one_hot,
        list("nnyyyy"),
        seed=0,
        bundle="ab" * 32,
        guarantee=Guarantee(1.0, 0.0, Replace(1)),
    )
    model.save(tmp_path / "model")
    with pytest.raises(InvalidInput, match="folder of models"):
        Catalogue(tmp_path)
    assert [found.name for found in ModelShelf(tmp_path)] == ["model"]
