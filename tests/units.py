"""Models in other units than they were made in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from hylift.graph import FactorGraph, FactorGroup, Variables, interval, real
from hylift.potentials import ConditionalQuadratic, Table


def normal(mean: ArrayLike, deviation: float) -> ConditionalQuadratic:
    """-½ ((x - mean) / deviation)², with a mean for each state of a discrete slot, if several."""
    mean = np.asarray(mean, dtype=np.float64)
    A = np.full((*mean.shape, 1, 1), -0.5 / deviation**2)
    b, c = mean[..., None] / deviation**2, -0.5 * (mean / deviation) ** 2
    return ConditionalQuadratic(A[None], b[None], c[None])


def in_other_units(graph: FactorGraph, unit: float, offset: float) -> FactorGraph:
    """The graph, without functions and evidence, with its reals that many times as large, and
    that number added to each log-value."""
    domains = [
        real if domain.num_states == 0 and np.isinf(domain.lower)
        else interval(unit * domain.lower, unit * domain.upper) if domain.num_states == 0
        else domain
        for domain in graph.variables.domains
    ]  # fmt: skip
    groups = []
    for group in graph.groups:
        old = group.potential
        if isinstance(old, Table):
            new: Table | ConditionalQuadratic = Table(old.log_table + offset)
        else:
            assert isinstance(old, ConditionalQuadratic)
            new = ConditionalQuadratic(old.A / unit**2, old.b / unit, old.c + offset)
        groups.append(FactorGroup(new, group.scope, group.row, group.multiplicity))
    variables = Variables(
        tuple(domains), graph.variables.domain_id, graph.variables.names,
        graph.variables.multiplicity,
    )  # fmt: skip
    return replace(graph, variables=variables, groups=tuple(groups))
