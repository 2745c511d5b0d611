"""Look-ups against a comparison of real numbers, with words that are aimed at the thresholds."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.noise.digits import SymbolTable, blocks, heads_from
from reticent.noise.expansions import GeometricShares, Quotient
from tests.noise.words import Aimed, Listed, compared

DISTRIBUTIONS = [
    GeometricShares(1, 7, size=16, signed=True),
    GeometricShares(1, 40, size=256, open=True),
    GeometricShares(9, 1, size=4, open=True),
    GeometricShares(1, 7, size=2, signed=True),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("seed", range(2))
def test_symbols_are_those_of_a_comparison_of_reals(
    distribution: GeometricShares, seed: int
) -> None:
    sources = [Aimed([distribution], seed), Aimed([distribution], seed)]
    drawn = [heads_from(source, 400)[0].copy() for source in sources]
    found = SymbolTable(distribution).symbols(drawn[0], sources[0]).tolist()
    assert found == compared(distribution, drawn[1], sources[1])
    assert sources[0].asked == sources[1].asked > 180


def test_every_cell_knows_its_symbol() -> None:
    distribution = GeometricShares(1, 3, size=8, open=True)
    heads = np.arange(2**16, dtype=np.uint16)
    table = SymbolTable(distribution)
    cells = [floor >> 48 for floor in distribution.floors(64)]
    lowest = table.symbols(heads, Listed([0] * 8))
    highest = table.symbols(heads, Listed([2**64 - 1] * 8))
    assert np.flatnonzero(lowest != highest).tolist() == cells
    assert lowest.tolist() == [sum(cell < head for cell in cells) for head in range(2**16)]


def test_words_are_overwritten_after_use() -> None:
    given = []

    def words(count: int) -> np.ndarray:
        given.append(np.full(count, 2**63 + 5, dtype=np.uint64))
        return given[-1]

    half = SymbolTable(Quotient(2**15 * 2 + 1, 2**17))
    half.symbols(np.full(3, 2**15, dtype=np.uint16), words)
    assert [len(block) for block in given] == [3, 1, 1, 1]
    assert not any(block.any() for block in given)


def test_heads_and_blocks_cover_what_is_asked_for() -> None:
    heads, block = heads_from(Listed([0x0004000300020001, 5]), 5)
    assert heads.tolist() == [1, 2, 3, 4, 5]
    assert np.shares_memory(heads, block)
    places = np.arange(40_000)
    assert np.concatenate([places[place] for place in blocks(40_000)]).tolist() == places.tolist()
    assert list(blocks(0)) == []
