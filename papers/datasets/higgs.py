"""Two *samples* of Higgs tables: 25,973 of UCI's eleven million rows, and 9,998 of the ATLAS
challenge's 250,000. Their public schemas are written from their documentation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.datasets.files import needed_file, opened_npz
from reticent.core.errors import DataUnavailable
from reticent.datasets.table import Table, last_fifth_held_out
from reticent.tables import Numeric, TabularSchema

UCI_FILE = "higgs_uci_subset26k.npz"
ATLAS_FILE = "atlas_higgs_kaggle10k.npz"
MISSING = -999.0
"""The value of the ATLAS table where a quantity does not exist."""

_CLASSES = ("background", "signal")
_HIGGS_ANGLES = {
    "lepton_eta": 3.0,
    "jet1_eta": 3.0,
    "jet2_eta": 3.0,
    "jet3_eta": 3.0,
    "jet4_eta": 3.0,
}
_ATLAS_SIGNED = {
    "DER_prodeta_jet_jet": 20.0,
    "DER_met_phi_centrality": 1.5,
    "PRI_tau_eta": 2.6,
    "PRI_lep_eta": 2.6,
    "PRI_jet_leading_eta": 4.5,
    "PRI_jet_subleading_eta": 4.5,
}
_ATLAS_SMALL = {
    "DER_deltaeta_jet_jet": 9.0,
    "DER_deltar_tau_lep": 6.0,
    "DER_lep_eta_centrality": 1.0,
    "DER_pt_ratio_lep_tau": 20.0,
    "PRI_jet_num": 3.0,
}


def load_higgs(folder: str | Path | None = None) -> Table:
    """Return the UCI sample: 28 quantities of simulated collisions. Rows of source 2 are held out.

    Args:
        folder: folder with ``higgs_uci_subset26k.npz``. The default is the one that
            ``RETICENT_DATA`` names.

    Raises:
        DataUnavailable: the file is missing, damaged or another one.
    """
    stored = _read(folder, UCI_FILE, ("X", "y", "src", "feature_names"), (25973, 28))
    held_out = stored["src"] == 2
    rows, labels = stored["X"].astype(np.float32), stored["y"].astype(np.int64)
    return Table(
        name="higgs",
        columns=tuple(str(name) for name in stored["feature_names"]),
        train_rows=rows[~held_out],
        train_labels=labels[~held_out],
        test_rows=rows[held_out],
        test_labels=labels[held_out],
        class_names=_CLASSES,
        origin="a sample of HIGGS, Whiteson 2014, UCI (CC BY 4.0)",
    )


def load_atlas(folder: str | Path | None = None) -> Table:
    """Return the ATLAS challenge sample: 30 quantities, -999 where one does not exist. It is
    balanced, unlike the whole.

    Args:
        folder: folder with ``atlas_higgs_kaggle10k.npz``. The default is the one that
            ``RETICENT_DATA`` names.

    Raises:
        DataUnavailable: the file is missing, damaged or another one.
    """
    stored = _read(folder, ATLAS_FILE, ("X", "y", "feature_names"), (9998, 30))
    rows, labels = stored["X"].astype(np.float32), stored["y"].astype(np.int64)
    train, test = last_fifth_held_out(len(rows))
    return Table(
        name="atlas",
        columns=tuple(str(name) for name in stored["feature_names"]),
        train_rows=rows[train],
        train_labels=labels[train],
        test_rows=rows[test],
        test_labels=labels[test],
        class_names=_CLASSES,
        origin="a sample of the ATLAS Higgs challenge, CERN open data (CC0)",
    )


def _read(
    folder: str | Path | None, file: str, names: tuple[str, ...], shape: tuple[int, int]
) -> dict[str, npt.NDArray[Any]]:
    path = needed_file(folder, file, about="docs/power.md says how it is made")
    with opened_npz(path, holds=", ".join(names)) as stored:
        arrays = {name: stored[name] for name in names}
    if arrays["X"].shape != shape or arrays["y"].shape != shape[:1]:
        raise DataUnavailable(
            f"{file}: expected X of shape={shape}, got shape={arrays['X'].shape}; fetch the "
            "file again"
        )
    return arrays


def higgs_schema(columns: tuple[str, ...]) -> TabularSchema:
    """Return the ranges of UCI's normalised quantities: angles symmetric, momenta and masses
    positive, on a log scale.
    """

    def column(name: str) -> Numeric:
        if name in _HIGGS_ANGLES:
            return Numeric(name, -_HIGGS_ANGLES[name], _HIGGS_ANGLES[name])
        if name.endswith("phi"):
            return Numeric(name, -1.75, 1.75)
        if name.endswith("btag"):
            return Numeric(name, 0, 3.2)
        return Numeric(name, 0, 15, scale="log")

    return TabularSchema(tuple(column(name) for name in columns))


def atlas_schema(columns: tuple[str, ...]) -> TabularSchema:
    """Return the ranges of the challenge's description, in GeV or radians. -999 stands for "does
    not exist".
    """

    def column(name: str) -> Numeric:
        if name in _ATLAS_SIGNED:
            return Numeric(name, -_ATLAS_SIGNED[name], _ATLAS_SIGNED[name], missing=MISSING)
        if name.endswith("phi"):
            return Numeric(name, -3.15, 3.15, missing=MISSING)
        if name in _ATLAS_SMALL:
            return Numeric(name, 0, _ATLAS_SMALL[name], missing=MISSING)
        return Numeric(name, 0, 2000, scale="log", missing=MISSING)

    return TabularSchema(tuple(column(name) for name in columns))
