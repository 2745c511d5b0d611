"""Encoding and decoding undo each other; what no row encodes to is read as the nearest thing."""

from __future__ import annotations

import numpy as np

from reticent.datasets import load_adult_sample
from reticent.tables.attributes import Numeric
from reticent.tables.decoding import decode
from reticent.tables.known_schemas import adult_schema


def test_all_of_a_real_table_comes_back() -> None:
    rows, schema = load_adult_sample().test_rows, adult_schema()
    back = decode(schema, schema.encode(rows))
    for index, attribute in enumerate(schema.attributes):
        if isinstance(attribute, Numeric):
            np.testing.assert_allclose(
                back[:, index].astype(float), rows[:, index].astype(float), rtol=1e-9, atol=1e-7
            )
        else:
            assert back[:, index].tolist() == rows[:, index].tolist()
