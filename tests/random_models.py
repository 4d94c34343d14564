"""Random small graphs with every kind of potential, as Hypothesis strategies."""

from __future__ import annotations

from typing import Literal

import numpy as np
from hypothesis import strategies as st

from hylift.graph import (
    Evidence,
    FactorGraph,
    FactorGroup,
    Names,
    Variables,
    boolean,
    categorical,
    interval,
    real,
)
from hylift.potentials import ConditionalQuadratic, Function, Potential, Table

DISCRETE = [boolean, categorical(3), categorical(1), categorical(["a", "b", "c", "d"])]


def bumps(*arguments: np.ndarray) -> np.ndarray:
    """A smooth function of any number of slots and at least two parameters."""
    *slots, height, shift = arguments
    total = sum((place + 1) * np.asarray(slot) for place, slot in enumerate(slots))
    return height * np.cos(total + shift)


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    max_discrete: int = 3,
    max_reals: int = 3,
    max_bounded: int = 0,
    functions: Literal["nowhere", "of bounded reals", "anywhere"] = "nowhere",
    hard: bool = True,
    soft: bool = True,
) -> FactorGraph:
    """A proper model with evidence: every real has a square of its own, or bounds."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed of the parameters"))
    num_discrete = draw(st.integers(0, max_discrete), label="discrete variables")
    num_reals = draw(st.integers(0, max_reals), label="reals")
    num_bounded = draw(st.integers(0, min(max_bounded, num_reals)), label="reals with bounds")
    domains = [draw(st.sampled_from(DISCRETE)) for _ in range(num_discrete)]
    domains += [interval(-1.5, 2.0)] * num_bounded + [real] * (num_reals - num_bounded)
    order = draw(st.permutations(range(len(domains))), label="order of the variables")
    variables = Variables.of([domains[i] for i in order], Names.numbered(len(domains)))
    num_states = variables.num_states
    discrete, reals = np.flatnonzero(num_states > 0), np.flatnonzero(num_states == 0)

    in_functions = np.isfinite(variables.lower) | (num_states > 0) | (functions == "anywhere")

    bounds_hold = np.isfinite(variables.lower) & (rng.random(len(variables)) < 0.3)
    groups = [_square(rng, v) for v in reals if not bounds_hold[v]]
    for _ in range(draw(st.integers(0, 4), label="groups")):
        kinds = ["table", "quadratic"] + ["function"] * (functions != "nowhere")
        kind = draw(st.sampled_from(kinds))
        if kind == "table":
            scope = _some(rng, discrete, rng.integers(0, 4))
            groups.append(_group(rng, _table(rng, num_states[scope], hard), scope))
        elif kind == "quadratic" and len(reals):
            inside = _some(rng, discrete, rng.integers(0, 3))
            scope = np.concatenate([inside, _some(rng, reals, rng.integers(1, 4))])
            potential = _quadratic(rng, num_states[inside], len(scope) - len(inside), hard)
            groups.append(_group(rng, potential, scope))
        elif kind == "function" and in_functions.any():
            chosen = _some(rng, np.flatnonzero(in_functions), rng.integers(1, 4))
            scope = np.concatenate([np.intersect1d(chosen, d) for d in (discrete, reals)])
            num_discrete = np.count_nonzero(num_states[scope])
            counts = num_discrete, len(scope) - num_discrete
            groups.append(_group(rng, Function(bumps, *counts, rng.normal(size=(2, 2))), scope))
    graph = FactorGraph(variables, tuple(groups), log_constant=float(rng.normal()))
    return graph.observe(_evidence(rng, variables, soft))


def _some(rng: np.random.Generator, ids: np.ndarray, count: int) -> np.ndarray:
    return rng.permutation(ids)[:count].astype(np.int32)


def _group(rng: np.random.Generator, potential: Potential, scope: np.ndarray) -> FactorGroup:
    """A few factors over one scope, with shared rows and multiplicities."""
    count = int(rng.integers(1, 4))
    return FactorGroup(
        potential,
        np.repeat(scope[None].astype(np.int32), count, axis=0),
        rng.integers(0, potential.num_rows, count),
        rng.choice([1.0, 1.0, 2.0, 0.5], count),
    )


def _table(rng: np.random.Generator, num_states: np.ndarray, hard: bool) -> Table:
    log_table = rng.normal(size=(2, *num_states))
    if hard and log_table.size > 4:
        log_table[rng.random(log_table.shape) < 0.2] = -np.inf
    return Table(log_table)


def _quadratic(
    rng: np.random.Generator, num_states: np.ndarray, num_reals: int, hard: bool
) -> ConditionalQuadratic:
    root = rng.normal(size=(2, *num_states, num_reals, num_reals)) / 2
    # Half of the couplings are zero, so that some reals fall apart.
    root *= rng.random((num_reals, num_reals)) < 0.5
    A = -root @ np.swapaxes(root, -1, -2)
    c = rng.normal(size=(2, *num_states))
    if hard and c.size > 4:
        c[rng.random(c.shape) < 0.1] = -np.inf
    return ConditionalQuadratic(A, rng.normal(size=A.shape[:-1]), c)


def _square(rng: np.random.Generator, variable: int) -> FactorGroup:
    potential = ConditionalQuadratic.squared_distance(rng.uniform(0.3, 1.0), [1.0], rng.normal())
    return FactorGroup(potential, np.array([[variable]], dtype=np.int32))


def _evidence(rng: np.random.Generator, variables: Variables, soft: bool) -> Evidence:
    """Each variable is observed with a chance of one in four."""
    ids = np.flatnonzero(rng.random(len(variables)) < 0.25)
    num_states = variables.num_states[ids]
    value = np.where(
        num_states > 0, rng.integers(0, np.maximum(num_states, 1)), rng.uniform(-1, 1, len(ids))
    )
    with_error = soft & (num_states == 0) & (rng.random(len(ids)) < 0.5)
    return Evidence.of(ids.astype(np.int32), value, np.where(with_error, 0.7, 0.0))
