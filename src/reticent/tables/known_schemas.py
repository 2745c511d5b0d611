"""Public schemas of the tables in ``reticent.datasets``, written from their documentation. No row
was looked at to write them.
"""

from __future__ import annotations

from reticent.datasets.adult import COLUMNS
from reticent.tables.attributes import Attribute, Categorical, Numeric
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


def adult_schema() -> TabularSchema:
    """Return UCI's ranges and category lists. "?" is a category of every word column."""
    attributes: list[Attribute] = []
    for name in COLUMNS:
        if name in _ADULT_NUMBERS:
            attributes.append(_ADULT_NUMBERS[name])
        else:
            attributes.append(Categorical(name, (*_ADULT_WORDS[name].split(), "?"), other="?"))
    return TabularSchema(tuple(attributes))
