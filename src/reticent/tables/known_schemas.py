"""Public schemas of the tables in ``reticent.datasets``, written from their documentation. No row
was looked at to write them.
"""

from __future__ import annotations

from reticent.datasets.adult import COLUMNS
from reticent.datasets.covertype import QUANTITIES, SOIL, WILDERNESS
from reticent.datasets.higgs import MISSING
from reticent.tables.attributes import Attribute, Categorical, Numeric, OneHot
from reticent.tables.schema import TabularSchema

_ADULT_NUMBERS = {
    "age": Numeric("age", 17, 90),
    "fnlwgt": Numeric("fnlwgt", 0, 1_500_000),
    "education-num": Numeric("education-num", 1, 16),
    "capital-gain": Numeric("capital-gain", 0, 99_999, scale="log"),
    "capital-loss": Numeric("capital-loss", 0, 4_400, scale="log"),
    "hours-per-week": Numeric("hours-per-week", 1, 99),
}
_ADULT_WORDS = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov "
    "Without-pay Never-worked",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th "
    "7th-8th 12th Masters 1st-4th 10th "
    "Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed "
    "Married-spouse-absent Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial "
    "Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv "
    "Protective-serv Armed-Forces",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany "
    "Outlying-US(Guam-USVI-etc) India Japan Greece "
    "South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal "
    "Ireland France "
    "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua "
    "Scotland Thailand Yugoslavia "
    "El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
}
_QUANTITY_RANGES = (
    (1800, 3900),
    (0, 360),
    (0, 70),
    (0, 1400),
    (-200, 650),
    (0, 7200),
    (0, 255),
    (0, 255),
    (0, 255),
    (0, 7200),
)
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


def adult_schema() -> TabularSchema:
    """Return UCI's ranges and category lists. "?" is a category of every word column."""
    attributes: list[Attribute] = []
    for name in COLUMNS:
        if name in _ADULT_NUMBERS:
            attributes.append(_ADULT_NUMBERS[name])
        else:
            attributes.append(Categorical(name, (*_ADULT_WORDS[name].split(), "?"), other="?"))
    return TabularSchema(tuple(attributes))


def covertype_schema() -> TabularSchema:
    """Return UCI's ranges, rounded outward. Hillshades are indices 0 to 255, angles degrees."""
    numbers = (
        Numeric(name, *bounds) for name, bounds in zip(QUANTITIES, _QUANTITY_RANGES, strict=True)
    )
    return TabularSchema(
        (*numbers, OneHot("Wilderness_Area", WILDERNESS), OneHot("Soil_Type", SOIL))
    )


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


SCHEMAS = {"adult": adult_schema, "covertype": covertype_schema}
"""Schemas that need no column names."""
