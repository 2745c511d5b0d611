"""Attacks on a fitted system as one HTML page: their success beside the proved caps."""

from __future__ import annotations

from reticent.attacks.fitted import FittedAttack
from reticent.pages.page import Section, Table, page


def tables(found: FittedAttack) -> tuple[Table, Table]:
    """Return the success of guesses, and the errors of estimates, beside what no attack passes."""
    games = [
        (game.name, [f"{x:.3f}" for x in (game.success, game.lower, game.cap, game.blind)])
        for game in found.games
    ]
    estimates = [
        (
            one.name,
            [f"{one.error:.4g} ± {one.standard_error:.1g}", f"{one.floor:.4g}", f"{one.blind:.4g}"],
        )
        for one in found.reconstructions
    ]
    exceeded = [game.name for game in found.games if game.exceeded]
    exceeded += [one.name for one in found.reconstructions if one.exceeded]
    heads = ("right", "at least, by counting", found.cap, "without an answer")
    floors = ("mean squared error", found.floor, "without an answer")
    return (
        Table("question", heads, games, strong=tuple(exceeded)),
        Table("estimate of the input", floors, estimates, strong=tuple(exceeded)),
    )


def attack_page(found: FittedAttack) -> str:
    """Return the whole page as HTML. It needs no script and loads nothing."""
    games, estimates = tables(found)
    return page(
        "What attackers get back, and what they cannot",
        f"{found.verdict[0].upper()}{found.verdict[1:]}.",
        [],
        [
            Section(
                "Questions",
                f"""The input is drawn uniformly from {found.candidates} public rows that the
                attacker knows. The attacker uses the exact probability of the answer about each
                row. With the same knowledge, no attack does better. The claim:
                {found.claim_words}. Each cap follows from it, for rows farther apart by steps of
                the radius. All lower limits hold together with confidence
                {found.confidence:g}.""",
                [games],
            ),
            Section(
                "Estimates of the input",
                """The table shows the mean squared error per number of the input. No estimate has
                an error below the floor. The last column is the error of the mean of all
                candidates, which needs no answer.

                This page is as private as the bundle and the rows that it was made with.""",
                [estimates],
            ),
        ],
        name=found.system,
        about="What attackers get back from a fitted system, beside what its guarantee allows",
        window=f"Attacks on a {found.system}",
        answered=(
            "Every number on this page was computed by the run that wrote it. Answers were drawn "
            f"by the code of the release on words of seed {found.seed}, and thrown away. No budget "
            "was charged."
        ),
    )
