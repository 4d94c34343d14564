"""The summary of an answer: its verdict, its top atoms and its notes."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ArgumentError, DoubtWarning, check_word
from hylift.posterior.distributions import Categorical
from hylift.posterior.marginals import STATISTICS
from hylift.words import TextTable, option, printable, worded

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior

RANKS = ("prob", *STATISTICS)
"""Numbers by which atoms are put in order: the probability of being true, or of the likeliest
state, and the statistics of reals."""

TOP = 10
"""Atoms in a summary."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary:
    """The verdict on an answer, some of its atoms, and its notes; it prints as text."""

    title: str
    verdict: str
    why: str
    """The reason for the verdict, and what to do about a doubtful one."""
    atoms: TextTable
    num_left_out: int
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join([f"{self.title}, {self.verdict}: {self.why}", *self._lines])

    def _repr_html_(self) -> str:
        head = f"<b>{escape(self.title)}, {escape(self.verdict)}</b>: {escape(self.why)}"
        return f"{head}<pre>{escape(chr(10).join(self._lines))}</pre>"

    @property
    def _lines(self) -> list[str]:
        rest = [f"… and {self.num_left_out:,} more"] if self.num_left_out else []
        table = [str(self.atoms)] if self.atoms.rows else []
        notes = (printable(f"Note: {note}", one_line=True) for note in self.notes)
        return [*table, *rest, *notes]


def summary_of(posterior: Posterior, ids: NDArray[np.int64], by: str | None, top: int) -> Summary:
    """The summary of `Posterior.summary`, about the first of these variables in order."""
    trust, shown = posterior.trust, ids[:0]
    if posterior.all_marginals is not None:
        shown = ranked(posterior, ids, by, top)
    why, left = f"{trust.why} {trust.advice}".strip(), len(ids) - len(shown)
    rows = _rows(posterior, shown)
    return Summary(
        posterior.described, trust.verdict, why, rows, left if rows.rows else 0,
        posterior.solution.notes,
    )  # fmt: skip


def ranked(
    posterior: Posterior, ids: NDArray[np.int64], by: str | None, top: int | None
) -> NDArray[np.int64]:
    """The variables with the largest numbers of this name first; those without one are last.

    by: one of `RANKS`; None is 'prob', or 'mean' where all are reals. top: how many; None for all.
    """
    if by is None:
        by = "prob" if (posterior.variables.num_states[ids] > 0).any() else "mean"
    check_rank(by, top)
    number = posterior.known_marginals().statistic(ids, by)
    order = np.argsort(np.where(np.isnan(number), np.inf, -number), kind="stable")
    return ids[order[:top]]


def check_rank(by: str | None, top: int | None) -> None:
    """Raise unless atoms can be put in order by this, and so many of them be kept."""
    if by is not None:
        check_word("number to sort by", by, RANKS)
    try:
        fits = top is None or operator.index(top) >= 1
    except TypeError:
        fits = False
    if not fits:
        raise ArgumentError(
            worded(option("top"), f" must be an integer of at least 1, not {top!r}")
        )


def warn_of_doubt(posterior: Posterior, stacklevel: int) -> None:
    """Warn that an answer is doubtful, unless the user has ended the run."""
    trust, solution = posterior.trust, posterior.solution
    is_ended = solution.result in ("stopped", "interrupted") and not solution.doubts
    if trust.verdict == "doubtful" and not is_ended:
        text = worded(f"The answer of {solution.method} is doubtful. ", trust.why, " ")
        warnings.warn(worded(text, trust.advice), DoubtWarning, stacklevel=stacklevel + 1)


def _rows(posterior: Posterior, ids: NDArray[np.int64]) -> TextTable:
    """A row per variable, with the columns that some of them need."""
    names = posterior.variables.names.render(ids).to_pylist()
    verdicts = posterior.trust.verdicts_of(ids).tolist()
    header = ("atom", "state", "prob", "mean", "std", "90 %", "verdict")
    rows = []
    for name, variable, verdict in zip(names, ids.tolist(), verdicts, strict=True):
        found = posterior.known_marginals()[variable]
        if isinstance(found, Categorical):
            state = found.states[-1] if found.is_boolean else str(found.mode)
            cells = [state, f"{found.prob(state):.4f}", "", "", ""]
        else:
            low, high = found.interval(0.9)
            cells = ["", "", f"{found.mean:.4g}", f"{found.std:.4g}", f"{low:.4g} to {high:.4g}"]
        rows.append((name, *cells, verdict or "observed"))
    used = [place for place in range(len(header)) if any(row[place] for row in rows)]
    return TextTable(
        tuple(header[place] for place in used),
        tuple(tuple(row[place] for place in used) for row in rows),
        tuple(at for at, place in enumerate(used) if header[place] in ("prob", "mean", "std")),
    )
