"""What cards of table rows say, against the quantities that they speak of."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

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


def test_the_radius_is_said_in_the_tables_own_units() -> None:
    name = "the radius, on one attribute alone"
    said = dict(power_card(query()).details)[name]
    assert said.startswith("0.1 of the range of a number; ")
    assert "gain: 3.16 in 1 + value - lower, so from 0 to 2.16" in said
    assert "of a category nothing" in said
    assert "not whether a number is missing" in said
    rows = SCHEMA.encode(
        [
            [17, 0, "Male"],
            [17 + 7.3, 0, "Male"],
            [17, 2.16, "Male"],
            [17, -1, "Male"],
            [17, 0, "Female"],
        ]
    )
    apart = np.linalg.norm(rows - rows[0], axis=1)[1:]
    assert apart == pytest.approx([0.1, 0.1, 1.0, 1.0], abs=1e-4)
    nearest = SCHEMA.encode([[17, math.sqrt(100_000) - 1, "Male"]])  # the middle of the scale
    assert np.linalg.norm(nearest - rows[3]) == pytest.approx(math.sqrt(0.75))
    assert dict(power_card(query(radius=1.0)).details)[name] == "any change of it"
    assert name not in dict(power_card(query(radius=None)).details)
