"""Distances between the marginals of two posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError, UnsupportedError
from hylift.graph import Variables
from hylift.posterior.distributions.divergence import distances, divergences
from hylift.posterior.marginals import Marginals
from hylift.words import Wording, counted

if TYPE_CHECKING:
    from hylift.posterior.posterior import Posterior


ASK_FOR_MARGINALS = Wording(
    "run infer(…) with 'marginals' among the tasks", "run `hylift infer` with --task marginals"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """The distance of marginals from trusted ones, variable by variable."""

    variables: Variables
    ids: NDArray[np.int64]  # (compared,)
    kl: NDArray[np.float64]  # (compared,)
    """KL(trusted || other) of the marginals, in nats; infinite where the other has no mass."""
    l1: NDArray[np.float64]  # (compared,)
    """|mean - mean| of reals, Σ |p - q| over the states of discrete variables."""

    def __post_init__(self) -> None:
        for array in (self.ids, self.kl, self.l1):
            array.flags.writeable = False

    @property
    def mean_kl(self) -> float:
        return _mean(self.kl)

    @property
    def max_kl(self) -> float:
        return float(self.kl.max(initial=0.0))

    @property
    def mean_l1(self) -> float:
        return _mean(self.l1)

    @property
    def max_l1(self) -> float:
        return float(self.l1.max(initial=0.0))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Comparison({counted(len(self), 'variable')}, "
            f"KL mean {self.mean_kl:.3g}, max {self.max_kl:.3g}; "
            f"l1 mean {self.mean_l1:.3g}, max {self.max_l1:.3g})"
        )

    def to_arrow(self) -> pa.Table:
        """Columns atom, kl and l1, one row per variable, the worst first."""
        worst = np.lexsort((self.ids, -self.l1, -self.kl))
        names = self.variables.names.render(self.ids[worst])
        return pa.table({"atom": names, "kl": self.kl[worst], "l1": self.l1[worst]})


def compare(trusted: Posterior, other: Posterior, ids: NDArray[np.int64]) -> Comparison:
    """The distances of marginals from trusted ones; shared pairs are compared once."""
    check_comparable(trusted, other)
    p, q = trusted.known_marginals(), other.known_marginals()
    kl, l1 = np.empty(len(ids)), np.empty(len(ids))
    batches = p.batch[ids].astype(np.int64) * len(q.batches) + q.batch[ids]
    for pair in np.unique(batches).tolist():
        at = np.flatnonzero(batches == pair)
        one, two = p.batches[pair // len(q.batches)], q.batches[pair % len(q.batches)]
        size = two.batch_shape[0]
        rows, place = np.unique(
            p.row[ids[at]].astype(np.int64) * size + q.row[ids[at]], return_inverse=True
        )
        some, others = one[rows // size], two[rows % size]
        kl[at] = divergences(some, others)[place]
        l1[at] = distances(some, others)[place]
    return Comparison(trusted.variables, ids, kl, l1)


def check_comparable(trusted: Posterior, other: Posterior) -> None:
    """Raise an error unless both have marginals of the same variables given the same evidence."""
    for posterior in (trusted, other):
        if posterior.all_marginals is None:
            raise UnsupportedError(
                f"the posterior of '{posterior.solution.method}' has no marginals to compare",
                ASK_FOR_MARGINALS,
            )
    check_variables(trusted.variables, other.variables)
    check_evidence(
        trusted.observed,
        trusted.known_marginals(),
        other.observed,
        other.known_marginals(),
        trusted.variables,
    )


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0


def check_variables(variables: Variables, others: Variables) -> None:
    """Raise an error unless these are the same variables, in the same order."""
    if variables is others:
        return
    if len(variables) != len(others):
        raise UnsupportedError(
            f"posteriors of {counted(len(variables), 'variable')} and of {len(others):,} cannot be "
            "compared: both must be of one graph"
        )
    names, other_names = (
        each.names.render(np.arange(len(each))).to_numpy(zero_copy_only=False)
        for each in (variables, others)
    )
    _refuse(names != other_names, names, "is not the same variable in both posteriors")
    pairs = variables.domain_id.astype(np.int64) * len(others.domains) + others.domain_id
    differs = [
        pair
        for pair in np.unique(pairs).tolist()
        if variables.domains[pair // len(others.domains)]
        != others.domains[pair % len(others.domains)]
    ]
    _refuse(np.isin(pairs, differs), names, "does not have the same domain in both posteriors")


def check_evidence(
    observed: NDArray[np.bool_],
    p: Marginals,
    others: NDArray[np.bool_],
    q: Marginals,
    variables: Variables,
) -> None:
    """Raise an error unless both posteriors have the same evidence."""
    if (observed != others).any():
        at = int(np.argmax(observed != others))
        raise EvidenceError(
            f"'{variables.names[at]}' is observed in one posterior and hidden in the other: "
            "compare answers to the same evidence"
        )
    seen = np.flatnonzero(observed)
    differs = p.modes(seen) != q.modes(seen)
    if differs.any():
        name = variables.names[int(seen[np.argmax(differs)])]
        raise EvidenceError(
            f"'{name}' is observed with different values in the posteriors: compare answers to "
            "the same evidence"
        )


def _refuse(wrong: NDArray[Any], names: NDArray[Any], why: str) -> None:
    if wrong.any():
        raise UnsupportedError(f"'{names[np.argmax(wrong)]}' {why}: both must be of one graph")
