"""From a device's row to counts: what is promised, and what each party refuses."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reticent.client import Device
from reticent.core.errors import (
    BudgetExceeded,
    IncompatibleGuarantees,
    InvalidInput,
    InvalidParameter,
    UntrustedSignature,
    WriteFailed,
)
from reticent.core.guarantees import Guarantee
from reticent.core.scopes import Scope
from reticent.core.signatures import signing_key, write_key_pair
from reticent.fleet import Round, Shuffler, check_counts
from reticent.fleet.estimates import label_shares, node_shares
from reticent.fleet.sealing import ENVELOPE, SEALED, envelope, seal, suite, unseal
from reticent.fleet.shuffler import SEALING, SIGNING, permuted
from reticent.release.bundle import sign_bundle
from tests.accounting.test_shuffling import multisets
from tests.fleet.fleets import DELTA, LABELS, Fleet, envelopes


def test_sealing_is_that_of_the_standard() -> None:
    """RFC 9180, appendix A.2.1: DHKEM(X25519), HKDF-SHA256, ChaCha20-Poly1305, base mode."""
    from cryptography.hazmat.bindings._rust import openssl
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    key = "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb"
    enc = "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a"
    text = (
        "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28"
    )
    info = b"Ode on a Grecian Urn"
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(key))
    opened = openssl.hpke._decrypt_with_aad(
        suite(), bytes.fromhex(enc + text), private, info, b"Count-0"
    )
    assert opened == b"Beauty is truth, truth beauty"
    public = private.public_key().public_bytes_raw()
    sealed = seal(opened, to=public, info=info)
    assert openssl.hpke._decrypt_with_aad(suite(), sealed, private, info, b"") == opened
    assert unseal(sealed, key=private, info=info) == opened
    for wrong in (sealed[:-1], sealed[:40] + bytes([sealed[40] ^ 1]) + sealed[41:], b""):
        with pytest.raises(InvalidInput):
            unseal(wrong, key=private, info=info)
    with pytest.raises(InvalidInput):
        unseal(sealed, key=private, info=b"another context")


def test_every_report_has_one_length(fleet: Fleet) -> None:
    shuffler = fleet.shuffler(fleet.round())
    assert {len(one) for one in envelopes(shuffler, [0, 1, 2, 9, 255, 256, 999])} == {ENVELOPE}


def test_devices_reports_are_counted_and_charged_on_both_sides(
    fleet: Fleet, tmp_path: Path
) -> None:
    round_, key = fleet.round(), fleet.aggregator_home / SIGNING
    bundle, public = fleet.encoder.save(tmp_path / "bundle"), key.with_suffix(".pub.pem")
    sign_bundle(bundle, key=key)
    round_.write(tmp_path / "round.json", key=key)
    shuffler, aggregator = fleet.shuffler(round_), fleet.aggregator(round_)
    tokens, names = shuffler.tokens(25), [f"device {one}" for one in range(25)]
    rows = np.array([[LABELS[one % 2]] for one in range(25)], dtype=object)
    with Device(bundle, home=tmp_path / "home", trusted_key=public) as device:
        for name in names:
            device.grant(name, epsilon=2.0, delta=0.0)
        sealed = device.report(tmp_path / "round.json", rows, subject=names, token=tokens)
        # again: the same bytes, no second draw, no second charge
        assert device.report(tmp_path / "round.json", rows, subject=names, token=tokens) == sealed
        budget = device.budget(names[0])[0]
        assert budget.spent_epsilon == budget.granted_epsilon
        with pytest.raises(BudgetExceeded):
            device.release(rows[:1], subject=names[0])
        other = fleet.round(delta=DELTA / 2)
        other.write(tmp_path / "other.json", key=key)
        with pytest.raises(UntrustedSignature, match="differs"):
            device.report(tmp_path / "other.json", rows, subject=names, token=tokens)
    assert Counter(shuffler.take(sealed, now=0.0)["verdicts"]) == {"taken": 25}
    assert shuffler.finish(now=round_.closes) == "closed"
    fleet.forward(shuffler, aggregator)
    assert aggregator.finish()
    assert aggregator.finish()  # counted and charged once
    found = aggregator.counted
    assert found.counts.sum() == 25
    assert found.refused == 0
    assert found.receipt.guarantee == round_.guarantee
    spent = aggregator._ledger.report(Scope(subject="animals")).budgets[0]
    assert spent.spent_epsilon == round(1e6 * round_.central)  # whole units: nothing is rounded
    assert json.dumps(found.report(fleet.encoder))
    # the two kinds of cost stay apart, in one ledger too
    scope = Scope(subject="animals")
    with pytest.raises(IncompatibleGuarantees):
        aggregator._ledger.grant(scope, fleet.encoder.guarantee)


def test_shares_are_unbiased_and_their_intervals_cover(fleet: Fleet) -> None:
    """Of 600 intervals 95 % cover: fewer than 91 % or more than 98.5 % once in 10^4 runs."""
    rng, channel = np.random.default_rng(0), fleet.encoder.channel_
    truth, covered, means = np.array([0.5, 0.3, 0.2]), [], []
    masses = np.full(3, 1 / 3)
    for _ in range(200):
        drawn = rng.multinomial(2000, truth @ channel)
        found = node_shares(drawn, channel, masses=masses, rows=300)
        ends = found.intervals()
        covered.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        means.append(found.values)
    assert 0.91 < np.mean(covered) < 0.985
    error = np.std(means, axis=0) / math.sqrt(200)
    assert (np.abs(np.mean(means, axis=0) - truth) < 4.5 * error).all()
    # three nodes and two codes: what no code tells is as among the public rows
    coarse = np.array([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]])
    few = node_shares(np.array([500, 700]), coarse, masses=np.array([0.2, 0.5, 0.3]), rows=300)
    assert not few.unbiased
    assert few.values.sum() == pytest.approx(1.0)
    assert few.values @ coarse == pytest.approx([5 / 12, 7 / 12])


def test_intervals_cover_the_chance_in_public_rows() -> None:
    """Codes of three kinds by two codes, and labels within a kind: most of the chance is in 200
    public rows. Of 1,200 intervals 95 % cover: fewer than 92.5 % or more than 98 % once in 10^4
    runs, and those of the reports alone are far below.
    """
    rng, channel = np.random.default_rng(1), np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    joint = np.array([[0.25, 0.05], [0.2, 0.2], [0.05, 0.25]])
    truth, both, reports = joint.sum(axis=0), [], []
    for _ in range(600):
        public = rng.multinomial(200, joint.ravel()).reshape(joint.shape)
        query = SimpleNamespace(
            targets=[SimpleNamespace(name="x", kind="label", joint=public, values=np.arange(2))],
            masses=public.sum(axis=1) / 200,
            rows=200,
        )
        counts = rng.multinomial(20_000, joint.sum(axis=1) @ channel)
        found = label_shares(counts, SimpleNamespace(query_=query, channel_=channel), "x")
        ends = found.intervals()
        both.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        reports.append(np.abs(found.values - truth) <= 1.96 * found.errors)
    assert 0.925 < np.mean(both) < 0.98
    assert np.mean(reports) < 0.7


def test_a_shuffler_refuses_what_is_not_one_report_of_a_device(fleet: Fleet) -> None:
    round_ = fleet.round()
    shuffler, foreign = fleet.shuffler(round_), fleet.round(number=2)
    first, token = envelopes(shuffler, [0] * 4), shuffler.tokens(1)[0]
    of_other = envelope(0, token=fleet.shuffler(foreign).tokens(1)[0], round_=foreign)
    swapped = envelope(0, token=fleet.shuffler(foreign).tokens(1)[0], round_=round_)
    one, again = (envelope(code, token=token, round_=round_) for code in (0, 1))
    answered = shuffler.take([*first, one, again, one, of_other, swapped, one[:-1]], now=0.0)
    assert answered["verdicts"][4:] == [
        "taken", "second", "taken", "foreign", "foreign", "length"
    ]  # fmt: skip
    assert answered["taken"] == 5
    assert shuffler.take([again, one], now=0.0)["verdicts"] == ["second", "taken"]
    assert shuffler.status()["reports"] == 5
    late = envelopes(shuffler, [0])
    assert shuffler.take(late, now=round_.closes)["verdicts"] == ["late"]
    assert shuffler.finish(now=round_.closes) == "void"  # fewer than `least`: nothing leaves
    assert shuffler.batch() is None
    assert shuffler.take(late, now=0.0)["verdicts"] == ["late"]
    content = (fleet.shuffler_home / "reports.sqlite").read_bytes()
    assert first[0][ENVELOPE - SEALED :] not in content


def test_a_full_round_closes_before_its_time(fleet: Fleet) -> None:
    shuffler = fleet.shuffler(fleet.round())
    sealed = envelopes(shuffler, [1] * 32)
    assert Counter(shuffler.take(sealed, now=0.0)["verdicts"]) == {"taken": 30, "late": 2}
    assert shuffler.finish(now=0.0) == "closed"


def test_the_order_tells_nothing_of_the_arrival() -> None:
    """The rank correlation of 500 places has deviation .045: beyond .2 once in 10^5 runs."""
    arrived = [number.to_bytes(SEALED, "big") for number in range(500)]
    left = permuted(arrived)
    parts = [left[at : at + SEALED] for at in range(0, len(left), SEALED)]
    assert sorted(parts) == arrived
    places = np.array([int.from_bytes(one, "big") for one in parts])
    assert abs(np.corrcoef(places, np.arange(500))[0, 1]) < 0.2
    assert permuted(arrived) != left


def test_nothing_of_arrival_or_device_is_forwarded(fleet: Fleet) -> None:
    """Token order would leave with the reports if they were not permuted: 30 in order by chance
    once in 10^32 runs.
    """
    shuffler = fleet.shuffler(fleet.round())
    tokens = sorted(shuffler.tokens(30))
    sealed = [envelope(0, token=token, round_=shuffler.round) for token in tokens]
    shuffler.take(sealed, now=0.0)
    with shuffler._posts.read() as connection:
        rows = connection.exec_driver_sql("SELECT token, sealed FROM fleet_reports").all()
    held = {bytes(report): bytes(token) for token, report in rows}
    shuffler.finish(now=0.0)
    stated, content = shuffler.batch() or ({}, b"")
    assert set(stated) == {"round", "number", "total", "digest", "signature"}
    left = [held[content[at : at + SEALED]] for at in range(0, len(content), SEALED)]
    assert sorted(left) == [token[:16] for token in tokens]
    assert left != sorted(left)


def test_an_aggregator_counts_whole_rounds_of_its_shuffler(fleet: Fleet) -> None:
    round_ = fleet.round()
    shuffler, aggregator = fleet.shuffler(round_), fleet.aggregator(round_)
    shuffler.take(envelopes(shuffler, [0, 1, 2] * 7), now=0.0)
    shuffler.finish(now=round_.closes)
    stated, content = shuffler.batch() or ({}, b"")
    for wrong, reports in (
        ({**stated, "total": 22}, content),
        (stated, content[:-SEALED]),
        (stated, content[SEALED:] + content[:SEALED]),
        ({**stated, "signature": "00" * 64}, content),
        ({}, content),
    ):
        with pytest.raises(UntrustedSignature):
            aggregator.take(wrong, reports)
    assert not aggregator.finish()
    aggregator.take(stated, content)
    aggregator.take(stated, content)
    assert aggregator.finish()
    assert aggregator.counted.counts.sum() == 21


def test_reports_that_a_shuffler_copies_or_makes_up(fleet: Fleet) -> None:
    """Copies are refused. Reports of its own are not noticed, and leave the local guarantee."""
    round_ = fleet.round()
    shuffler, aggregator = fleet.shuffler(round_), fleet.aggregator(round_)
    shuffler.take(envelopes(shuffler, [0] * 21), now=0.0)
    shuffler.finish(now=round_.closes)
    _, content = shuffler.batch() or ({}, b"")
    copied = content[:SEALED] * 2 + content[: 18 * SEALED] + bytes(SEALED)
    with shuffler._posts.write() as connection:
        shuffler._posts.change(connection, round_.digest, reports=21)
        connection.exec_driver_sql("UPDATE fleet_batches SET content = ?", (copied,))
    fleet.forward(shuffler, aggregator)
    assert aggregator.finish()
    assert (aggregator.counted.counts.sum(), aggregator.counted.refused) == (18, 3)


def test_a_shuffler_that_drops_reports_contradicts_what_it_signed(fleet: Fleet) -> None:
    shuffler = fleet.shuffler(fleet.round())
    posts = [envelopes(shuffler, [0] * 11), envelopes(shuffler, [1] * 12)]
    signed = [shuffler.take(post, now=0.0) for post in (*posts, posts[0])]
    shuffler.finish(now=shuffler.round.closes)
    statement = shuffler.status()["statement"]
    signed.append(shuffler.take(posts[1], now=0.0))  # too late, and taken before
    check_counts(shuffler.round, signed, statement)
    key = signing_key(fleet.shuffler_home / SIGNING)
    shuffler._signer = key
    fewer = shuffler._signed({"round": statement["round"], "reports": 22}, "statement")
    for told in (fewer, {**statement, "reports": 22}):
        with pytest.raises(UntrustedSignature):
            check_counts(shuffler.round, signed, told)


def test_a_round_claims_what_its_honest_devices_give(fleet: Fleet) -> None:
    """The claim is above the exact delta of every data set of the honest devices, and two devices
    more would be below it.
    """
    encoder = fleet.encoder
    table = encoder.channel_
    round_ = fleet.round(least=7, hostile=2, delta=0.02)

    def exact(devices: int, epsilon: float) -> float:
        worst = 0.0
        for others in itertools.combinations_with_replacement(range(3), devices - 1):
            laws = [multisets(table, (mine, *others)) for mine in range(3)]
            for one, two in itertools.permutations(laws, 2):
                delta = sum(max(0.0, p - math.exp(epsilon) * two[c]) for c, p in one.items())
                worst = max(worst, delta)
        return worst

    assert exact(5, round_.central) <= round_.delta
    assert exact(5, fleet.round(least=9, hostile=2, delta=0.02).central) > round_.delta
    assert round_.central < encoder.guarantee.epsilon
    # a device refuses what would need more of them, and so does the aggregator
    values = {**round_.__dict__, "central": fleet.round(least=9, hostile=2, delta=0.02).central}
    lie = Round(**{name: values[name] for name in Round.__dataclass_fields__})
    with pytest.raises(InvalidInput, match="honest"):
        lie.check(encoder)
    with pytest.raises(InvalidInput, match="honest"):
        fleet.aggregator(lie)
    with pytest.raises(InvalidParameter):
        fleet.round(least=2, hostile=2)


def test_keys_of_somebody_else(fleet: Fleet) -> None:
    with pytest.raises(InvalidInput, match="keys"):
        Shuffler(fleet.round(), fleet.aggregator_home)
    assert (fleet.shuffler_home / SEALING).stat().st_mode & 0o777 == 0o600


def test_a_campaign_without_budget_is_not_opened(fleet: Fleet) -> None:
    round_ = fleet.round()
    shuffler, aggregator = fleet.shuffler(round_), fleet.aggregator(round_, budget=0.01)
    shuffler.take(envelopes(shuffler, [0] * 30), now=0.0)
    shuffler.finish(now=0.0)
    fleet.forward(shuffler, aggregator)
    with pytest.raises(BudgetExceeded):
        aggregator.finish()
    more = Guarantee(100.0, 0.1, round_.guarantee.adjacency)
    aggregator._ledger.grant(Scope(subject="animals"), more)
    assert aggregator.finish()


def test_keys_are_never_replaced(tmp_path: Path) -> None:
    home = tmp_path / "home" / "key.pem"
    write_key_pair(home)
    before = home.read_bytes()
    with pytest.raises(InvalidInput, match="never replaced"):
        write_key_pair(home)
    assert home.read_bytes() == before
    with pytest.raises(WriteFailed):
        write_key_pair(home / "below a file.pem")
