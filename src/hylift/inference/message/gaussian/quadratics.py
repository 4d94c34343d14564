"""Graphs of reals and quadratics: which they are, and how message passing reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, FactorGroup
from hylift.graph.decouple import pieces
from hylift.graph.merge import merge_factors
from hylift.inference.message.links import FloatArray, Links
from hylift.inference.terms import Terms
from hylift.numerics.threads import cut
from hylift.potentials import ConditionalQuadratic, Function

Blocks = list[tuple[int, int]]

WORK = 4
"""Of a link, in the units in which blocks are cut."""


def check_gaussian(graph: FactorGraph) -> None:
    """Raises if a hidden variable is discrete, or stands in a function.

    graph: with evidence absorbed
    """
    discrete = graph.variables.num_states > 0
    if discrete.any():
        name = graph.variables.names[int(np.argmax(discrete))]
        raise UnsupportedError(
            f"GaBP is for reals, and '{name}' is discrete: use BP where all variables are "
            "discrete, and else EPBP or BVI"
        )
    for group in graph.groups:
        if isinstance(group.potential, Function) and len(group):
            name = graph.variables.names[int(group.scope[0, 0])]
            raise UnsupportedError(
                f"{group.named(0)} is a function of '{name}': GaBP needs quadratics. "
                "Use EPBP or BVI"
            )


def linked(graph: FactorGraph, *, merge: bool) -> FactorGraph:
    """The same density of hidden reals, with factors taken apart where they couple nothing, and
    those of several reals merged if so.

    Factors of one real are not merged into others: they would tell apart couplings that are alike.
    Nor is anything in a lifted graph, where factors of the same classes have different members.
    """
    narrow: list[FactorGroup] = []
    wide: list[FactorGroup] = []
    for group in graph.groups:
        for part in _parts(group):
            (wide if part.arity >= 2 else narrow).append(part)
    if merge and (graph.variables.multiplicity == 1).all():
        several = FactorGraph.unchecked(graph.variables, wide, graph.evidence, 0.0)
        wide = list(merge_factors(several, "shared").groups)
    return FactorGraph.unchecked(
        graph.variables, [*narrow, *wide], graph.evidence, graph.log_constant
    )


def _parts(group: FactorGroup) -> list[FactorGroup]:
    """The group itself where all its slots are coupled in all rows, and else its pieces."""
    assert isinstance(group.potential, ConditionalQuadratic)
    apart = ~np.eye(group.arity, dtype=bool)
    return [group] if (group.potential.A[:, apart] != 0).all() else pieces(group)


@dataclass(frozen=True, slots=True, eq=False)
class Quadratics:
    """A graph of reals without evidence as the kernels read it."""

    graph: FactorGraph
    terms: Terms
    """What couples reals."""
    links: Links
    own: FloatArray
    """(variable, 2): precision and linear part of one member, from the diagonals of all factors.
    What factors say at first, which is nothing, then leaves every belief proper."""
    room: int
    """Largest arity."""
    factor_blocks: Blocks
    variable_blocks: Blocks

    @classmethod
    def of(cls, graph: FactorGraph) -> Quadratics:
        terms = Terms.of([group for group in graph.groups if group.arity >= 2 and len(group)])
        links = Links.of(graph, terms)
        arity = np.diff(terms.slot_ptr)
        # Factors of few slots cost their links, others a factorisation.
        cost = np.concatenate([[0], np.cumsum(np.where(arity == 2, arity, arity**3))])
        held = links.variable_ptr + np.arange(len(links.variable_ptr))
        return cls(
            graph,
            terms,
            links,
            _own_terms(graph),
            int(arity.max(initial=1)),
            cut(cost, WORK),
            cut(held, WORK),
        )


def _own_terms(graph: FactorGraph) -> FloatArray:
    """(variable, 2): sums of -2 times the diagonals, and of the linear parts, at each member."""
    size = graph.num_variables
    own = np.zeros((size, 2))
    for group in graph.groups:
        if not len(group) or not group.arity:
            continue
        assert isinstance(group.potential, ConditionalQuadratic)
        precision = -2 * np.diagonal(group.potential.A, axis1=1, axis2=2)
        scope, weight = group.scope.ravel(), group.multiplicity[:, None]
        for column, values in enumerate((precision, group.potential.b)):
            own[:, column] += np.bincount(scope, (weight * values[group.row]).ravel(), size)
    return own / graph.variables.multiplicity[:, None]
