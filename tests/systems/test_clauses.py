"""Cards of private records name what their adjacency leaves in the open."""

from __future__ import annotations

import pytest

from reticent.core import AddRemove, Guarantee, Replace
from reticent.systems import clauses as say


@pytest.mark.parametrize("adjacency", [AddRemove(), Replace(), Replace(unit="person")])
def test_a_card_of_records_says_that_refusals_and_a_fixed_number_show(
    adjacency: AddRemove | Replace,
) -> None:
    """With ``Replace`` neighbours have one size, and both leave rows that ``fit`` refuses out."""
    card = say.records_card(
        Guarantee(1.0, 0.0, adjacency),
        by_person=adjacency.unit == "person",
        classes_given=True,
        title="",
        protected="",
        from_whom="",
        assumptions=(),
        not_protected=(),
        details=(),
    )
    assert say.REFUSED_RECORD in card.not_protected
    assert (say.HOW_MANY in card.not_protected) == isinstance(adjacency, Replace)
