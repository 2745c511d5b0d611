"""Mixed-integer linear programs built from blocks of variables and matrices, solved by HiGHS on
one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic, thread_time
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.errors import CertificationFailed
from reticent.core.extras import require

Variables = npt.NDArray[np.int64]
"""Column numbers of a block of variables, shape (k,)."""

FEASIBILITY = 1e-9
"""How far HiGHS may miss a constraint or an integer; its defaults are 1e-6 and 1e-7."""

_OUT_OF_TIME = "Processor time limit reached"
_TOO_LATE = "Wall time limit reached"


@dataclass(frozen=True, eq=False)
class Answer:
    """What HiGHS says about one program.

    Attributes:
        status: "optimal", "infeasible", or why it stopped without an answer ("Processor time limit
            reached", ...).
        objective: value of the best solution found; infinite on the bad side if there is none.
        bound: no solution is better than this, by HiGHS's own arithmetic.
        values: of all variables in that solution, or None.
        nodes: branch-and-bound nodes.
    """

    status: str
    objective: float
    bound: float
    values: Array | None
    nodes: int


@dataclass(eq=False)
class Program:
    """A program under construction: blocks of variables, then rows over them, then an objective."""

    _lower: list[Array] = field(default_factory=list)
    _upper: list[Array] = field(default_factory=list)
    _integer: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    _starts: list[int] = field(default_factory=lambda: [0])
    _columns: list[Variables] = field(default_factory=list)
    _entries: list[Array] = field(default_factory=list)
    _row_lower: list[Array] = field(default_factory=list)
    _row_upper: list[Array] = field(default_factory=list)
    _count: int = 0

    def variables(
        self, lower: npt.ArrayLike, upper: npt.ArrayLike, *, integer: bool = False
    ) -> Variables:
        """A new block of variables with these ends, each of shape (k,)."""
        low, high = (
            np.atleast_1d(np.asarray(lower, np.float64)),
            np.atleast_1d(np.asarray(upper, np.float64)),
        )
        self._lower.append(low)
        self._upper.append(high)
        self._integer.append(np.full(len(low), integer))
        block = np.arange(self._count, self._count + len(low))
        self._count += len(low)
        return block

    def rows(
        self, lower: npt.ArrayLike, upper: npt.ArrayLike, *terms: tuple[Variables, npt.ArrayLike]
    ) -> None:
        """Constrain sums of terms to lie between ``lower`` and ``upper``.

        Args:
            lower, upper: numbers, or one per row.
            terms: a block of k variables with a matrix of shape (rows, k), or with a vector of
                shape (k,) or a number, which stand for diagonal matrices.
        """
        parts, columns = [], []
        for block, factor in terms:
            matrix = np.asarray(factor, np.float64)
            if matrix.ndim < 2:
                matrix = np.diag(np.broadcast_to(matrix, (len(block),)))
            parts.append(matrix)
            columns.append(block)
        whole, which = np.concatenate(parts, axis=1), np.concatenate(columns)
        row, place = np.nonzero(whole)
        self._starts += (
            self._starts[-1] + np.cumsum(np.bincount(row, minlength=len(whole)))
        ).tolist()
        self._columns.append(which[place])
        self._entries.append(whole[row, place])
        self._row_lower.append(np.broadcast_to(np.asarray(lower, np.float64), (len(whole),)))
        self._row_upper.append(np.broadcast_to(np.asarray(upper, np.float64), (len(whole),)))

    def solve(
        self,
        objective: Variables,
        *,
        cpu_seconds: float | None = None,
        wall_seconds: float | None = None,
        nodes: int | None = None,
    ) -> Answer:
        """The largest sum of the ``objective`` variables.

        Args:
            objective: what is summed.
            cpu_seconds: processor time after which HiGHS is stopped, or None.
            wall_seconds: time by the clock after which it is stopped, or None.
            nodes: branch-and-bound nodes after which it stops, or None.

        Raises:
            CertificationFailed: HiGHS refuses the program.
            MissingExtra: HiGHS is not installed.
        """
        highspy = _highspy()
        solver = highspy.Highs()
        for name, value in _options(nodes).items():
            solver.setOptionValue(name, value)
        left = [np.inf if seconds is None else seconds for seconds in (cpu_seconds, wall_seconds)]
        began = thread_time()
        if min(left) <= 0:
            return Answer(
                _OUT_OF_TIME if left[0] <= 0 else _TOO_LATE,
                -np.inf,
                np.inf,
                None,
                0,
            )
        if min(left) < np.inf:
            _stop_after(solver, began + left[0], monotonic() + left[1])
        accepted = solver.passModel(self._highs_model(objective))
        if accepted == highspy.HighsStatus.kError or solver.run() == highspy.HighsStatus.kError:
            raise CertificationFailed(
                "HiGHS refused the program: expected finite weights within 1e15 and one thread"
            )
        status, info = solver.getModelStatus(), solver.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        solved = {
            highspy.HighsModelStatus.kOptimal: "optimal",
            highspy.HighsModelStatus.kInfeasible: "infeasible",
        }
        name = solved.get(status, solver.modelStatusToString(status))
        if status == highspy.HighsModelStatus.kInterrupt:
            name = _OUT_OF_TIME if thread_time() - began >= left[0] else _TOO_LATE
        integer = any(flags.any() for flags in self._integer)
        bound = info.mip_dual_bound if integer else info.objective_function_value
        return Answer(
            status=name,
            objective=float(info.objective_function_value) if found else -np.inf,
            bound=-np.inf if name == "infeasible" else float(bound),
            values=np.array(solver.getSolution().col_value) if found else None,
            nodes=max(0, int(info.mip_node_count)),
        )

    def _highs_model(self, objective: Variables) -> Any:
        highspy = _highspy()
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = self._count, len(self._starts) - 1
        cost = np.zeros(self._count)
        cost[objective] = 1.0
        model.col_cost_ = cost
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_lower_, model.col_upper_ = (
            np.concatenate(self._lower),
            np.concatenate(self._upper),
        )
        model.row_lower_ = np.concatenate([*self._row_lower, np.zeros(0)])
        model.row_upper_ = np.concatenate([*self._row_upper, np.zeros(0)])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array(self._starts)
        model.a_matrix_.index_ = np.concatenate([*self._columns, np.zeros(0, np.int64)])
        model.a_matrix_.value_ = np.concatenate([*self._entries, np.zeros(0)])
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[int(flag)] for flag in np.concatenate(self._integer)]
        return model


def _highspy() -> Any:
    return require("highspy", extra="milp")


def _stop_after(solver: Any, deadline: float, latest: float) -> None:
    """Make HiGHS stop once this thread, on which it runs, has had the processor until
    ``deadline``, or the clock shows ``latest``.
    """

    def ask(event: Any) -> None:
        if thread_time() >= deadline or monotonic() >= latest:
            event.interrupt()

    for moment in (solver.cbMipInterrupt, solver.cbSimplexInterrupt):
        moment.subscribe(ask)


def _options(nodes: int | None) -> dict[str, bool | int | float | str]:
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        # With presolve HiGHS 1.15.1 calls a solution optimal that is 0.1 % off (a 2-4-10-2 network
        # in the tests).
        "presolve": "off",
        "mip_feasibility_tolerance": FEASIBILITY,
        "primal_feasibility_tolerance": FEASIBILITY,
        "dual_feasibility_tolerance": FEASIBILITY,
        "mip_rel_gap": 1e-9,
        "mip_abs_gap": 1e-9,
    }
    if nodes is not None:
        options["mip_max_nodes"] = nodes
    return options
