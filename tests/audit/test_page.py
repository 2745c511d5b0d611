"""The page of an audit shows its numbers, its verdict and what it took on trust."""

from __future__ import annotations

from html.parser import HTMLParser

from reticent.audit import AuditedPair, AuditResult, FittedAudit
from reticent.audit.page import audit_page
from reticent.core import AddRemove, Guarantee


def _audit(lower: float) -> FittedAudit:
    pair = AuditedPair("a <pair> & another", AuditResult(lower, 1e-5, 0.9995, 4_000))
    claim = Guarantee(1.0, 1e-5, AddRemove())
    return FittedAudit("PosthocEncoder", claim, (pair,), 0.999, 4_000, ("a thing > else",), 17)


def test_numbers_and_words_are_on_it() -> None:
    page = audit_page(_audit(1.75))
    assert "Refuted: the claim is epsilon=1, and these runs show at least 1.75" in page
    assert "a &lt;pair&gt; &amp; another" in page
    assert "a thing &gt; else" in page
    assert "seed 17" in page
    assert "no budget" in page
    assert "released with noise from the operating system" not in page.lower()
    assert "Not refuted" in audit_page(_audit(0.5))


def test_every_element_is_closed() -> None:
    opened: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in {"meta", "link", "img", "br"}:
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Reader().feed(audit_page(_audit(0.5)))
    assert opened == []
