"""What a guarantee leaves to an attacker, in numbers: the tables of *which epsilon*."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np

from reticent.accounting import ShuffledChannel, epsilon_of_rdp, smallest_epsilon
from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.accounting.telling_apart import beyond, which_of_two_cap

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 20.0)
"""Rows of the tables."""


def posterior(prior: float, *, epsilon: float) -> float:
    """Largest probability that an attacker can arrive at for something that he held to be true with
    probability ``prior``, when neighbours differ in it and delta is 0.

    Args:
        prior: in (0, 1).
        epsilon: of everything that he sees.

    Example:
        >>> round(posterior(0.01, epsilon=1.0), 3)
        0.027
    """
    return prior / (prior + (1.0 - prior) * math.exp(-epsilon))


def right_guess(*, epsilon: float, choices: int) -> float:
    """Largest probability of guessing one of ``choices`` equally likely values, any two of which
    make neighbours, at delta 0.

    Example:
        >>> right_guess(epsilon=0.0, choices=10)
        0.1
    """
    return posterior(1.0 / choices, epsilon=epsilon)


def detected(false_alarms: float, *, epsilon: float, delta: float) -> float:
    """Largest share of present records that a membership test finds, at a share of false alarms.

    Both sides of the trade-off of Kairouz, Oh and Viswanath (2015), theorem 2.1.

    Example:
        >>> round(detected(0.001, epsilon=2.0, delta=0.0), 4)
        0.0074
    """
    return min(
        1.0,
        math.exp(epsilon) * false_alarms + delta,
        1.0 - math.exp(-epsilon) * (1.0 - delta - false_alarms),
    )


def concentrated(rho: float, *, delta: float) -> float:
    """Epsilon at ``delta`` of rho-zCDP, which publishers of large statistics often state.

    Example:
        >>> round(concentrated(0.5, delta=1e-5), 2)
        4.73
    """
    orders = 1.0 + np.geomspace(0.01, 1000.0, 20_000)
    return epsilon_of_rdp(orders, rho * orders, delta)[0]


def gaussian_right_guess(*, epsilon: float, delta: float) -> float:
    """Largest share of right guesses about one record against Gaussian noise that was calibrated to
    the guarantee; below the cap that holds for every mechanism.

    Two normal distributions at distance mu are told apart with probability Phi(mu / 2).

    Example:
        >>> bool(gaussian_right_guess(epsilon=1.0, delta=1e-5) < which_of_two_cap(1.0, 1e-5))
        True
    """
    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        if gaussian_delta(noise_multiplier=middle, epsilon=epsilon) > delta:
            low = middle
        else:
            high = middle
    return 0.5 * math.erfc(-1.0 / (2.0 * high) / math.sqrt(2.0))


def success_table() -> str:
    """Epsilon against what an attacker can know at most, as a Markdown table."""
    rows = [
        (
            "| ε | odds times, at most | in or out: right guesses | 1 in 100 becomes "
            "| one of 10 values | found, at 0.1 % false alarms |"
        ),
        "|---|---|---|---|---|---|",
    ]
    for epsilon in EPSILONS:
        cells = [
            f"{epsilon:g}",
            f"{math.exp(epsilon):,.{2 if epsilon < 3 else 0}f}",
            percent(float(which_of_two_cap(epsilon, 0.0))),
            percent(posterior(0.01, epsilon=epsilon)),
            percent(right_guess(epsilon=epsilon, choices=10)),
            percent(detected(0.001, epsilon=epsilon, delta=0.0)),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def gaussian_table() -> str:
    """The cap for every mechanism beside what Gaussian noise of that guarantee gives away."""
    rows = [
        "| ε at δ = 1e-5 | cap for any mechanism | Gaussian noise of that ε |",
        "|---|---|---|",
    ]
    for epsilon in EPSILONS:
        cap = percent(float(which_of_two_cap(epsilon, 1e-5)))
        gaussian = percent(gaussian_right_guess(epsilon=epsilon, delta=1e-5))
        rows.append(f"| {epsilon:g} | {cap} | {gaussian} |")
    return "\n".join(rows)


def answers_table() -> str:
    """What answers of epsilon 0.1 add up to."""
    rows = ["| answers of ε = 0.1 | sum | total at δ = 1e-6 |", "|---|---|---|"]
    for answers in (1, 10, 100, 1000, 10_000):
        total = smallest_epsilon(epsilon=0.1, answers=answers, delta=1e-6, answer_delta=0.0)
        rows.append(f"| {answers:,} | {0.1 * answers:g} | {total.epsilon:.3g} |")
    return "\n".join(rows)


def shuffled_table() -> str:
    """Return the central epsilon of shuffled reports, by devices, local epsilon and labels."""
    devices = (1_000, 10_000, 100_000, 1_000_000)
    heads = "".join(f" {n:,} devices |" for n in devices)
    rows = [f"| local ε | labels |{heads}", "|---|---|" + "---|" * len(devices)]
    for epsilon in (2.0, 4.0, 6.0):
        for labels in (2, 10):
            channel = ShuffledChannel.response(epsilon=epsilon, labels=labels)
            prices = [channel.epsilon(devices=n, delta=1e-6) for n in devices]
            cells = "".join(f" {math.ceil(price * 1e3) / 1e3:.3f} |" for price in prices)
            rows.append(f"| {epsilon:g} | {labels} |{cells}")
    return "\n".join(rows)


def group_table() -> str:
    """What a guarantee for one record is worth to a person or a family with several."""
    rows = ["| records of one person | ε | δ |", "|---|---|---|"]
    for records in (1, 2, 4, 10):
        epsilon, delta = beyond(epsilon=1.0, delta=1e-6, hops=records)
        rows.append(f"| {records} | {epsilon:g} | {rounded_up(float(delta)):g} |")
    return "\n".join(rows)


def rounded_up(value: float) -> float:
    """A bound above 0 to two digits, and not below it but for rounding in doubles.

    Example:
        >>> rounded_up(3.12e-5), rounded_up(1e-6)
        (3.2e-05, 1e-06)
    """
    step = Decimal(f"{value:.12g}").normalize(Context(prec=2, rounding=ROUND_CEILING))
    return float(step)


def others_table() -> str:
    """What others spend, each with its source; rho is turned into epsilon here."""
    rows = ["| who | what | one unit | ε | source |", "|---|---|---|---|---|"]
    for use in OTHERS:
        epsilon = _as_stated(use) if use.rho is None else _of_rho(use.rho)
        source = f"[{use.source}](../bibliography.md#{use.source})"
        rows.append(f"| {use.who} | {use.what} | {use.unit} | {epsilon} | {source} |")
    return "\n".join(rows)


def _as_stated(use: Use) -> str:
    return f"{use.epsilon:g}" + (f" at δ = {use.delta:g}" if use.delta else "")


def _of_rho(rho: float) -> str:
    return f"{concentrated(rho, delta=1e-10):.3g} at δ = 1e-10 (ρ = {rho:g})"


@dataclass(frozen=True)
class Use:
    """What somebody published with a stated guarantee.

    Attributes:
        who, what, unit: in words.
        source: key of the bibliography.
        epsilon, delta: as the source states them.
        rho: in its place, where the source states zero-concentrated privacy.
    """

    who: str
    what: str
    unit: str
    source: str
    epsilon: float = 0.0
    delta: float = 0.0
    rho: float | None = None


OTHERS = (
    Use(
        "US Census Bureau",
        "2020 redistricting tables, persons",
        "a person",
        "census2021",
        epsilon=17.14,
    ),
    Use(
        "US Census Bureau",
        "2020 redistricting tables, housing units",
        "a housing unit",
        "census2021",
        epsilon=2.47,
    ),
    Use("Google", "models of a keyboard, the best of over twenty", "a device", "xu2023", rho=0.2),
    Use("Google", "models of a keyboard, the worst of over twenty", "a device", "xu2023", rho=2.0),
    Use(
        "Google",
        "searches for symptoms",
        "a person, one day",
        "bavadekar2020",
        epsilon=1.68,
    ),
    Use(
        "Google",
        "searches about vaccination",
        "a person, one day",
        "bavadekar2021",
        epsilon=2.19,
        delta=1e-5,
    ),
    Use(
        "Apple",
        "emoji, randomised on the device",
        "a device, one day",
        "apple2017",
        epsilon=4.0,
    ),
    Use(
        "Apple",
        "health types, randomised on the device",
        "a device, one day",
        "apple2017",
        epsilon=2.0,
    ),
    Use(
        "LinkedIn",
        "audience engagements, all queries of a month",
        "an analyst's view of a member",
        "rogers2020",
        epsilon=34.9,
        delta=7e-9,
    ),
)
"""Uses that state who is protected."""


def percent(share: float) -> str:
    """A share as a reader takes it in: more digits near 0 and near 100 %.

    Example:
        >>> percent(0.5), percent(0.00271), percent(0.9933), percent(0.99999)
        ('50 %', '0.27 %', '99.3 %', 'over 99.99 %')
    """
    if 0.9999 < share < 1.0:
        return "over 99.99 %"
    rest = min(share, 1.0 - share)
    digits = 0 if rest >= 0.1 or rest == 0.0 else max(1, -math.floor(math.log10(100.0 * rest)))
    digits += 0.0 < share < 0.01
    return f"{100.0 * share:.{digits}f} %"
