"""Faults of the ledger, the service and its client; see ``faults.py``.

Each row of the attacks in docs/results/service.md and docs/results/defences.md has at least one.
"""

from __future__ import annotations

from tests.planted.fault import Fault

DOORS: tuple[Fault, ...] = (
    Fault(
        "a round of reports counts two devices too many",
        "fleet/rounds.py",
        "    return least - hostile",
        "    return least - hostile + 2",
    ),
    Fault(
        "a device takes a round's word for its central epsilon",
        "fleet/rounds.py",
        "if channel.delta(devices=devices, epsilon=self.central) > self.delta:",
        "if channel.delta(devices=devices, epsilon=self.central) > 1.0:",
    ),
    Fault(
        "the least chance of a channel is overstated",
        "accounting/shuffling.py",
        "        least = chances.min(axis=0)",
        "        least = 1.02 * chances.min(axis=0)",
    ),
    Fault(
        "reports leave in the order in which they are stored",
        "fleet/shuffler.py",
        "order = np.lexsort(keys)",
        "order = np.arange(count)",
    ),
    Fault(
        "reports leave before there are enough",
        "fleet/shuffler.py",
        "enough = held >= self.round.least",
        "enough = held >= 1",
    ),
    Fault(
        "a sealed code is as long as its digits",
        "fleet/sealing.py",
        'code.to_bytes(_CODE, "big")',
        "str(code).encode()",
    ),
    Fault(
        "intervals of a fleet leave out the chance in public rows",
        "fleet/estimates.py",
        "np.sqrt((within + between) / rows),",
        "np.sqrt(0.0 * (within + between) / rows),",
    ),
    Fault(
        "a planned code is taken whatever its central epsilon is",
        "fleet/plans.py",
        "if central <= epsilon and (",
        "if central <= 2 * epsilon and (",
    ),
    Fault(
        "a server's model takes odds the wrong way round",
        "fleet/models.py",
        "odds = channel @ (self._counts / self._counts.sum() / expected)",
        "odds = channel @ (expected / (self._counts / self._counts.sum()).clip(1e-9))",
    ),
    Fault(
        "copies of a sealed report are counted",
        "fleet/aggregator.py",
        "sealed = {content[at : at + SEALED] for at in range(0, len(content), SEALED)}",
        "sealed = [content[at : at + SEALED] for at in range(0, len(content), SEALED)]",
    ),
    Fault(
        "micro-units are rounded down",
        "ledger/charges.py",
        "units = math.ceil(value * unit)",
        "units = math.floor(value * unit)",
    ),
    Fault(
        "answers of a lease are spent again after a fork",
        "ledger/leases.py",
        "return 0 if self._closed or not self._home.is_here else self.answers - self.spent",
        "return 0 if self._closed else self.answers - self.spent",
    ),
    Fault(
        "an entry's digest leaves out the one before it",
        "ledger/chain.py",
        "return hashlib.sha256(previous + _canonical(self[:-1])).digest()",
        "return hashlib.sha256(_canonical(self[:-1])).digest()",
    ),
    Fault(
        "a reservation may be committed to two receipts",
        "ledger/charging.py",
        "other = sorted(seq for seq, found in done.items() if found != receipt)",
        "other: list[int] = []",
    ),
    Fault(
        "several answers are charged the delta of one",
        "ledger/charges.py",
        'epsilon_cost(epsilon, answers=answers), delta_cost(delta, answers=answers), "basic"',
        'epsilon_cost(epsilon, answers=answers), delta_cost(delta, answers=1), "basic"',
    ),
    Fault(
        "what fits is judged by epsilon alone",
        "ledger/charges.py",
        "and one.spent_delta + self.delta <= one.granted_delta",
        "and one.spent_delta <= one.granted_delta",
    ),
    Fault(
        "claims of one call on one budget are judged one by one",
        "ledger/charging.py",
        "budget, charge = Budget.of_row(rows[number]), together(mine)",
        "budget, charge = Budget.of_row(rows[number]), mine[-1].charge",
    ),
    Fault(
        "a row is remembered for whichever ledger has the same one",
        "ledger/charging.py",
        "return page.tip.ledger, digest",
        'return "", digest',
    ),
    Fault(
        "of an anchor's two sectors the older one counts",
        "ledger/chain.py",
        "found = two[seqs.index(max(seqs))], _SECTOR * seqs.index(min(seqs))",
        "found = two[seqs.index(min(seqs))], _SECTOR * seqs.index(min(seqs))",
    ),
    Fault(
        "a key revoked meanwhile is still charged for",
        "service/answering.py",
        "            self._keys.check(page, request.key)\n",
        "",
    ),
    Fault(
        "an idempotency key gives the answer to another request",
        "service/answering.py",
        'if bytes(row["request"]) != request.digest:',
        "if False:",
    ),
    Fault(
        "a budget is charged on whatever the chain knows of it",
        "ledger/charging.py",
        "if row is None or kind.digest(row) != digest:",
        "if row is None:",
    ),
    Fault(
        "a row that was edited is written over as it was remembered",
        "ledger/charging.py",
        "otherwise=lambda: changed(kind)",
        "otherwise=None",
    ),
    Fault(
        "a server's connections are shared with a forked process",
        "ledger/store.py",
        "if self._engine is None or self._process != os.getpid():",
        "if self._engine is None:",
    ),
    Fault(
        "a stored answer is sent as the database has it",
        "service/stored.py",
        "    page.tree.check(ANSWERS, ANSWERS.key(principal, idempotency_key), found)\n",
        "",
    ),
    Fault(
        "texts are taken for numbers where a bundle takes numbers",
        "service/catalogue.py",
        "return Numbers if self.schema is None else Answers",
        "return Answers",
    ),
    Fault(
        "a byte of an Arrow stream stands for cells of two columns",
        "service/arrow.py",
        "_need((buffers[1:, 0] >= ends[:-1]).all() and ends[-1] <= len(body))",
        "_need(ends[-1] <= len(body))",
    ),
    Fault(
        "compressed numbers of an Arrow stream are read as they stand",
        "service/arrow.py",
        " and batch.table(3) is None)",
        ")",
    ),
    Fault(
        "extensions of an Arrow stream are read as what they are stored as",
        "service/arrow.py",
        ' and b"ARROW:extension" not in schema.data)',
        ")",
    ),
    Fault(
        "an Arrow stream may hold numbers that are none",
        "service/arrow.py",
        "if not np.isfinite(table).all():",
        "if np.isinf(table).any():",
    ),
    Fault(
        "a grant for one subject opens all that begin like it",
        "service/keys.py",
        "name.startswith(grant[:-1]) if grant.endswith(ANY) else name == grant for grant in grants",
        "name.startswith(grant.removesuffix(ANY)) for grant in grants",
    ),
    Fault(
        "lists of a body are not counted before it is parsed",
        "service/structure.py",
        "if self._open > self.lists or self._commas > self.items:",
        "if False:",
    ),
    Fault(
        "a key is looked at once for good",
        "service/keys.py",
        "self._checked.get(key.id) != (known, key)",
        "key.id not in self._checked",
    ),
    Fault(
        "a key that was looked at once pays after it expired",
        "service/keys.py",
        "right whatever a row says\n        self._valid(key)\n",
        "right whatever a row says\n",
    ),
    Fault(
        "a row that was just put into the tree is not found there",
        "ledger/tree.py",
        "keys, root = list(keys), self.root",
        "keys, root = list(keys), self._root",
    ),
    Fault(
        "an answer is put into whatever row has its request's name",
        "service/stored.py",
        "values, otherwise=lambda: changed(ANSWERS))",
        "values)",
    ),
    Fault(
        "a row that the tree cannot take is forgotten by it",
        "ledger/tree.py",
        "self._root = self._put(1, self._root, self._put_there, 0)\n"
        "            self._put_there = {}",
        "items, self._put_there = self._put_there, {}\n"
        "            self._root = self._put(1, self._root, items, 0)",
        ("service",),
    ),
    Fault(
        "no earlier commit of a reservation is looked for",
        "ledger/charging.py",
        "if page.tip.seq > ends[1] else {}",
        "if False else {}",
    ),
    Fault(
        "bytes under way are not counted by key",
        "service/edge.py",
        "if self._bytes[key] + size > self._most_bytes or total + size > 4 * self._most_bytes:",
        "if False:",
    ),
    Fault(
        "the deadline is looked at in the answering thread alone",
        "service/together.py",
        "call_later(self._deadline, give_up)",
        "call_later(3600.0, give_up)",
    ),
    Fault(
        "an answer that is not read has no deadline",
        "service/connections.py",
        "if left > max(0, before - _SLOWEST):",
        "if False:",
    ),
    Fault(
        "a slow reader keeps the place of its request",
        "service/edge.py",
        "                release()\n                status",
        "                status",
    ),
    Fault(
        "a head has no deadline",
        "service/connections.py",
        'awaited, seconds = (self.cycle, "head"), self._door.head',
        'awaited, seconds = (self.cycle, "head"), 1e6',
    ),
    Fault(
        "connections are not bounded by address",
        "service/connections.py",
        "if len(mine) >= self.per_address:",
        "if False:",
    ),
    Fault(
        "who comes last gets no place",
        "service/connections.py",
        "            first.cut()\n",
        "            return False\n",
    ),
    Fault(
        "a receipt is not compared with its request and answers",
        "client/sessions.py",
        "if (receipt.request, receipt.reply) != (asked_digest, reply_digest):",
        "if False:",
    ),
    Fault(
        "a name may stand for an identity",
        "client/sessions.py",
        "named = {offer.name: offer for offer in offers if not _IDENTITY.fullmatch(offer.name)}",
        "named = {offer.name: offer for offer in offers}",
    ),
    Fault(
        "an old edition of a bundle is taken",
        "client/device.py",
        "    if older:",
        "    if False:",
    ),
    Fault(
        "the name that a bundle was signed under is not compared",
        "client/device.py",
        "if called is not None and edition.name != called:",
        "if False:",
    ),
    Fault(
        "a proxy of the environment sees what stays on this machine",
        "client/client.py",
        "trust_env=secret and proxy is None,",
        "trust_env=proxy is None,",
    ),
    Fault(
        "a key is what the database says",
        "service/keys.py",
        "    page.tree.check(KEYS, KEYS.key(identifier), found)\n",
        "",
    ),
    Fault(
        "the last entry is not compared with the head",
        "ledger/chain.py",
        "if (0, tip.genesis) != (tip.seq, tip.digest) if seq is None "
        "else (seq, digest) != tip[1:3]:",
        "if False:",
    ),
    Fault(
        "a head that was edited is taken",
        "ledger/chain.py",
        "if check and not tip.is_whole:",
        "if False:",
    ),
    Fault(
        "clients are told why the ledger fails",
        "service/problems.py",
        "told = _NO_LEDGER if status == 503 else str(error)",
        "told = str(error)",
    ),
    Fault(
        "the character zero passes the edge",
        "service/edge.py",
        'if "\\0" in scope["path"] or b"%00" in scope.get("query_string", b""):',
        "if False:",
    ),
    Fault(
        "health does not look at the ledger",
        "service/core.py",
        "        found.result()\n\n    def opens_metrics",
        "\n    def opens_metrics",
    ),
    Fault(
        "a ledger is readable by all",
        "ledger/store.py",
        "os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600",
        "os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666",
    ),
    Fault(
        "a ledger in memory is opened",
        "ledger/location.py",
        'in (None, "", ":memory:"):\n',
        'in (None, ""):\n',
    ),
)
