"""Graphs of reals and quadratics: their layout, walk-summability, and whether they are proper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hylift.errors import DivergentModelError, UnsupportedError
from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.message.layout import Blocks, FloatArray, own_terms, slot_counts
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets
from hylift.numerics.threads import cut
from hylift.proper.check import check_proper
from hylift.proper.gaussian import GaussianForm
from hylift.proper.improper import ImproperDirection
from hylift.rewrite.kinds import pieces
from hylift.rewrite.merge import merge_factors

WORK = 4
"""Of a link, in the units in which blocks are cut."""
MOST_SWEEPS = 100
CLOSE = 1e-3
"""Relative distance of the bounds on a radius at which it is known well enough."""
ROUNDING = 1e-12
"""Distance from 1 that rounding may explain."""


def check_gaussian(graph: FactorGraph) -> None:
    """Raise if a graph without evidence has discrete variables or factors that are functions."""
    discrete = graph.variables.num_states > 0
    if discrete.any():
        name = graph.variables.names[int(np.argmax(discrete))]
        raise UnsupportedError(
            f"GaBP is for reals, and '{name}' is discrete: use BP where all variables are "
            "discrete, and else EPBP or BVI"
        )
    for group in graph.groups:
        if group.potential.quadratic() is None and len(group):
            name = graph.variables.names[int(group.scope[0, 0])]
            raise UnsupportedError(
                f"{group.named(0)} is a function of '{name}': GaBP needs quadratics. "
                "Use EPBP or BVI"
            )


def linked(graph: FactorGraph, *, merge: bool) -> FactorGraph:
    """The same density, with factors split where they couple nothing, and those of several reals
    merged where asked for.

    Factors of one real are not merged into others: couplings that are alike would become different.
    Nothing is merged in a lifted graph, where factors of the same classes have different members.
    """
    narrow: list[FactorGroup] = []
    wide: list[FactorGroup] = []
    for group in graph.groups:
        for part in _parts(group):
            (wide if part.arity >= 2 else narrow).append(part)
    if merge and graph.is_ground:
        wide = list(merge_factors(graph.with_groups(wide, 0.0), "shared").groups)
    return graph.with_groups([*narrow, *wide])


def _parts(group: FactorGroup) -> list[FactorGroup]:
    """The group itself where all its slots are coupled in all rows, else its pieces."""
    form = group.potential.quadratic()
    assert form is not None
    apart = ~np.eye(form.num_reals, dtype=bool)
    return [group] if (form.A[:, 0, apart] != 0).all() else pieces(group)


@dataclass(frozen=True, eq=False)
class Couplings:
    """A graph of reals without evidence, laid out for the kernels."""

    graph: FactorGraph
    terms: Terms
    """The factors of two or more reals."""
    count: FloatArray  # (slot,): see `slot_counts`
    own: FloatArray
    """(variable, 2): precision and linear part of one member, from the diagonals of all factors:
    its belief before the first message."""
    room: int
    """Largest arity."""
    term_blocks: Blocks
    variable_blocks: Blocks

    @classmethod
    def of(cls, graph: FactorGraph) -> Couplings:
        joining = [group for group in graph.groups if group.arity >= 2 and len(group)]
        terms = Terms.of(joining, graph.variables.num_states)
        arity, ptr = np.diff(terms.slot_ptr), terms.incidence.ptr
        # Terms of few slots cost their messages, others an inverse.
        cost = offsets(np.where(arity == 2, arity, arity**3))
        return cls(
            graph,
            terms,
            slot_counts(graph, terms),
            np.stack(own_terms(graph.variables, graph.groups), axis=1),
            int(arity.max(initial=2)),
            cut(cost, WORK),
            cut(ptr + np.arange(len(ptr)), WORK),
        )

    @cached_property
    def by_arity(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]]:
        """Terms of one arity, their slots (term, slot), and their A (term, slot, slot)."""
        found, terms, arity = [], self.terms, np.diff(self.terms.slot_ptr)
        for size in np.unique(arity).tolist():
            alike = np.flatnonzero(arity == size)
            A = terms.theta[terms.base[alike][:, None] + np.arange(size**2)]
            slot = terms.slot_ptr[alike][:, None] + np.arange(size)
            found.append((alike, slot, A.reshape(-1, size, size)))
        return found

    def entries(self) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
        """Row, column and size |J| of all couplings of one member of each variable."""
        rows, columns, sizes = [], [], []
        for _, slot, A in self.by_arity:
            first, second = np.nonzero(~np.eye(slot.shape[1], dtype=bool))
            sizes.append((2 * np.abs(A[:, first, second]) * self.count[slot[:, first]]).ravel())
            rows.append(self.terms.slots[slot[:, first]].ravel())
            columns.append(self.terms.slots[slot[:, second]].ravel())
        return np.concatenate(rows), np.concatenate(columns), np.concatenate(sizes)


@dataclass(frozen=True, slots=True)
class Radius:
    """Bounds on the spectral radius of |R|, R = I - D^-½ J D^-½, factor by factor.

    Below 1 the model is walk-summable (Malioutov, Johnson & Willsky 2006): it is a distribution,
    and Gaussian belief propagation converges. The couplings of several factors between the same
    two reals count by their sizes; merged factors have none such where all have two slots.
    """

    lower: float
    upper: float

    @classmethod
    def of(cls, couplings: Couplings) -> Radius:
        """By power iteration from above and below: the largest (Mx)_v / x_v of a positive x is an
        upper bound, and Rayleigh's quotient a lower one, here for M = D^-1 |off-diagonal J|.

        Classes are equitable, so M takes what is constant on them to such again: the lifted graph
        has the radius of the ground graph.
        """
        precision = couplings.own[:, 0]
        if not (precision > 0).all():
            return cls(0.0, np.inf)
        if not len(couplings.terms):
            return cls(0.0, 0.0)
        weight = couplings.graph.variables.multiplicity * precision
        x, (row, column, size) = 1 / np.sqrt(precision), couplings.entries()
        lower, upper = 0.0, np.inf
        for _ in range(MOST_SWEEPS):
            image = np.bincount(row, size * x[column], len(x)) / precision
            lower = max(lower, float((weight * x) @ image) / float((weight * x) @ x))
            upper = min(upper, float((image / x).max()))
            if upper < 1 or (lower >= 1 and upper - lower <= CLOSE * upper):
                break
            # The mean with x itself does not swing to and fro between two sides of a graph.
            x = x + image
            x *= 1 / np.sqrt(float((weight * x) @ x))
        return cls(lower, upper)

    @property
    def is_below_one(self) -> bool:
        return self.upper < 1 - ROUNDING

    @property
    def is_above_one(self) -> bool:
        return self.lower >= 1 + ROUNDING


def check_definite(ground: FactorGraph, radius: Radius) -> None:
    """Raise if a ground graph without evidence is improper, with or without its bounds.

    A walk-summable model is proper.
    """
    forms = (group.potential.quadratic() for group in ground.groups if group.arity)
    possible = all(form is None or np.isfinite(form.c).all() for form in forms)
    if possible and radius.is_below_one:
        return
    variables = ground.variables
    bounded = np.isfinite(variables.lower) | np.isfinite(variables.upper)
    form = GaussianForm.of(ground) if bounded.any() else None
    if form is None:
        check_proper(ground)
        return
    try:
        form.check_definite()
    except DivergentModelError:
        loose = bounded & ~(form.precision > 0)
        at = int(np.argmax(loose if loose.any() else bounded))
        improper = ImproperDirection.of(variables, {at: 1.0})
        raise UnsupportedError(
            f"GaBP ignores bounds, and without them {improper}: {improper.rule}, or use Exact, "
            "EPBP or BVI"
        ) from None
