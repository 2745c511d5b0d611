"""The fleet demonstration: devices report a code each, a shuffler mixes them, a server counts.

The shuffler and the aggregator are processes of their own, which are asked over HTTP on this
machine. The devices share one home here, and each has a budget of its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.client import Device, Gateway
from reticent.client.steps import Retries
from reticent.core.errors import ServiceUnreachable
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.scopes import Scope
from reticent.core.signatures import opening_key, signing_key, write_key_pair
from reticent.datasets import load_adult_sample
from reticent.demos.page import Demonstration
from reticent.fleet import Counted, Round, ServerModel
from reticent.fleet.aggregator import counted, scope_of
from reticent.fleet.estimates import Shares
from reticent.fleet.sealing import enrolled
from reticent.fleet.shuffler import SEALING, SIGNING
from reticent.ledger import Ledger
from reticent.ledger.chain import ANCHOR_VARIABLE
from reticent.pages.page import Fact, Section, Table
from reticent.release.bundle import sign_bundle
from reticent.systems.power.code_encoder import CodeEncoder
from reticent.tables.attributes import Categorical
from reticent.tables.known_schemas import adult_schema
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report, silent

TARGETS = ("income", "education", "marital-status")
_INCOMES = ("low", "high")
_CAMPAIGN = "incomes"
_STARTS = Retries(attempts=120, first_pause=0.1, longest_pause=0.5)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The public settings of the demonstration.

    Attributes:
        devices: number of devices, each with one row.
        public: number of public rows.
        epsilon: local guarantee of one report.
        delta: delta of the central guarantee.
        hostile: devices that are assumed to be an attacker's.
        held_out: most held-out rows to score the server's model on.
        seed: seed of the cut and of the models.
    """

    devices: int = 2000
    public: int = 1000
    epsilon: float = 4.0
    delta: float = 1e-6
    hostile: int = 20
    held_out: int = 1600
    seed: int = 0


@dataclass(frozen=True, eq=False)
class _Released:
    """What the page shows as its system: the bundle, under the round's card."""

    encoder: CodeEncoder
    round: Round

    def card(self) -> GuaranteeCard:
        return self.round.card()

    def save(self, path: Path, /) -> object:
        return self.encoder.save(path)


def run_demo(settings: Settings | None = None, *, report: Report = silent) -> Demonstration:
    """Fit a bundle on public rows, and send the other rows' codes through two servers.

    Args:
        settings: settings, by default those for looking around.
        report: receiver of the progress, called after every stage.

    Raises:
        MissingExtra: the extra ``fleet`` is not installed.
        ServiceUnreachable: a server did not start or did not finish.
    """
    settings = Settings() if settings is None else settings
    table = load_adult_sample()
    names = np.array(_INCOMES, dtype=object)
    rows = np.column_stack([table.train_rows.astype(object), names[table.train_labels]])
    order = np.random.default_rng(settings.seed).permutation(len(rows))
    public = rows[order[: settings.public]]
    private = rows[order[settings.public :][: settings.devices]]
    schema = TabularSchema((*adult_schema().attributes, Categorical("income", _INCOMES)))
    encoder = CodeEncoder(
        epsilon=settings.epsilon, schema=schema, targets=TARGETS, random_state=settings.seed
    ).fit(public)
    report("fleet demonstration", 1, 3, float("nan"))
    with TemporaryDirectory(prefix="reticent-fleet-") as folder, _anchors(Path(folder)):
        round_, found, verdicts = _sent(Path(folder), encoder, private, settings)
    report("fleet demonstration", 2, 3, float("nan"))
    shares = {name: found.shares(encoder, name) for name in TARGETS}
    held = np.column_stack([table.test_rows.astype(object), names[table.test_labels]])
    held = held[: settings.held_out]
    learnt, alone = (
        float(
            (
                ServerModel(encoder, counts, "income", random_state=settings.seed)
                .fit(public)
                .predict(held)
                == held[:, -1]
            ).mean()
        )
        # codes as often as the bundle's public rows give them tell nothing that these do not
        for counts in (found.counts, _expected(encoder))
    )
    majority = max(float((held[:, -1] == name).mean()) for name in _INCOMES)
    truth = {name: _truth(schema, private, name, shares[name].names) for name in TARGETS}
    report("fleet demonstration", 3, 3, float("nan"))
    at = shares["income"].names.index("high")
    low, high = shares["income"].intervals()[at].tolist()
    half = (high - low) / 2
    results: dict[str, Any] = {
        "settings": asdict(settings),
        **found.report(encoder),
        "round": asdict(round_),
        "verdicts": verdicts,
        "truth": {name: values.tolist() for name, values in truth.items()},
        "accuracy": {"with reports": learnt, "public rows alone": alone, "constant": majority},
    }
    return Demonstration(
        data="adult-sample",
        title="One code from each of many devices, and nobody knows whose",
        lead=f"""Each of {settings.devices:,} devices holds one record. It draws one code, seals it
        and sends it to a shuffler. The shuffler cannot open a report, and forwards all of them in
        a random order. The aggregator opens them and cannot tell whose they are. Against everybody
        a report has local ε = {round_.epsilon:g}. Against whoever sees only what the shuffler
        forwards, ε = {round_.central:.2f} holds for everything that one device holds.""",
        facts=[
            Fact(
                float(shares["income"].values[at]),
                f"of the devices have a high income, as the codes tell, ± {100 * half:.1f} points",
                "ours",
            ),
            Fact(float(truth["income"][at]), "have one in truth"),
            Fact(learnt, "of held-out rows are right by the server's model with reports", "best"),
            Fact(alone, "are right by the model of public rows alone"),
        ],
        notes=f"""The bundle has {encoder.channel_.shape[0]} kinds of rows and
        {round_.outputs} codes, from {settings.public:,} public rows. The shuffler took
        {verdicts["taken"]:,} reports. Nothing was forwarded before {round_.least:,} were there, of
        which {round_.hostile} are assumed to be an attacker's. The aggregator opened
        {int(found.counts.sum()):,} and refused {found.refused}. Data: {table.origin}.""",
        sections=[
            Section(
                "What the aggregator learns",
                _told(shares, truth, settings.public),
                [_table(name, shares[name], truth[name]) for name in TARGETS],
            )
        ],
        system=_Released(encoder, round_),
        results=results,
        summary=f"{int(found.counts.sum()):,} reports at local epsilon {round_.epsilon:g}, central "
        f"{round_.central:.3f}: share of high incomes {shares['income'].values[at]:.1%} +- "
        f"{half:.1%} (truth {truth['income'][at]:.1%}); held-out rows right {learnt:.1%}, "
        f"public rows alone {alone:.1%}",
    )


_SHARES = """Shares of the devices, with 95 % intervals. They cover the chance in reports and in the
{public:,} public rows, which tell how labels lie within a kind of rows, and what no code tells. For
{outside} of {shown} shares the truth lies outside. It is known here only, since this is a
demonstration."""


def _told(shares: dict[str, Shares], truth: dict[str, npt.NDArray[Any]], public: int) -> str:
    """Return what the tables show, with how often their intervals miss."""
    outside = shown = 0
    for name, found in shares.items():
        ends = found.intervals()
        outside += int(((truth[name] < ends[:, 0]) | (truth[name] > ends[:, 1])).sum())
        shown += len(ends)
    return _SHARES.format(public=public, outside=outside, shown=shown)


def _table(name: str, shares: Shares, truth: npt.NDArray[Any]) -> Table:
    half = np.diff(shares.intervals(), axis=1)[:, 0] / 2
    figures = zip(shares.names, shares.values, half, 1.96 * shares.errors, truth, strict=True)
    rows = [
        (
            str(label),
            [
                f"{100 * value:.1f}",
                f"± {100 * both:.1f}",
                f"± {100 * own:.1f}",
                f"{100 * true:.1f}",
            ],
        )
        for label, value, both, own, true in figures
    ]
    columns = ["codes tell", "interval", "of reports alone", "truth"]
    return Table(name, columns, rows, f"{name}, in percent.")


def _truth(
    schema: TabularSchema, rows: npt.NDArray[Any], name: str, labels: Sequence[Any]
) -> npt.NDArray[Any]:
    column = rows[:, list(schema.column_names).index(name)]
    return np.array([(column == label).mean() for label in labels])


def _expected(encoder: CodeEncoder) -> npt.NDArray[Any]:
    """Return how often each code comes, in a million draws of the bundle's public rows."""
    query = encoder.query_
    return np.rint(1e6 * query.masses @ encoder.channel_).astype(np.int64)


def _sent(
    folder: Path, encoder: CodeEncoder, rows: npt.NDArray[Any], settings: Settings
) -> tuple[Round, Counted, dict[str, int]]:
    """Report every row, and return the round, what was counted and the shuffler's verdicts."""
    homes = {party: folder / party for party in ("shuffle", "aggregate")}
    for home in homes.values():
        home.mkdir()
        write_key_pair(home / SIGNING)
        write_key_pair(home / SEALING, sealing=True)
    owner, trusted = homes["aggregate"] / SIGNING, homes["aggregate"] / "signing-key.pub.pem"
    bundle, file = encoder.save(folder / "bundle"), folder / "round.json"
    sign_bundle(bundle, key=owner)
    signer = signing_key(homes["shuffle"] / SIGNING)
    round_ = Round.planned(
        encoder,
        campaign=_CAMPAIGN,
        number=1,
        least=len(rows),
        most=len(rows),
        hostile=settings.hostile,
        closes=int(time.time()) + 3600,
        delta=settings.delta,
        aggregator=opening_key(homes["aggregate"] / SEALING).public_key().public_bytes_raw().hex(),
        shuffler=opening_key(homes["shuffle"] / SEALING).public_key().public_bytes_raw().hex(),
        signer=signer.public_key().public_bytes_raw().hex(),
    )
    round_.write(file, key=owner)
    books = Ledger.create(folder / "ledger.sqlite")
    books.grant(scope_of(round_), round_.guarantee)
    books.close()
    ports = {party: _free_port() for party in homes}
    shared = [str(file), "--trusted-key", str(trusted)]
    own = {
        "shuffle": ["--to", f"http://127.0.0.1:{ports['aggregate']}"],
        "aggregate": ["--bundle", str(bundle), "--ledger", str(folder / "ledger.sqlite")],
    }
    with ExitStack() as running:
        for party, home in homes.items():
            command = [sys.executable, "-m", "reticent", party, "serve", *shared, *own[party]]
            command += ["--home", str(home), "--port", str(ports[party])]
            running.enter_context(_process(command))
        names = [f"device {number}" for number in range(len(rows))]
        with Device(bundle, home=folder / "devices", trusted_key=trusted) as device:
            local = Guarantee(settings.epsilon, 0.0, device.guarantee.adjacency)
            device.ledger.grant_each([Scope(subject=name) for name in names], local)
            tokens = enrolled(round_, key=signer, devices=len(rows))
            envelopes = device.report(file, rows, subject=names, token=tokens)
        addresses = {party: f"http://127.0.0.1:{port}" for party, port in ports.items()}
        with Gateway(addresses["shuffle"], round_, retries=_STARTS) as gateway:
            verdicts = gateway.send(envelopes)
            with Gateway(addresses["aggregate"], round_, retries=_STARTS) as asking:
                deadline = time.monotonic() + 600
                while (status := asking.status())["state"] != "done":
                    if status["waits"] or time.monotonic() > deadline:
                        raise ServiceUnreachable(f"aggregate: waits for {status['waits']}")
                    time.sleep(0.5)
            gateway.check()
    return (
        round_,
        counted(round_, homes["aggregate"]),
        {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
    )


@contextmanager
def _process(command: list[str]) -> Iterator[None]:
    """Run a command while the block runs."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _anchors(folder: Path) -> Iterator[None]:
    """Keep the anchors of ledgers in ``folder``, which live no longer than it."""
    before = os.environ.get(ANCHOR_VARIABLE)
    (folder / "anchors").mkdir()
    os.environ[ANCHOR_VARIABLE] = str(folder / "anchors")
    try:
        yield
    finally:
        if before is None:
            del os.environ[ANCHOR_VARIABLE]
        else:
            os.environ[ANCHOR_VARIABLE] = before


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
