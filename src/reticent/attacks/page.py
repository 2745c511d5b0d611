"""Attacks on a fitted system as one HTML page: their success beside the proved caps."""

from __future__ import annotations

from html import escape

from reticent.attacks.fitted import FittedAttack
from reticent.pages.parts import document, figure_table


def attack_page(found: FittedAttack) -> str:
    """Return the whole page as HTML. It needs no script and loads nothing."""
    games = [
        (
            game.name,
            [f"{game.success:.3f}", f"{game.lower:.3f}", f"{game.cap:.3f}", f"{game.blind:.3f}"],
            "best" if game.exceeded else "",
        )
        for game in found.games
    ]
    estimates = [
        (
            one.name,
            [
                f"{one.error:.4g} ± {one.standard_error:.1g}",
                f"{one.floor:.4g}",
                f"{one.blind:.4g}",
            ],
            "best" if one.exceeded else "",
        )
        for one in found.reconstructions
    ]
    verdict = escape(found.verdict[0].upper() + found.verdict[1:])
    heads = ("right", "at least, by counting", found.cap, "without an answer")
    return document(
        title=f"Attacks on a {found.system}",
        about="What attackers get back from a fitted system, beside what its guarantee allows",
        answered=(
            "Every number on this page was computed by the run that wrote it. Answers were drawn "
            f"by the code of the release on words of seed {found.seed}, and thrown away. No budget "
            "was charged."
        ),
        body=[
            f"""<header><p class="name-of">reticent · {escape(found.system)}</p>
<h1>What attackers get back, and what they cannot</h1>
<p class="lead">{verdict}.</p></header>""",
            f"""<main><section aria-labelledby="games"><h2 id="games">Questions</h2>
<p>The input is drawn uniformly from {found.candidates} public rows that the attacker knows. The
attacker uses the exact probability of the answer about each row. With the same knowledge, no attack
does better. The claim: {escape(found.claim_words)}. Each cap follows from it, for rows farther
apart by steps of the radius. All lower limits hold together with confidence
{found.confidence:g}.</p>
{figure_table("", "question", heads, games)}</section>""",
            f"""<section aria-labelledby="estimates"><h2 id="estimates">Estimates of the input</h2>
<p>The table shows the mean squared error per number of the input. No estimate has an error below
the floor. The last column is the error of the mean of all candidates, which needs no answer.</p>
{figure_table("", "estimate", ("error", found.floor, "without an answer"), estimates)}
<p>This page is as private as the bundle and the rows that it was made with.</p>
</section></main>""",
        ],
    )
