"""Gaussian models for message passing, and how its answers are compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from answers import log_z
from hylift.graph import Evidence, FactorGraph, FactorGroup, Variables, real
from hylift.inference import Exact, infer
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic

Floats = NDArray[np.float64]

ALL = ("marginals", "logz", "map")


def moments(posterior: Posterior) -> tuple[Floats, Floats]:
    """Means and variances of what is not observed."""
    table = posterior.marginals()
    return np.asarray(table["mean"]), np.asarray(table["std"]) ** 2


def assert_exact(graph: FactorGraph, found: Posterior) -> None:
    exact = infer(graph, Exact(), tasks=ALL)
    assert found.solution.result == "converged"
    assert found.log_partition is not None
    assert found.log_partition.kind == "exact"
    assert found.solution.notes == ()
    assert log_z(found) == pytest.approx(log_z(exact), rel=1e-9, abs=1e-9)
    for actual, expected in zip(moments(found), moments(exact), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)
    assert found.assignment is not None
    assert exact.assignment is not None
    assert found.assignment.energy == pytest.approx(exact.assignment.energy, rel=1e-9, abs=1e-9)
    assert found.assignment.kind == "exact"


def assert_same(actual: Posterior, expected: Posterior, tolerance: float = 1e-10) -> None:
    assert actual.solution.result == expected.solution.result
    assert actual.solution.steps == expected.solution.steps
    assert log_z(actual) == pytest.approx(log_z(expected), rel=tolerance, abs=tolerance)
    for found, wanted in zip(moments(actual), moments(expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def quadratic_of(J: Floats, h: Floats) -> FactorGraph:
    """exp(-½ xᵀ J x + hᵀ x), a factor for each entry."""
    size = len(h)
    names = [f"x{i}" for i in range(size)]
    factors = [(ConditionalQuadratic.shared([[-J[i, i] / 2]], [h[i]]), [names[i]])
               for i in range(size)]  # fmt: skip
    factors += [
        (ConditionalQuadratic.product(-J[i, j]), [names[i], names[j]])
        for i in range(size)
        for j in range(i)
        if J[i, j]
    ]
    return FactorGraph.build(dict.fromkeys(names, real), factors)


def all_alike(size: int, coupling: float) -> FactorGraph:
    """Every real coupled to every other one."""
    J = np.full((size, size), coupling) + (1 - coupling) * np.eye(size)
    return quadratic_of(J, np.arange(size, dtype=float))


def with_chord(coupling: float) -> FactorGraph:
    """A square with one diagonal, whose couplings do not agree."""
    J = np.eye(4)
    for i, j, sign in [(0, 1, -1), (1, 2, 1), (2, 3, 1), (3, 0, 1), (0, 2, 1)]:
        J[i, j] = J[j, i] = sign * coupling
    return quadratic_of(J, np.array([1.0, 0.0, 2.0, -1.0]))


@st.composite
def wide_forests(draw: st.DrawFn) -> FactorGraph:
    """Forests of factors of two to five reals, some of them measured."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    groups, size = [], 1
    for _ in range(draw(st.integers(1, 6), label="factors")):
        arity = int(rng.integers(2, 6))
        scope = np.append(rng.integers(size), np.arange(size, size + arity - 1))
        size += arity - 1
        root = rng.normal(size=(arity, arity))
        A = -(root @ root.T) / 2 - 0.02 * np.eye(arity)
        potential = ConditionalQuadratic.shared(A, rng.normal(size=arity), rng.normal())
        groups.append(FactorGroup(potential, rng.permutation(scope)[None].astype(np.int32)))
    graph = FactorGraph(Variables.uniform(real, size), tuple(groups), log_constant=0.7)
    ids = np.flatnonzero(rng.random(size) < 0.2).astype(np.int32)
    error = rng.choice([0.0, 0.5], len(ids))
    return graph.observe(Evidence.of(ids, rng.normal(size=len(ids)), error))


@st.composite
def loopy_graphs(draw: st.DrawFn) -> FactorGraph:
    """Walk-summable models of factors of two to four reals, anywhere."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    size = draw(st.integers(2, 7), label="reals")
    own, groups = np.full(size, 0.1), []
    for _ in range(draw(st.integers(1, 8), label="factors")):
        arity = int(rng.integers(2, min(size, 4) + 1))
        scope = rng.permutation(size)[:arity].astype(np.int32)
        A = rng.normal(size=(arity, arity))
        A = A + A.T
        np.fill_diagonal(A, 0.0)
        count = float(rng.choice([1.0, 1.0, 2.0]))
        own[scope] += 1.05 * count * np.abs(A).sum(axis=1)
        potential = ConditionalQuadratic.shared(A, rng.normal(size=arity))
        groups.append(FactorGroup(potential, scope[None], multiplicity=np.array([count])))
    squares = ConditionalQuadratic(-own[:, None, None], np.zeros((size, 1)), np.zeros(size))
    groups.append(FactorGroup(squares, np.arange(size, dtype=np.int32)[:, None]))
    return FactorGraph(Variables.uniform(real, size), tuple(groups))


@st.composite
def symmetric_gaussians(draw: st.DrawFn) -> FactorGraph:
    """Copies of two reals, related to each other and to a hub, some of them measured."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    num_copies = draw(st.integers(2, 6), label="copies")
    copy = np.arange(num_copies)
    first, second, hub = copy, num_copies + copy, np.full(num_copies, 2 * num_copies)
    i, j = np.nonzero(~np.eye(num_copies, dtype=bool))
    relations = [
        (first, second),
        (first, np.roll(first, 1)),
        (first[i], first[j]),
        (second, hub),
        (first, second, hub),
        (first, np.roll(first, 1), np.roll(second, 1), hub),
    ]
    groups, own = [], np.full(2 * num_copies + 1, 0.2)
    for number in sorted(draw(st.sets(st.integers(0, 5), min_size=1), label="relations")):
        scope = np.stack(relations[number], axis=1).astype(np.int32)
        A = rng.choice([-1.0, 0.5, 1.0], (scope.shape[1],) * 2)
        A = A + A.T
        np.fill_diagonal(A, 0.0)
        potential = ConditionalQuadratic.shared(A, rng.choice([-1.0, 0.5, 1.0], len(A)))
        groups.append(FactorGroup(potential, scope))
        weight = np.tile(np.abs(A).sum(axis=1), len(scope))
        own += np.bincount(scope.ravel(), weight, len(own))
    squares = ConditionalQuadratic(-own[:, None, None], 0 * own[:, None], 0 * own)
    groups.append(FactorGroup(squares, np.arange(len(own), dtype=np.int32)[:, None]))
    graph = FactorGraph(Variables.uniform(real, len(own)), tuple(groups))
    ids = np.flatnonzero(rng.random(len(own)) < 0.15).astype(np.int32)
    error = rng.choice([0.0, 2.0], len(ids))
    return graph.observe(Evidence.of(ids, np.full(len(ids), 0.5), error))
