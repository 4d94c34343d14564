"""Answers of SMC beside enumeration and exact inference."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import oracle
from hybrid_models import tied_levels
from hybrid_shapes import MAKERS, PRIOR, couplings
from hylift.graph import FactorGraph, FactorGroup, Variables, boolean, real
from hylift.inference import SMC, Exact, infer
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Table


@cache
def enumerated(make: Callable[..., FactorGraph], size: int, seed: int) -> oracle.Answer:
    return oracle.solve(make(size, np.random.default_rng(seed)))


def assert_near(found: Posterior, expected: oracle.Answer, graph: FactorGraph, atol: float) -> None:
    """Probabilities, means in deviations, and ratios of deviations are as enumeration has them."""
    for variable, probs in expected.probs.items():
        name = graph.variables.names[variable]
        np.testing.assert_allclose(found.marginal(name).probs, probs, atol=atol)
    for variable, mean in expected.mean.items():
        got, std = found.marginal(graph.variables.names[variable]), expected.var[variable] ** 0.5
        assert got.mean == pytest.approx(mean, abs=atol * std)
        assert got.std == pytest.approx(std, rel=2 * atol)


@pytest.mark.parametrize("make", MAKERS)
def test_few_joint_states_are_enumerated(make: Callable[..., FactorGraph]) -> None:
    graph, expected = make(4, np.random.default_rng(5)), enumerated(make, 4, 5)

    found = infer(graph, SMC())

    assert_near(found, expected, graph, 1e-9)
    assert found.log_partition is not None
    assert found.log_partition.value == pytest.approx(expected.log_z, abs=1e-9)
    assert found.log_partition.error < 1e-10
    assert found.solution.notes[0] == "All joint states were enumerated."


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_particles_agree_with_enumeration(make: Callable[..., FactorGraph], seed: int) -> None:
    graph, expected = make(5, np.random.default_rng(seed)), enumerated(make, 5, seed)

    found = infer(graph, SMC(groups=128, particles=16), seed=seed)

    assert_near(found, expected, graph, 0.025)
    assert found.log_partition is not None
    off = found.log_partition.value - expected.log_z
    assert abs(off) <= 3.5 * found.log_partition.error


def test_the_standard_error_of_log_z_is_right_on_average() -> None:
    graph = couplings(5, np.random.default_rng(2))
    expected, method = enumerated(couplings, 5, 2).log_z, SMC(particles=24, sweeps=1)

    found = [infer(graph, method, seed=seed, tasks="logz").log_partition for seed in range(40)]

    off = np.array([abs(one.value - expected) / one.error for one in found if one is not None])
    assert (off > 3).sum() <= 1  # one in 370, if Z were normal
    # Errors are widened by half for few groups: two in three are within two thirds of one.
    assert 0.3 < np.sqrt(np.mean(off**2)) < 1.3


@pytest.mark.parametrize("height", [10.0, 30.0])
def test_both_of_two_modes_are_found_across_a_high_barrier(height: float) -> None:
    size = 10
    names = [f"d{i}" for i in range(size)]
    sides = ConditionalQuadratic.gaussian([[-1.0], [1.0]], [[[height]], [[height]]])
    factors = [(sides, [d, "x"]) for d in names]
    tilt = Table.shared([0.5, 0.0])
    graph = FactorGraph.build(
        dict.fromkeys(names, boolean) | {"x": real}, [*factors, (tilt, ["d0"]), (PRIOR, ["x"])]
    )

    found = infer(graph, SMC(particles=128), seed=1)

    expected = infer(graph, Exact())
    probs, error = found.marginal("d3").probs, 0.08  # about two standard errors
    assert probs == pytest.approx(expected.marginal("d3").probs, abs=error)
    assert found.marginal("x").std == pytest.approx(expected.marginal("x").std, rel=0.05)
    assert found.log_partition is not None
    assert expected.log_partition is not None
    off = abs(found.log_partition.value - expected.log_partition.value)
    assert off <= 3 * found.log_partition.error


def test_many_parts_do_not_wear_out_the_particles() -> None:
    num_parts, size = 500, 7
    rng = np.random.default_rng(0)
    place = np.arange(num_parts * size, dtype=np.int32).reshape(num_parts, size)
    links = np.concatenate([place[:, [i, i + 1]] for i in range(size - 1)])
    tables = Table(rng.normal(size=(len(links), 2, 2)))
    group = FactorGroup(tables, links, np.arange(len(links), dtype=np.int32))
    graph = FactorGraph(Variables.uniform(boolean, place.size), (group,))

    found, expected = infer(graph, SMC(sweeps=3)), infer(graph, Exact())

    assert expected.compare(found).max_l1 < 0.12  # the largest of 3,500
    assert found.log_partition is not None
    assert expected.log_partition is not None
    off = abs(found.log_partition.value - expected.log_partition.value)
    assert off <= 3 * found.log_partition.error < 6


@pytest.mark.parametrize("rewrite", [None, False])
def test_hard_rules_are_kept_with_and_without_clusters(rewrite: bool | None) -> None:
    """Derangements of five: one `y` for each `x` and the other way round, none fixed: 44."""
    size = 5
    names = [f"P{i}{j}" for i in range(size) for j in range(size)]
    one = np.full((2,) * size, -np.inf)
    one[tuple(np.eye(size, dtype=int))] = 0.0
    exactly = Table.shared(one)
    rows = [[f"P{i}{j}" for j in range(size)] for i in range(size)]
    columns = [[f"P{i}{j}" for i in range(size)] for j in range(size)]
    never = Table.shared([0.0, -np.inf])
    graph = FactorGraph.build(
        dict.fromkeys(names, boolean),
        [*((exactly, some) for some in rows + columns), *((never, [f"P{i}{i}"]) for i in range(5))],
    )

    found = infer(graph, SMC(particles=256), rewrite=rewrite, seed=1)

    assert found.log_partition is not None
    assert abs(found.log_partition.value - np.log(44)) <= 3 * found.log_partition.error + 1e-9
    assert found.marginal("P01").probs[1] == pytest.approx(0.25, abs=0.06)
    assert found.draws is not None
    values = found.draws.values.reshape(-1, size, size)
    assert (values.sum(axis=1) == 1).all()
    assert (values.sum(axis=2) == 1).all()


def test_a_start_tells_where_particles_begin() -> None:
    graph = couplings(9, np.random.default_rng(3))
    exact = infer(graph, Exact())

    flat, found = (infer(graph, SMC(), start=start, seed=2) for start in (None, exact))

    assert exact.compare(found).max_l1 < 0.05
    assert found.log_partition is not None
    assert flat.log_partition is not None
    assert exact.log_partition is not None
    off = abs(found.log_partition.value - exact.log_partition.value)
    assert off <= 3 * found.log_partition.error
    assert found.log_partition.error < flat.log_partition.error


def test_log_z_of_many_parts_is_not_too_low() -> None:
    """What a part has in error on average adds up, unlike what it has by chance."""
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i in range(7) for j in range(i)]
    tables = [Table.shared(rng.normal(size=(2, 2))) for _ in pairs]

    def parts(count: int) -> FactorGraph:
        names = [[f"s{part} {i}" for i in range(7)] for part in range(count)]
        return FactorGraph.build(
            {name: boolean for own in names for name in own},
            [
                (table, [own[i], own[j]])
                for own in names
                for table, (i, j) in zip(tables, pairs, strict=True)
            ],
        )

    expected, graph, off = 100 * oracle.solve(parts(1)).log_z, parts(100), []

    for seed in range(6):
        found = infer(graph, SMC(particles=16, sweeps=1), seed=seed, rewrite=False).log_partition
        assert found is not None
        off.append((found.value - expected) / found.error)

    assert abs(np.mean(off)) < 3 / np.sqrt(6)


@pytest.mark.parametrize("var", [1e-8, 1e-10])
def test_closely_tied_reals_leave_probabilities_their_digits(var: float) -> None:
    graph = tied_levels(8, var)
    exact = infer(graph, Exact())

    found = infer(graph, SMC(), check=False)

    assert found.solution.result == "converged"
    for step in range(8):
        atom = f"Up({step})"
        assert found.prob(atom).value == pytest.approx(exact.prob(atom).value, abs=0.03)
