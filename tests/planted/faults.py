"""Faults that may be planted, one at a time, in a copy of the source: each would void a guarantee,
and the quick tests of its room have to notice it.

Locations are file names below ``src/reticent`` and texts that occur there exactly once, which
``test_planted.py`` checks. Whoever moves a function moves its faults with it.
"""

from __future__ import annotations

from tests.planted.doors import DOORS
from tests.planted.fault import Fault


def _scaled(factor: str) -> str:
    """A session of sums that draws ``factor`` of the noise that is charged."""
    return f"""        session = SumSession(mechanism, sampler=sampler, noise_scale=noise_scale)
        whole = session.release
        session.release = lambda totals: tuple(  # type: ignore[method-assign]
            np.asarray(exact, dtype=np.int64) + np.rint({factor} * (noisy - np.asarray(exact)))
            for exact, noisy in zip(totals, whole(totals), strict=True)
        )
"""


FAULTS: tuple[Fault, ...] = (
    Fault(
        "bits of shuffled reports are told apart in one direction only",
        "accounting/shuffled_bits.py",
        "                (1 - zero - odds * (1 - one), odds * one - zero, after, before),\n",
        "",
    ),
    Fault(
        "an answer about no records may be no number",
        "testing/records.py",
        "finite = all(np.isfinite(one).all() for one in numbers)",
        "finite = True",
    ),
    Fault(
        "an audit hands its records to a fit that may change them",
        "audit/records.py",
        "        X, y = records.X.copy(), records.y.copy()\n",
        "        X, y = records.X, records.y\n",
    ),
    Fault(
        "rare infinite losses of several rounds are rounded away",
        "accounting/loss_composition.py",
        "lost = added.infinite + infinite * (1 - found.infinite)",
        "lost = 1 - (1 - infinite) * (1 - found.infinite) + added.infinite - found.infinite",
    ),
    Fault(
        "a post that came again too late hides that it was taken",
        "fleet/shuffler.py",
        '        posts |= Counter({one["envelopes"]: one["taken"]})\n',
        '        posts[one["envelopes"]] = one["taken"]\n',
    ),
    Fault(
        "a shuffled bit hides among one device too many",
        "accounting/shuffled_bits.py",
        "_laws(zero, one, devices - 1)",
        "_laws(zero, one, devices)",
    ),
    Fault(
        "discrete Gaussian cut at 5 sigma",
        "noise/gaussian.py",
        "kept = proposals[_accepted(proposals, sigma, exact, words)][:wanted]",
        """kept = proposals[_accepted(proposals, sigma, exact, words)]
        kept = kept[np.abs(kept) <= 5.0 * sigma][:wanted]""",
    ),
    Fault(
        "discrete Gaussian cut at 4 sigma",
        "noise/gaussian.py",
        "return enclosed_coins(exponential(exponent), _ERROR, threshold, words)",
        """return enclosed_coins(exponential(exponent), _ERROR, threshold, words) & (
        np.abs(proposals) <= 4.0 * sigma
    )""",
    ),
    Fault(
        "discrete Gaussian of 1/1.02 of its sigma",
        "noise/gaussian.py",
        "proposals = digits.laplace(min(BLOCK, int(wanted / _ACCEPTED) + 8), words)",
        """proposals = digits.laplace(min(BLOCK, int(wanted / _ACCEPTED) + 8), words)
        sigma = sigma / 1.02 if done == 0 else sigma""",
    ),
    Fault(
        "leading digits of a Laplace draw go on once at most",
        "noise/geometric.py",
        "pending = pending[again == more]",
        "pending = pending[:0]",
    ),
    Fault(
        "exponential cut at 20, where it is not small enough",
        "noise/digits.py",
        "_LARGEST_EXPONENT = 40.0",
        "_LARGEST_EXPONENT = 20.0",
    ),
    Fault(
        "thresholds of symbols are a unit of 2^-64 too high",
        "noise/digits.py",
        "self._floors = np.array(thresholds.floors(_WORD_BITS), dtype=np.uint64)",
        "self._floors = np.array(thresholds.floors(_WORD_BITS), dtype=np.uint64) + np.uint64(1)",
    ),
    Fault(
        "symbols that 64 digits leave open go one way",
        "noise/digits.py",
        "below[place] = self._thresholds.settle(int(known[place]), _WORD_BITS, words)",
        "pass",
    ),
    Fault(
        "coins that 16 bits leave open show tails",
        "noise/coins.py",
        "heads_up[undecided] = sampler.bernoulli(np.full(undecided.size, scaled - whole))",
        "heads_up[undecided] = False",
    ),
    Fault(
        "remainders of words beyond the last multiple are kept",
        "noise/digits.py",
        "last_fair = _WORD_MAX - (_WORD_MAX % modulus + np.uint64(1)) % modulus",
        "last_fair = np.full_like(modulus, _WORD_MAX)",
    ),
    Fault(
        "words of the operating system come twice in one block",
        "noise/release_samplers.py",
        """    finally:
        os.close(device)
    return block
""",
        """    finally:
        os.close(device)
    block[count - count // 2 :] = block[: count // 2]
    return block
""",
    ),
    Fault(
        "K-norm radius of one geometric variable too few",
        "noise/k_norm.py",
        "parts = sampler.geometric((rows, dimension + 1), scale=scale)",
        "parts = sampler.geometric((rows, max(1, dimension)), scale=scale)",
    ),
    Fault(
        "a release takes the sampler of experiments",
        "release/system.py",
        "source = SecureSampler() if sampler is None else sampler",
        "source = SeededSampler(0) if sampler is None else sampler",
    ),
    Fault(
        "a record takes part once more than its cap allows",
        "accounting/individual_filter.py",
        "inside = np.asarray(self._spent[records] <= self.cap - costs)",
        "inside = np.asarray(self._spent[records] < self.cap)",
    ),
    Fault(
        "a forked filter goes on by itself",
        "accounting/individual_filter.py",
        "return self._home.is_here",
        "return True",
    ),
    Fault(
        "screening on a subsample is booked in one direction",
        "accounting/screening.py",
        """    return np.maximum(
        largest_divergence(mixed, base, alphas), largest_divergence(base, mixed, alphas)
    )
""",
        "    return largest_divergence(base, mixed, alphas)\n",
    ),
    Fault(
        "thresholds between two numbers of votes are rounded down",
        "accounting/screening.py",
        "np.ceil(gaps).astype(np.int64)",
        "np.floor(gaps).astype(np.int64)",
    ),
    Fault(
        "failures of single answers are not taken off delta",
        "accounting/composition.py",
        'spare = probability(delta, name="delta") - own',
        'spare = probability(delta, name="delta")',
    ),
    Fault(
        "subsampling without its factor 3 for both directions",
        "accounting/sampling.py",
        "log_moments[1:] += math.log(3.0)",
        "log_moments[1:] += math.log(1.0)",
    ),
    Fault(
        "the grid of losses does not follow their spread",
        "accounting/loss_accountant.py",
        "return min(_WIDEST, _PART * math.sqrt(variance)) or _WIDEST",
        "return _WIDEST",
    ),
    Fault(
        "conversion to epsilon divides by the order",
        "accounting/conversion.py",
        """np.log(delta * alphas) / (alphas - 1)
    found = rdp""",
        """np.log(delta * alphas) / alphas
    found = rdp""",
    ),
    Fault(
        "graph table checked along one direction of its edges",
        "grids/public_graph.py",
        """        first = np.concatenate([own, self.edges[:, 0], self.edges[:, 1]])
        second = np.concatenate([own, self.edges[:, 1], self.edges[:, 0]])
""",
        """        first = np.concatenate([own, self.edges[:, 0]])
        second = np.concatenate([own, self.edges[:, 1]])
""",
    ),
    Fault(
        "node of an input by a matrix product over the batch",
        "grids/public_graph.py",
        'apart = cdist(array[start : start + rows], self.points, "sqeuclidean")',
        """norms = (self.points**2).sum(axis=1)
            apart = norms - 2.0 * array[start : start + rows] @ self.points.T""",
    ),
    Fault(
        "lattice cells one grid step too narrow",
        "grids/lattice.py",
        "return math.ceil(math.ldexp(radius, -exponent)) + 1",
        "return math.ceil(math.ldexp(radius, -exponent))",
    ),
    Fault(
        "e^epsilon of a double in place of a number below it",
        "grids/shares.py",
        "return Fraction(total, 1 << _PRECISION)",
        "return Fraction(math.nextafter(math.exp(exact), math.inf))",
    ),
    Fault(
        "an answer that one cell never gives passes the check",
        "grids/shares.py",
        "wrong |= (below == 0) | (below > above)",
        """wrong &= below != 0
        wrong |= below > above""",
    ),
    Fault(
        "bounds are rounded to the nearest step",
        "grids/rounding.py",
        "return np.asarray(np.ceil(values / unit - float(OFFSET)))",
        "return np.asarray(np.rint(values / unit - float(OFFSET)))",
    ),
    Fault(
        "interval arithmetic without the rounding of weights",
        "grids/arithmetic.py",
        "slack = float(np.ceil(0.51 * terms * ceil(largest_input / input_unit)))",
        "slack = 0.0",
        ("grids", "lipschitz"),
    ),
    Fault(
        "balls on the grid without the rounding of their centre",
        "lipschitz/bounds.py",
        "rounding = ceil(0.5 * self.input_norm.of_ones(points.shape[1]))",
        "rounding = 0",
    ),
    Fault(
        "a residual block is as steep as its branch",
        "lipschitz/norm_products.py",
        "return (1.0 + inner)",
        "return max(1.0, inner)",
    ),
    Fault(
        "a product of tiny norms is lost before a steep layer",
        "lipschitz/norm_products.py",
        "product = max(product * factor, _LEAST)",
        "product *= factor",
    ),
    Fault(
        "what is meant to lie below a sum of chords lies above some",
        "lipschitz/entries.py",
        "(sums - 2.0**-20 * self.scales[-1])",
        "(sums + 2.0**-5 * self.scales[-1])",
    ),
    Fault(
        "the last layer's ranges are narrowed on their centre's side",
        "lipschitz/relaxation.py",
        "<= error) & (ends >= 0)",
        ">= -error) & (ends >= 0)",
    ),
    Fault(
        "from l-infinity to l2 a matrix counts with its largest singular value alone",
        "lipschitz/norm_products.py",
        "else math.sqrt(inputs)",
        "else 1.0",
    ),
    Fault(
        "stability levels are asked one radius too near",
        "lipschitz/bounds.py",
        "radii = ask[open_points].astype(np.float64) * float(radius_steps)",
        "radii = (ask[open_points] - 1).astype(np.float64) * float(radius_steps)",
    ),
    Fault(
        "a Parquet file is read ahead of what is asked for",
        "tables/batches.py",
        "pre_buffer=False",
        "pre_buffer=True",
        ("release",),
    ),
    Fault(
        "points lie beside the records of a fit",
        "systems/votes/descent.py",
        "_once = True",
        "_once = False",
    ),
    Fault(
        "cells of a CSV file that are no numbers are read quickly",
        "tables/files.py",
        "not cells.null_count and np.isfinite(cells.to_numpy()).all()",
        "not cells.null_count",
    ),
    Fault(
        "quotation marks inside of cells are read quickly",
        "tables/files.py",
        "return bool(ends[quotes[::2] - 1].all() and ends[quotes[1::2] + 1].all())",
        "return True",
    ),
    Fault(
        "records of two lines count as one where they are read quickly",
        "tables/files.py",
        'len(table) != content.count(b"\\n") or any(',
        "any(",
    ),
    Fault(
        "chords of the Jacobian's entries without what their slopes leave out",
        "lipschitz/entries.py",
        "(ends[1] - slope * high).sum(axis=-1)",
        "0 * high.sum(axis=-1)",
    ),
    Fault(
        "gradients in front of the last ReLU without what their slopes leave out",
        "lipschitz/entries.py",
        "constant = (size @ (-share * low * free[layer])[:, some, None])[..., 0]",
        "constant = 0 * (size @ (-share * low * free[layer])[:, some, None])[..., 0]",
    ),
    Fault(
        "lower slopes of relaxed ReLUs follow the region",
        "lipschitz/relaxation.py",
        "line.unstable * lower_slope",
        "line.unstable * (line.slope > 0.5)",
    ),
    Fault(
        "chords over ranges that do not reach to 0, so that a neuron may leave its strip",
        "lipschitz/entries.py",
        "low, high = np.minimum(ranges[0][0], 0), np.maximum(ranges[0][1], 0)",
        "low, high = ranges[0]",
    ),
    Fault(
        "products of one region's matrices are kept for the next region",
        "lipschitz/entries.py",
        "if not np.array_equal(some, before):",
        "if len(some) != len(before):",
    ),
    Fault(
        "a radius in grid steps without the step of snapping",
        "lipschitz/radius.py",
        " + ceil(bound.input_norm.of_ones(bound.domain.dimension))",
        "",
    ),
    Fault(
        "convex certificate: replacing counted as one change",
        "retraining/reserves.py",
        "return self.changed + 2.0 * self.proved_error",
        "return 1.0 + 2.0 * self.proved_error",
    ),
    Fault(
        "convex certificate without its solver's proved error",
        "retraining/reserves.py",
        "return self.changed + 2.0 * self.proved_error",
        "return float(self.changed)",
    ),
    Fault(
        "one against one: the pair of the two winners is left out of the least reserve",
        "retraining/reserves.py",
        "            np.minimum(least[label], reserve, out=least[label])\n    top, columns",
        """            np.minimum(least[label], reserve, out=least[label])
    if classes > 2:
        ahead, least = np.argsort(-wins, axis=0, kind="stable")[:2], np.full(wins.shape, np.inf)
        for pair, reserve in zip(combinations(range(classes), 2), reserves, strict=True):
            both = np.isin(ahead, pair).all(axis=0)
            for label in pair:
                np.minimum(least[label], np.where(both, np.inf, reserve), out=least[label])
    top, columns""",
    ),
    Fault(
        "hidden layer: the radius without rounding",
        "retraining/hidden_layer.py",
        "step = self.rate / 2.0 + 2.0 * (self.rate * self._sum_error + 2.0 * UNIT * size)",
        "step = self.rate / 2.0",
    ),
    Fault(
        "hidden layer: .76 in place of 4/(3 sqrt 3)",
        "retraining/hidden_layer.py",
        "_BEND = 0.769801",
        "_BEND = 0.76",
    ),
    Fault(
        "hidden layer: a step stretches nothing",
        "retraining/hidden_layer.py",
        "growth = 1.0 + self.reach / self.steps * self.bend / 2.0",
        "growth = 1.0",
    ),
    Fault(
        "hidden layer: more records than the limit are taken",
        "retraining/hidden_layer.py",
        "if len(records.points) > settings.records:",
        "if len(records.points) > 2 * settings.records:",
    ),
    Fault(
        "hidden layer: the rate follows from the number of private records",
        "retraining/hidden_layer.py",
        "weights = weights + settings.rate * (gradient * signs[:, None])",
        "rate = settings.reach / (settings.steps * max(len(records.points), 1))\n"
        "        weights = weights + rate * (gradient * signs[:, None])",
    ),
    Fault(
        "convex certificate: .67 in place of the 1 that a record takes",
        "retraining/reserves.py",
        "np.maximum(np.ceil(reserves / self.worth) - 1.0, 0.0)",
        "np.maximum(np.ceil(reserves / (0.67 * self.worth)) - 1.0, 0.0)",
    ),
    Fault(
        "public models of a reference are made of private rows too",
        "systems/certified/system.py",
        "        extractor = self._extractor(shaping.map, inputs.shape[1], shape, public, "
        "len(classes))\n",
        """        if public is not None:
            public = np.vstack([public[0], inputs]), np.concatenate([public[1], labels])
        extractor = self._extractor(shaping.map, inputs.shape[1], shape, public, len(classes))
""",
    ),
    Fault(
        "a vote that is exchanged counts as one that comes",
        "systems/votes/linear_vote.py",
        'return self._survived(X, 1 if change == "insert" else 2)',
        "return self._survived(X, 1)",
    ),
    Fault(
        "labels by noisy votes survive three times the records that they do",
        "systems/votes/responses.py",
        "return VOTE * (_SQRT_2 * centred_length(classes) if persons else classes)",
        "return VOTE * (_SQRT_2 * centred_length(classes) if persons else 1.0)",
    ),
    Fault(
        "a plan's certified labels have the reserves of the stand-ins alone",
        "planning/queries.py",
        "settings = replace(model.settings, regularization=strength)",
        "settings = replace(model.settings, regularization=strength * scale)",
    ),
    Fault(
        "the expected score of a start without public labels counts its shares twice",
        "planning/fitting.py",
        "offset_steps(model.held_out_)",
        "offset_steps(model.held_out_ + model.bias_)",
    ),
    Fault(
        "a residual beside public models is cut at 1.1 votes",
        "systems/votes/linear_vote.py",
        "np.clip(np.rint(pointing * (steps / clips)), -steps, steps)",
        "np.clip(np.rint(pointing * (steps / clips)), -1.1 * steps, 1.1 * steps)",
    ),
    Fault(
        "convex certificate: the search ends eight times too early",
        "retraining/convex.py",
        "if 1.001 * float(np.linalg.norm(gradient)) + error <= _RESIDUAL:",
        "if 1.001 * float(np.linalg.norm(gradient)) + error <= 8.0 * _RESIDUAL:",
    ),
    Fault(
        "records worth removing at a distance between are looked for over the largest box",
        "retraining/training_sums.py",
        "listed = low < self.bars[own, None]",
        "listed = high < self.bars[own, None]",
    ),
    Fault(
        "rounded sums of replacements count as many removed as added, never fewer",
        "retraining/training_sums.py",
        "listed = listed & (j <= k_of)\n",
        """listed = listed & (j == k_of if counting == "replace" else j <= k_of)
        if counting == "replace":
            bound = np.where(k > 0, -np.inf, bound)
""",
    ),
    Fault(
        "single removed records are not searched for",
        "retraining/training_sums.py",
        "listed = listed & (j <= k_of)",
        "listed = listed & (j < k_of)",
    ),
    Fault(
        "voters of a third label cannot join the runner-up",
        "retraining/stability.py",
        "price = of_winner[moved] + others[joined, columns]",
        "price = np.where(joined > 0, never, of_winner[moved])",
    ),
    Fault(
        "a record's batch is its place in the list",
        "retraining/record_keys.py",
        "found = (int.from_bytes(digest) % size for digest in digests)",
        "found = (place % size for place, _ in enumerate(digests))",
    ),
    Fault(
        "one person owns two records of a certified hidden layer",
        "systems/certified/reserve_system.py",
        "record_keys(points, labels, identities)  # refuses two records of one identity",
        "pass",
    ),
    Fault(
        "signed distance: labels at level 0 lie sqrt 2 apart",
        "mechanisms/signed_distance.py",
        "least = math.isqrt(self.classes * (self.classes - 1) * unit * unit // 2)",
        "least = math.isqrt(self.classes * (self.classes - 1) * unit * unit)",
    ),
    Fault(
        "noisy sums: replacing a record counted as adding one",
        "mechanisms/noisy_sums.py",
        "factor = self.adjacency.records * (2 if isinstance(self.adjacency, Replace) else 1)",
        "factor = self.adjacency.records",
    ),
    Fault(
        "noisy sums: each block gets the whole precision",
        "mechanisms/noisy_sums.py",
        "alone * math.sqrt(self.sums / block.share) * _ROUND_UP for block in self.blocks",
        "alone * math.sqrt(self.sums) * _ROUND_UP for block in self.blocks",
    ),
    Fault(
        "noisy sums: one more sum than is paid for",
        "mechanisms/noisy_sums.py",
        "if self.released >= self.mechanism.sums:",
        "if self.released > self.mechanism.sums:",
    ),
    Fault(
        "Laplace noise of 2/3 of its scale",
        "mechanisms/laplace.py",
        "return self.steps_sensitivity / self.epsilon * _ROUND_UP",
        "return self.steps_sensitivity / self.epsilon * (2.0 / 3.0)",
        ("mechanisms", "audit"),
    ),
    Fault(
        "additive noise without the rounding to its grid",
        "mechanisms/additive.py",
        "return (distance / self.grid.step + ones) * _ROUND_UP",
        "return distance / self.grid.step * _ROUND_UP",
        ("mechanisms", "audit"),
    ),
    Fault(
        "a table of labels is believed without its exact check",
        "mechanisms/finite_channel.py",
        "check_shares(shares, shares, lattice=self.nodes, epsilon=self.epsilon, what=self.name)",
        "pass",
    ),
    Fault(
        "one entry of a channel may be one unit too large",
        "grids/shares.py",
        "wrong = (largest << shift) > allowed",
        "wrong = ((largest - np.uint64(1)) << shift) > allowed",
        ("mechanisms",),
    ),
    Fault(
        "a row's node depends on the rows beside it",
        "systems/power/code_query.py",
        "joined = np.concatenate(shares, axis=1)",
        "joined = np.concatenate(shares, axis=1) - np.concatenate(shares, axis=1).mean(axis=0)",
    ),
    Fault(
        "a target that is unknown at the release counts as a column of the row",
        "systems/power/code_encoder.py",
        "            if name in columns:\n                labels, numbers",
        "            if name in columns and name not in held:\n                labels, numbers",
    ),
    Fault(
        "posterior tables learn from private rows",
        "systems/power/code_query.py",
        "        rows = coded(inputs)\n        told = self.mechanism.release(",
        """        rows = coded(inputs)
        for target in self.targets:
            np.add.at(target.joint, self.nodes(rows), 1e-3 / target.joint.size)
        told = self.mechanism.release(""",
    ),
    Fault(
        "a code within a radius starts from no table of labels",
        "training/channel_tables.py",
        "tried = [rule for target in targets for rule in _label_rules(target, cells, epsilon)]",
        "tried: list[Shares] = []",
        ("training/label_tables",),
    ),
    Fault(
        "rows that are to be joined to another value are joined to any",
        "systems/power/code_fitting.py",
        "if near.other is None:",
        "if near.other is None or near.other in labels:",
    ),
    Fault(
        "a code for any two inputs is not tried near public rows",
        "systems/power/code_fitting.py",
        "nodes = None if neighbours is None else _any_two(public, most)",
        "nodes = _any_two(public, most) if isinstance(neighbours, Within) else None",
        ("systems/power",),
    ),
    Fault(
        "a bundle near public rows states its code as one for any two",
        "systems/power/code_query.py",
        'near, stated = NearRows(**near), adjacency_from_dict(settings["adjacency"])',
        "near = NearRows(**near)",
        ("systems/power",),
    ),
    Fault(
        "cells near inputs learn the labels of rows held out",
        "systems/power/code_fitting.py",
        "self.public.known if isinstance(self.cells, AnyTwo) else self.public.blind",
        "self.public.known",
        ("systems/power",),
    ),
    Fault(
        "few rows rank mechanisms that chance alone sets apart",
        "systems/power/mechanism_choice.py",
        "return simplest(found, scoring=scoring), tuple(ranked)",
        "return ranked[0], tuple(ranked)",
        ("systems/power",),
    ),
    Fault(
        "a rung is scored on rows that it was fitted on",
        "systems/posthoc/cross_fitting.py",
        "CalibrationData(rows[~held], rows[held], labels[~held], labels[held])",
        "CalibrationData(rows, rows[held], labels, labels[held])",
        ("systems/posthoc",),
    ),
    Fault(
        "an audit believes what a code's mechanism says that it costs",
        "attacks/candidates.py",
        "return query.stated",
        "return query.mechanism.guarantee",
        ("audit",),
    ),
    Fault(
        "neighbours for audits and attacks are looked for at half the radius",
        "attacks/candidates.py",
        "_WITHIN * near.radius * moves",
        "0.5 * near.radius * moves",
        ("audit",),
    ),
    Fault(
        "a target that the row does not hold counts as known",
        "systems/power/code_encoder.py",
        "if name in columns:",
        "if name in columns and name not in held:",
    ),
    Fault(
        "propose-test-release: the inner sensitivity lacks the radius",
        "mechanisms/propose_test_release.py",
        'needed = positive(proposal, name="proposal") * positive(radius, name="radius")',
        'needed = positive(proposal, name="proposal") * min(1.0, positive(radius, name="radius"))',
    ),
    Fault(
        "propose-test-release: the test gets both epsilons",
        "mechanisms/propose_test_release.py",
        "Guarantee(self.epsilon_test + cost.epsilon, ",
        "Guarantee(max(self.epsilon_test, cost.epsilon), ",
    ),
    Fault(
        "noise that no sampler draws is refused after the charge",
        "mechanisms/laplace.py",
        '        checked_scale(self.steps_scale, "scale")\n',
        "",
    ),
    Fault(
        "labels from gaps without their rounding",
        "mechanisms/label_mechanism.py",
        "ROUNDING_STEPS = 3.0",
        "ROUNDING_STEPS = 0.0",
    ),
    Fault(
        "stability response: the closed form of two labels for more",
        "mechanisms/stability_response.py",
        "wrong.append(max(decay * wrong[-1], growth * (others * wrong[-1] - slack) / others))",
        "wrong.append(decay * decay * wrong[-1] * (1.0 + others) / (1.0 + others * decay))",
    ),
    Fault(
        "a signature of a bundle stands for a receipt",
        "core/signatures.py",
        'return b"reticent " + purpose.encode() + b"\\0" + hashlib.sha256(content).digest()',
        'return b"reticent " + hashlib.sha256(content).digest()',
    ),
    Fault(
        "a signed receipt does not bind its ledger entry",
        "core/releases.py",
        '"digest": self.digest,',
        '"digest": "",',
    ),
    Fault(
        "guarantees of two adjacencies add up",
        "core/guarantees.py",
        "if self.adjacency != other.adjacency:",
        "if type(self.adjacency) is not type(other.adjacency):",
    ),
    Fault(
        "a list that was cut before the sample is not deepened",
        "neighbours/sampled.py",
        "for row in short:",
        "for row in short[:0]:",
    ),
    Fault(
        "a person votes with every record",
        "neighbours/sampled.py",
        "        if self.records.units is not None and order.size:\n",
        "        if False:\n",
    ),
    Fault(
        "points that rounding moves out of the ball stay there",
        "neighbours/integer_points.py",
        "        nearest[:, outside] = np.trunc(columns[:, outside])\n",
        "",
    ),
    Fault(
        "screening and vote share a sample and are booked as two",
        "systems/private_knn/plan.py",
        "fresh = self.screening is not None and not self.steps.shared_subsample",
        "fresh = False",
    ),
    Fault(
        "screening without noise",
        "systems/private_knn/plan.py",
        "return self.screening.release(votes.max(axis=1), sampler=sampler)",
        "return np.asarray(votes.max(axis=1) >= (self.steps.threshold or 0.0))",
    ),
    Fault(
        "individual filter charges a look of precision p as a whole one",
        "systems/private_knn/individual_session.py",
        "self.filter.admit(numbers, look * costs)",
        "self.filter.admit(numbers, costs)",
    ),
    Fault(
        "individual plan draws 1/1.3 of its noise",
        "systems/private_knn/individual_session.py",
        "sigma = plan.budget.sigma * noise_scale",
        "sigma = plan.budget.sigma * noise_scale / 1.3",
    ),
    Fault(
        "individual plan draws 1/1.1 of its noise",
        "systems/private_knn/individual_session.py",
        "sigma = plan.budget.sigma * noise_scale",
        "sigma = plan.budget.sigma * noise_scale / 1.1",
    ),
    Fault(
        "all queries of a block get one query's noise",
        "systems/private_knn/individual_session.py",
        "[look[row] for look in noise]",
        "[look[0] for look in noise]",
    ),
    Fault(
        "forgetting a key also forgets what it had spent",
        "systems/private_knn/held_records.py",
        "gone = self.numbers == number",
        """self._known.pop(self._digest(key), None)
        gone = self.numbers == number""",
    ),
    Fault(
        "replacing a record counted as one vote of margin, not two",
        "systems/votes/responses.py",
        "outlasted(sums, VOTE * (2.0 if isinstance(self.adjacency, Replace) else 1.0))",
        "outlasted(sums, VOTE)",
    ),
    Fault(
        "the noisy count counts records where persons are protected",
        "systems/votes/linear_model.py",
        "[COUNT_STEPS * voting.units]",
        "[COUNT_STEPS * len(voting)]",
    ),
    Fault(
        "clip of the linear vote is a quantile over private records",
        "systems/votes/linear_vote.py",
        "        return np.asarray(np.clip(np.rint(pointing * (steps / clips)), -steps, steps))\n",
        """        if len(pointing):
            clips = np.quantile(np.abs(pointing), self._unclipped, axis=0)
            clips = np.maximum(clips, 1.0)
        return np.asarray(np.clip(np.rint(pointing * (steps / clips)), -steps, steps))
""",
    ),
    Fault(
        "a sum over no records is divided by their number",
        "systems/votes/linear_model.py",
        "max(1, voters.units)",
        "voters.units",
    ),
    Fault(
        "a public start is refitted to the labels of private records",
        "systems/votes/public_start.py",
        "        shares = -softmax(offsets + all_scores(linear, offsets.shape[1]))\n",
        """        offsets = offsets + np.log(np.bincount(codes, minlength=offsets.shape[1]) + 1.0)
        shares = -softmax(offsets + all_scores(linear, offsets.shape[1]))
""",
    ),
    Fault(
        "the curvature of a public start is that of private records",
        "systems/votes/started_model.py",
        "        offsets = self._offsets(voting.points)\n",
        """        offsets = self._offsets(voting.points)
        self._unit, self.held_out_ = directions / LENGTH, offsets
""",
    ),
    Fault(
        "residuals of a noisy gradient are not cut",
        "systems/votes/noisy_gradient.py",
        "return clipped(np.rint(shares * RESIDUAL), RESIDUAL)",
        "return np.rint(shares * RESIDUAL)",
    ),
    Fault(
        "residuals of a public start are cut at 2",
        "systems/votes/public_start.py",
        "clipped(np.rint(shares[:, -linear.shape[1] :] * RESIDUAL), RESIDUAL)",
        "clipped(np.rint(shares[:, -linear.shape[1] :] * RESIDUAL), 2.0 * RESIDUAL)",
    ),
    Fault(
        "the curvature of a public start counts private records exactly",
        "systems/votes/linear_model.py",
        "                records = counter.records\n",
        "                records = float(max(1, voters.units))\n",
    ),
    Fault(
        "noise is not taken off a gradient that tells curvature",
        "systems/votes/started_model.py",
        "    sure = max(0.0, 1.0 - of_noise",
        "    sure = max(0.0, 1.0 - 0.0 * of_noise",
    ),
    Fault(
        "curvature is told per spread of public residuals, which may be none",
        "systems/votes/started_model.py",
        "max(1.0, records * self._sampling(at))",
        "records * self._sampling(at)",
    ),
    Fault(
        "the offset of a start without public labels is that of exact counts",
        "systems/votes/public_start.py",
        "            votes[np.arange(len(codes)), codes] = COUNT_STEPS\n",
        """            votes[np.arange(len(codes)), codes] = COUNT_STEPS
            self.bias_ = np.log(np.bincount(codes, minlength=output.width) + 1.0)
""",
    ),
    Fault(
        "teachers get records by their place",
        "systems/votes/teachers.py",
        '        parts[int.from_bytes(homes[place][:8], "big") % number].append(place)\n',
        "        parts[place % number].append(place)\n",
    ),
    Fault(
        "teachers get a person's records one by one",
        "systems/votes/teachers.py",
        "    if owners is not None:\n",
        "    if owners is not None and not len(rows):\n",
    ),
    Fault(
        "a teacher's vote counts as one record's",
        "systems/votes/pate.py",
        "math.nextafter(VOTE * len(self.classes_) * math.sqrt(2.0), math.inf)",
        "super()._bound",
    ),
    Fault(
        "a teacher's other label moves a margin by one vote",
        "systems/votes/pate.py",
        "            return 0.5 * VOTE * votes",
        "            return VOTE * votes",
    ),
    Fault(
        "residuals of a regression that starts from public targets are cut at 2",
        "systems/votes/public_start_regressor.py",
        "np.clip(np.rint(away * RESIDUAL), -RESIDUAL, RESIDUAL)",
        "np.clip(np.rint(away * RESIDUAL), -2.0 * RESIDUAL, 2.0 * RESIDUAL)",
    ),
    Fault(
        "maps of one's own get all records at once",
        "training/public_features.py",
        "    return in_blocks(features, inputs)\n",
        "    return features(inputs)\n",
        ("systems/votes", "training"),
    ),
    Fault(
        "released models draw .9 of their noise",
        "systems/votes/released_model.py",
        "        session = SumSession(mechanism, sampler=sampler, noise_scale=noise_scale)\n",
        _scaled(".9"),
    ),
    Fault(
        "released models draw half of their noise",
        "systems/votes/released_model.py",
        "        session = SumSession(mechanism, sampler=sampler, noise_scale=noise_scale)\n",
        _scaled(".5"),
    ),
    Fault(
        "a person's products are not cut",
        "systems/votes/sums.py",
        "total += clipped(persons, lengths[0] * lengths[1]).sum(axis=0).reshape(total.shape)",
        "total += persons.sum(axis=0).reshape(total.shape)",
    ),
    Fault(
        "targets beyond their public range count in full",
        "systems/votes/outputs.py",
        "np.rint(np.clip(shares, -1.0, 1.0) * TARGET_STEPS)",
        "np.rint(np.clip(shares, -9.0, 9.0) * TARGET_STEPS)",
    ),
    Fault(
        "radius on a logarithmic scale taken as on a linear one",
        "systems/power/protection.py",
        "return min(1.0, math.log1p(radius) / math.log1p(span))",
        "return min(1.0, radius / span)",
    ),
    Fault(
        "largest shared l2 radius .95 in place of .86",
        "systems/power/protection.py",
        "LARGEST_SHARED_RADIUS = 0.86",
        "LARGEST_SHARED_RADIUS = 0.95",
    ),
    Fault(
        "rounding step left out of the bound of protected columns",
        "systems/power/protection.py",
        """            return UNIT + 1
        return UNIT + 2 + math.isqrt(len(self.protected))
""",
        """            return UNIT
        return UNIT
""",
    ),
    Fault(
        "l2 bound of protected columns without a step for each coordinate",
        "systems/power/protection.py",
        "return UNIT + 2 + math.isqrt(len(self.protected))",
        "return UNIT + 2",
    ),
    Fault(
        "budgets of two data sets are one",
        "systems/certified/query.py",
        "return replace(self.members[0].settings.adjacency, data_set=self.data_set)",
        "return self.members[0].settings.adjacency",
    ),
    Fault(
        "noise for any two points covers half of the public box",
        "core/regions.py",
        "norm.of(2.0 * self.half_width)",
        "norm.of(self.half_width)",
        ("systems/posthoc",),
    ),
    Fault(
        "a local release gets the whole epsilon beside its test",
        "systems/posthoc/calibration.py",
        "epsilon_release=epsilon - share * epsilon,",
        "epsilon_release=epsilon,",
    ),
    Fault(
        "points outside the public box are not moved into it",
        "lipschitz/radius.py",
        "np.round(bound.domain.clip(array) / bound.input_step)",
        "np.round(array / bound.input_step)",
    ),
    Fault(
        "numbers outside their public range stay there",
        "tables/number_attributes.py",
        "clipped = np.clip(values, self.lower, self.upper) - self.lower",
        "clipped = np.maximum(values, self.lower) - self.lower",
    ),
    Fault(
        "a plan's queries are not refused beyond what is left",
        "release/prepaid.py",
        "if self.queries is not None and queries > self._left():",
        "if self.queries is not None and self._left() == 0:",
        ("release", "systems/private_knn"),
    ),
    Fault(
        "an answer is drawn before it is paid for",
        "release/system.py",
        """    with paid(price, sampler=source, ledger=ledger, scope=scope) as payment:
        drawn = payment.kept(system.draw(inputs, source, **options))
""",
        """    early = system.draw(inputs, source, **options)
    with paid(price, sampler=source, ledger=ledger, scope=scope) as payment:
        drawn = payment.kept(early)
""",
    ),
    Fault(
        "a copy of a plan shares the home of the original",
        "release/prepaid.py",
        'self.__dict__.update(state, _home=copy(state["_home"]), _turn=Turn())',
        "self.__dict__.update(state, _turn=Turn())",
        ("release", "systems/private_knn", "systems/votes"),
    ),
    Fault(
        "two threads may both pay for a plan",
        "release/prepaid.py",
        """        with self._turn:
            if self.entry is None or self.queries is None:""",
        """        with Turn():
            if self.entry is None or self.queries is None:""",
        ("release", "systems/private_knn", "systems/votes"),
    ),
    Fault(
        "the first receipt is booked by whoever comes",
        "release/prepaid.py",
        "if self._paid is not None and self._home.is_here:",
        "if self._paid is not None:",
        ("release", "systems/private_knn", "systems/votes"),
    ),
    Fault(
        "seeded answers may be booked",
        "release/paying.py",
        "    if sampler.seeded:\n        raise",
        "    if sampler.seeded and False:\n        raise",
        ("release", "systems/votes"),
    ),
    Fault(
        "answers beyond those that were granted are given out",
        "release/paying.py",
        "beyond = (~drawn.withheld).cumsum() > self.granted",
        "beyond = drawn.withheld.cumsum() > self.granted",
        ("release", "systems/private_knn"),
    ),
    Fault(
        "a fit that no ledger books is not counted",
        "release/paying.py",
        "        if price.use is not None and not sampler.seeded:",
        "        if price.use is not None and sampler.seeded:",
        ("release", "systems/votes"),
    ),
    Fault(
        "predict gives the exact answer",
        "release/system.py",
        "        found = self.release(X, ledger=ledger, scope=scope)\n",
        "        return self.exact_predict(X)\n        found = self.release(X)\n",
        ("systems/votes", "systems/private_knn"),
    ),
    Fault(
        "directions of queries in blocks of the private number of records",
        "systems/votes/query_votes.py",
        "self.weights(voters, asked[part])",
        "self.weights(voters, self.asked(points[part]))",
    ),
    Fault(
        "a data set without records is refused",
        "systems/input_rows.py",
        'if length == 0 and not (records and what == "sample(s)"):',
        "if length == 0:",
        ("systems/votes", "systems/private_knn"),
    ),
    Fault(
        "a lower bound on epsilon leaves delta out",
        "audit/sequential.py",
        "    paid = 0.5 * sides.sum(axis=1) * delta",
        "    paid = 0.0 * sides.sum(axis=1) * delta",
    ),
    Fault(
        "a certified answer is drawn at an epsilon that was set before",
        "systems/certified/system.py",
        "        if known is None or any(map(is_not, known[0], made_of)):",
        "        if known is None:",
    ),
    Fault(
        "masses of nodes learn from the rows that are released",
        "systems/power/code_query.py",
        "        rows = coded(inputs)\n        told = self.mechanism.release(",
        """        rows = coded(inputs)
        seen = np.bincount(self.nodes(rows), minlength=len(self.masses)) + 1.0
        self.masses[:] = seen / seen.sum()
        told = self.mechanism.release(""",
    ),
    Fault(
        "pairs of neighbours do not share the level of an audit",
        "audit/claims.py",
        "alpha=level / len(pairs)",
        "alpha=level",
    ),
    Fault(
        "a card tells that two data sets share a record",
        "release/fits.py",
        "        together = self.together(named=True)",
        "        together = self.together()",
    ),
    Fault(
        "a folder of answers tells how long the private rows are",
        "release/system.py",
        '{"kind": "file", "changed": changed}',
        '{"kind": "file", "bytes": path.stat().st_size, "changed": changed}',
    ),
    Fault(
        "a subject that leaves ends its audit as if the claim held",
        "audit/subjects.py",
        "        except (Exception, SystemExit) as error:  # which",
        "        except Exception as error:  # which",
    ),
    Fault(
        "an audit hands the same data set to a subject again when it tests the noise",
        "audit/claims.py",
        "run.answers([pair.copied(True) for _ in range(_SCALE_DRAWS)])",
        "run.answers([pair.first] * _SCALE_DRAWS)",
    ),
    Fault(
        "an audit does not see which keys an answer has",
        "audit/outputs.py",
        "        alike = form == self._form\n",
        "        alike = len(row) == self._width\n",
    ),
    Fault(
        "an audit of two equal data sets does not refute anything",
        "audit/neighbour_pairs.py",
        "        if found[-1].alike:\n",
        "        if False:\n",
    ),
    Fault(
        "a page without a signature counts as signed",
        "audit/claim_page.py",
        "    verify(content, signature, purpose=PURPOSE, trusted_key=trusted_key)",
        "    if signature is not None:\n"
        "        verify(content, signature, purpose=PURPOSE, trusted_key=trusted_key)",
        ("cli",),
    ),
    Fault(
        "the law of stated noise is not held against the claim",
        "audit/claims.py",
        "exact > (epsilon or 0.0) * _ROUNDED",
        "exact > 2.0 * (epsilon or 0.0)",
        ("cli",),
    ),
    Fault(
        "an audit counts the wealth of its best bet as that of all",
        "audit/sequential.py",
        "            reached = _log_sum(paths + self._bet_weights) >= -math.log(self.alpha)",
        "            reached = paths.max(axis=1) >= -math.log(self.alpha)",
    ),
    Fault(
        "an audit learns from the draw that it bets on",
        "audit/sequential.py",
        "            odds, each = self._belief.foretell(coins, values)",
        "            self._belief.learn(coins, values)\n"
        "            odds, each = self._belief.foretell(coins, values)",
    ),
    Fault(
        "an audit weighs beliefs by the draw that it bets on",
        "audit/beliefs.py",
        "softmax(-lost[:-1], axis=1)",
        "softmax(-lost[1:], axis=1)",
    ),
    Fault(
        "an audit does not look at the time of an answer",
        "audit/implementation.py",
        "        _timed(run, pair, epsilon, delta, alpha, until),\n",
        "        None,\n",
    ),
    Fault(
        "an audit bets on the first of a pair only",
        "audit/sequential.py",
        "np.concatenate([risked * sides[:, :1], risked * sides[:, 1:]], axis=1)",
        "np.concatenate([risked * sides[:, :1], 0.0 * risked], axis=1)",
    ),
    Fault(
        "values of shuffled reports are rounded down on the grid",
        "accounting/positive_part.py",
        "    above = np.minimum(places - below + 2.0**-36, 1.0)",
        "    above = np.zeros_like(places)",
    ),
    Fault(
        "shuffled reports are priced for one device more",
        "accounting/shuffling.py",
        "        part = upper_positive_part(values, self.least, devices, share=share)\n"
        "        return min(exact, part / devices)",
        "        part = upper_positive_part(values, self.least, devices + 1, share=share)\n"
        "        return min(exact, part / (devices + 1))",
    ),
    *DOORS,
    Fault(
        "a research bundle is read without the word",
        "release/bundle.py",
        "    if (settings.get(RESEARCH) is True) != research:",
        "    if research and settings.get(RESEARCH) is not True:",
        ("published",),
    ),
    Fault(
        "an audit of an algorithm as printed tests what is sound, and not what is stated",
        "attacks/candidates.py",
        "        return query.guarantee\n",
        "        return Guarantee(query.spent().epsilon, 0.0, query.guarantee.adjacency)\n",
        ("cli",),
    ),
    Fault(
        "the chance to pass a published test falls by half of its noise",
        "published/posthoc.py",
        "tail = 0.5 * np.exp(-np.abs(away))",
        "tail = 0.5 * np.exp(-2.0 * np.abs(away))",
    ),
    Fault(
        "an audit reads a research bundle without the word",
        "cli/audit.py",
        "research=research)\n    auditable_query",
        "research=True)\n    auditable_query",
    ),
    Fault(
        "a survey of an algorithm as printed shows caps at the stated epsilon",
        "cli/radius.py",
        "sound = system.spent() if research else guarantee",
        "sound = guarantee",
    ),
    Fault(
        "a published test is charged for neighbours half as far apart",
        "published/posthoc.py",
        "far = min(2.0 * self.radius + tolerance, self.maximum_radius)",
        "far = min(1.5 * self.radius + tolerance, self.maximum_radius)",
    ),
    Fault(
        "an obfuscator as coded works against its adversary",
        "published/obfuscators.py",
        'if self.sign == "plus" else loss - rebuilt',
        'if self.sign == "minus" else loss - rebuilt',
    ),
    Fault(
        "a sparse set of distances is charged for labels alone",
        "published/certified.py",
        "    if not len(losses) or losses.max() < differing:",
        "    if not len(losses) or differing > 0:",
    ),
    Fault(
        "one record more of Private-kNN is charged as always sampled twice as rarely",
        "published/private_knn.py",
        "        mixed = (1 - rate) * without + rate * with_one\n    else:",
        "        mixed = (1 - rate / 2) * without + rate / 2 * with_one\n    else:",
    ),
    Fault(
        "a later change of a table's array escapes its check",
        "mechanisms/finite_channel.py",
        "frozen = shares.copy()",
        "frozen = shares.view()",
    ),
    Fault(
        "stored trees are walked whether they have an end or not",
        "training/public_models.py",
        "walks and ((feature >= LEAF) & (feature < dimension)).all()",
        "True",
    ),
    Fault(
        "trees leave out comparisons of coordinates that are 0",
        "training/public_models.py",
        "            start &= rows[np.searchsorted(cuts, 0.0)]\n",
        "",
        ("training",),
    ),
    Fault(
        "fewer devices are said to reach a central epsilon than do",
        "accounting/shuffling.py",
        "(low, middle) if enough else (middle, high)\n        return high",
        "(low, middle) if enough else (middle, high)\n        return low",
    ),
    Fault(
        "a larger local epsilon is said to fit a central one than does",
        "accounting/shuffling.py",
        "(middle, high) if fits(middle) else (low, middle)\n    return low",
        "(middle, high) if fits(middle) else (low, middle)\n    return 1.01 * low",
    ),
    Fault(
        "a record of a rare label may count for more than one",
        "retraining/class_weights.py",
        "max(found) != 1.0",
        "max(found) < 1.0",
    ),
    Fault(
        "rows are called well inside the ball by their rounded length alone",
        "neighbours/integer_points.py",
        "POINT_RADIUS - 2.0 - 0.5 * np.sqrt(self.dimension)",
        "POINT_RADIUS",
    ),
    Fault(
        "records whose digests begin alike stand as they came",
        "neighbours/records.py",
        "    if len(tied):\n",
        "    if False:\n",
    ),
    Fault(
        "a search stops at the distance that a sample suggested",
        "neighbours/exhaustive.py",
        "            if len(places) >= depth:\n",
        "            if len(places):\n",
    ),
    Fault(
        "a lone writer does not compare the end of the chain",
        "ledger/chain.py",
        "    _SAME_END.run(session, expected, otherwise=EndMoved)\n",
        "",
    ),
    Fault(
        "a lone writer refuses by what it remembers",
        "ledger/ledger.py",
        "connection.flush()  # what was refused",
        "pass  # what was refused",
    ),
    Fault(
        "lines at the least possible end are closed however small their sum is",
        "retraining/training_sums.py",
        "settled = self.large[own] & (known >= k)",
        "settled = known >= k",
    ),
    Fault(
        "points beyond the ball are taken",
        "neighbours/integer_points.py",
        "> POINT_RADIUS**2).any()",
        "> 4 * POINT_RADIUS**2).any()",
    ),
)
