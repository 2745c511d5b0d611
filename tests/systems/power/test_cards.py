"""What cards of table rows say, against the quantities that they speak of."""

from __future__ import annotations

import re

import numpy as np

from reticent.mechanisms import KNormMechanism
from reticent.networks import Affine, Network
from reticent.systems.power.cards import power_card
from reticent.systems.power.query import PowerQuery, PowerSetting
from reticent.tables.attributes import Categorical, Numeric
from reticent.tables.schema import TabularSchema

SCHEMA = TabularSchema(
    (
        Numeric("age", 17, 90),
        Numeric("gain", 0, 99_999, scale="log", missing=-1),
        Categorical("sex", ("Female", "Male")),
    )
)


def query(**changes) -> PowerQuery:
    plan = PowerSetting(
        **{"mechanism": "k-norm-l2", "epsilon": 3.0, "delta": 0.0, "radius": 0.1, **changes}
    )
    return PowerQuery(
        SCHEMA,
        Network((Affine(np.eye(2, SCHEMA.dimension), np.zeros(2)),), (SCHEMA.dimension,)),
        plan,
    )


def test_the_offset_of_the_lipschitz_statement_is_on_the_card() -> None:
    for epsilon in (0.01, 3.0):
        found = query(epsilon=epsilon)
        assert isinstance(found.mechanism, KNormMechanism)
        card = power_card(found)
        shown = re.search(
            r"e\^\((.*) r / 0.1 \+ (.*)\): Lipschitz privacy, up to the grid's offset",
            card.protected,
        )
        assert shown is not None
        assert float(shown[1]) == epsilon
        offset = found.mechanism.metric_offset
        assert offset <= float(shown[2]) <= 1.1 * offset
        assert (
            dict(card.details)["offset of the Lipschitz statement, from the grid"]
            == f"{shown[2]} at every distance"
        )
    assert "Lipschitz" not in power_card(query(mechanism="gaussian", delta=1e-5)).protected
