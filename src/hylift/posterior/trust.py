"""The verdict on an answer, and the error of each marginal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import ArgumentError, UnsupportedError
from hylift.graph import Variables
from hylift.posterior.answers import ENDS, EXACT
from hylift.words import Wording, counted, method_call, option, worded

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior

FloatArray = NDArray[np.float64]

Verdict = Literal["certified", "checked", "unchecked", "doubtful"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""From the best to the worst: errors are proven; an independent run agrees; there was none; the
answer may be wrong."""
CERTIFIED, CHECKED, UNCHECKED, DOUBTFUL = range(4)

MOST_PROB, MOST_MEAN, MOST_STD = 0.05, 0.25, 1.25
"""Errors up to which an answer is right: of a probability, of a mean in deviations, and of a
deviation as a factor."""

SMALL = 1e-3
"""Estimated error of exact inference on a grid up to which its answer is not doubtful."""

HOW_TO_CHECK = Wording("hl.check_answer(posterior, graph)", "--check")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trust:
    """The trust in an answer: a verdict for the whole and for each hidden variable.

    Errors are nan where a variable has no such number, and infinite where nothing is known. Those
    of certified variables are proven; of others, of each kind, one in twenty random models exceeds
    them somewhere.
    """

    variables: Variables
    ids: NDArray[np.int64]  # (hidden,)
    verdict: Verdict
    why: str
    """One sentence."""
    verdict_id: NDArray[np.int8]  # (hidden,): position in `VERDICTS`
    prob_error: FloatArray  # (hidden,): of any of its probabilities
    mean_error: FloatArray  # (hidden,): of its mean, in deviations
    std_factor: FloatArray  # (hidden,): of its deviation, as a factor of at least 1

    def __post_init__(self) -> None:
        arrays = (self.ids, self.verdict_id, self.prob_error, self.mean_error, self.std_factor)
        if len({array.shape for array in arrays}) > 1 or self.ids.ndim != 1:
            raise ArgumentError("trust needs one entry per hidden variable")
        if not ((self.ids >= 0) & (self.ids < len(self.variables))).all():
            raise ArgumentError("trust in a variable that does not exist")
        if not ((self.verdict_id >= 0) & (self.verdict_id < len(VERDICTS))).all():
            raise ArgumentError("trust has a verdict that does not exist")
        for array in arrays:
            array.flags.writeable = False

    @classmethod
    def same(
        cls,
        variables: Variables,
        ids: NDArray[np.int64],
        verdict: Verdict,
        why: str,
        error: float = np.inf,
    ) -> Trust:
        """The same verdict on all variables, with one error."""
        is_real = variables.num_states[ids] == 0
        errors = np.where(is_real, np.nan, error), np.where(is_real, error, np.nan)
        level = np.full(len(ids), VERDICTS.index(verdict), dtype=np.int8)
        return cls(variables, ids, verdict, why, level, *errors, 1.0 + errors[1])

    @property
    def verdicts(self) -> NDArray[np.object_]:
        """(hidden,): the verdict on each variable, in words."""
        return np.array(VERDICTS, dtype=object)[self.verdict_id]

    @property
    def advice(self) -> str:
        """Advice on a doubtful answer; empty for others."""
        if self.verdict != "doubtful":
            return ""
        if np.isfinite(np.fmin(self.prob_error, self.mean_error)).any():  # after a check
            more = method_call("SMC", particles=4096)
            return worded("More ", option("seconds"), ", or ", more, ", may settle it.")
        default = "or the default method, may have a better answer, and more "
        return worded("A check, ", HOW_TO_CHECK, ", ", default, option("seconds"), " may help.")

    @property
    def size(self) -> FloatArray:
        """(hidden,): the largest error of each variable, as a multiple of what is still right."""
        return relative_size(self.prob_error, self.mean_error, self.std_factor)

    def of(self, atom: str) -> dict[str, object]:
        """The row of `table` of one variable, by name."""
        rows: list[dict[str, object]] = self.table(atom).to_pylist()
        if len(rows) != 1:
            raise UnsupportedError(f"'{atom}' is not the name of one hidden variable")
        return rows[0]

    def verdicts_of(self, ids: NDArray[np.int64]) -> NDArray[np.object_]:
        """Verdicts on some variables, in words; empty for those that are observed."""
        found = np.full(len(self.variables), "", dtype=object)
        found[self.ids] = self.verdicts
        return found[ids]

    def column(self, ids: NDArray[np.int64]) -> pa.Array:
        """Verdicts on some variables as a column of a table; null for those that are observed."""
        words = self.verdicts_of(ids)
        return pa.array(words, pa.string(), mask=words == "")

    def table(self, atoms: str | Iterable[str] | None = None) -> pa.Table:
        """Columns atom, verdict, prob_error, mean_error and std_factor, the worst first.

        `atoms`: names, predicates or patterns; by default all hidden variables.
        """
        order = np.lexsort((self.ids, -self.size, -self.verdict_id))
        if atoms is not None:
            observed = np.ones(len(self.variables), dtype=bool)
            observed[self.ids] = False
            order = order[np.isin(self.ids[order], self.variables.matching(atoms, observed))]
        columns: dict[str, object] = {
            "atom": self.variables.names.render(self.ids[order]),
            "verdict": pa.array(self.verdicts[order], pa.string()),
        }
        for name in ("prob_error", "mean_error", "std_factor"):
            values = getattr(self, name)[order]
            columns[name] = pa.array(values, mask=np.isnan(values))
        return pa.table(columns)

    def __repr__(self) -> str:
        told = f"{self.why} {self.advice}".strip()
        return f"Trust({self.verdict}, {counted(len(self.ids), 'hidden variable')}: {told})"


def relative_size(prob: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    """The largest of three errors (hidden,), as a multiple of what is still right.

    Reals are those without an error of a probability; what should be known and is nan is infinite.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        of_real = np.maximum(mean / MOST_MEAN, np.log(std) / np.log(MOST_STD))
    size = np.where(np.isnan(prob), of_real, prob / MOST_PROB)
    return np.where(np.isnan(size), np.inf, size)


def trust_of(posterior: Posterior) -> Trust:
    """The trust in an answer that no other run was compared with."""
    verdict, why = _verdict(posterior)
    error = np.inf
    if verdict == "certified":
        error = max(posterior.solution.marginal_error or 0.0, EXACT)
    ids = np.flatnonzero(~posterior.observed)
    return Trust.same(posterior.variables, ids, verdict, why, error)


def of_assignment(posterior: Posterior) -> Trust:
    """The trust in the best assignment alone, where marginals were not asked for."""
    return trust_of(replace(posterior, all_marginals=None, checked=None))


def _verdict(posterior: Posterior) -> tuple[Verdict, str]:
    solution, log_z = posterior.solution, posterior.log_partition
    if solution.doubts:
        return "doubtful", solution.doubts[0]
    if posterior.all_marginals is None:
        best = posterior.assignment
        if best is not None:
            is_proven, what = best.kind == "exact", "that this assignment is the best"
        else:
            is_proven = log_z is not None and log_z.kind in ("exact", "interval")
            what = "how far log Z is off"
        if is_proven:
            return "certified", f"It is proven {what}."
        return "unchecked", f"It is not known {what}."
    if solution.is_certified and solution.result == "converged":
        return "certified", "Nothing was approximated, and the numerical error is bounded."
    error = solution.marginal_error  # of exact inference
    if error is not None and error <= SMALL:
        return "unchecked", worded(
            f"A finer grid, or rounding, changes log Z and any probability by about {error:.1g}; "
            "what lies between all nodes, where reals were on nodes, was not seen: ",
            HOW_TO_CHECK,
            " looks for it.",
        )
    if solution.result != "converged":
        return "doubtful", f"{solution.method} ended early: {ENDS[solution.result]}."
    return "unchecked", worded(
        f"No independent run was compared with this answer of {solution.method}: ",
        HOW_TO_CHECK,
        " does that.",
    )
