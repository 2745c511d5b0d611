from __future__ import annotations

import pytest

from reticent.core import Policy, Scope
from reticent.core.errors import InvalidInput, UnknownName


@pytest.mark.parametrize(
    ("budget", "request_", "covered"),
    [
        (Scope(subject="s"), Scope("p", "s", "b"), True),
        (Scope(principal="p", subject="s"), Scope("p", "s"), True),
        (Scope(principal="p"), Scope("q", "s"), False),
        (Scope(principal="p", subject="s"), Scope(principal="p"), False),
        (Scope(bundle="b"), Scope("p", "s", "b"), True),
    ],
)
def test_covers(budget: Scope, request_: Scope, covered: bool) -> None:
    assert budget.covers(request_) is covered


@pytest.mark.parametrize("wrong", ["a\nb", " a", "a ", "x" * 201, "a\x00", 7, None])
def test_bad_names_are_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="subject: expected"):
        Scope(subject=wrong)


def test_a_scope_names_something() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        Scope()
    assert Scope(principal="p", bundle="b").describe() == "principal=p, bundle=b"


def test_a_policy_is_text_and_back() -> None:
    policy = Policy(["bundle", "principal", "bundle"])
    assert (policy.required, policy.text) == (("principal", "bundle"), "principal,bundle")
    assert Policy.stored(policy.text) == policy
    assert Policy.stored(Policy(()).text) == Policy(())
    assert Policy("subject") == Policy(("subject",))
    with pytest.raises(UnknownName, match="required='person'"):
        Policy(["person"])
