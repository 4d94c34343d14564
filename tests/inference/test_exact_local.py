"""Reals that are eliminated once per state of the axes that matter to them."""

import numpy as np
import pytest

from hylift.graph import FactorGraph, FactorGroup, Names, Variables, boolean, categorical, real
from hylift.inference.exact.gaussian import GaussianStates, find_components, solve_states
from hylift.inference.terms import Terms
from hylift.potentials import ConditionalQuadratic


def random_graph(rng: np.random.Generator, num_reals: int, num_axes: int) -> FactorGraph:
    """A random tree of reals with some chords; each of its factors has up to two axes."""
    sizes = rng.integers(2, 5, num_axes)
    domains = [boolean if n == 2 else categorical([f"s{i}" for i in range(n)]) for n in sizes]
    domains += [real] * num_reals
    names, ones = Names.numbered(len(domains)), np.ones(len(domains))
    variables = Variables(tuple(domains), np.arange(len(domains)), names, ones)
    pairs = [(i, int(rng.integers(0, i))) for i in range(1, num_reals)]
    pairs += [tuple(rng.choice(num_reals, 2, replace=False)) for _ in range(num_reals // 3)]
    groups = []
    for pair in [(i,) for i in range(num_reals)] + pairs:
        axes = rng.choice(num_axes, rng.integers(0, 3), replace=False)
        states = tuple(sizes[axes])
        root = rng.normal(size=(1, *states, len(pair), len(pair)))
        A = -root @ np.swapaxes(root, -1, -2) - 0.05 * np.eye(len(pair))
        b = rng.normal(size=(1, *states, len(pair)))
        scope = [[*axes, *(num_axes + i for i in pair)]]
        potential = ConditionalQuadratic(A, b, np.zeros((1, *states)))
        groups.append(FactorGroup(potential, np.array(scope), multiplicity=np.array([2.0])))
    return FactorGraph(variables, tuple(groups))


@pytest.mark.parametrize("seed", range(12))
def test_steps_by_themselves_have_the_gaussians_of_whole_components(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(np.random.default_rng(seed), num_reals=9, num_axes=4)
    terms = Terms.of(graph.groups, graph.variables.num_states)
    components = find_components(terms, np.flatnonzero(graph.variables.num_states == 0))

    def solved(worthwhile: float) -> GaussianStates:
        monkeypatch.setattr("hylift.inference.exact.local.WORTHWHILE", worthwhile)
        return solve_states(components, terms, maximise=False)

    expected, found = solved(np.inf), solved(0.0)

    for name in ("log_total", "mean", "var", "cov"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-9)
    assert (found.failed < 0).all()


def test_a_step_that_is_not_definite_fails_in_the_states_of_its_component_that_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    square = ConditionalQuadratic.square(-0.5)
    graph = FactorGraph.build(
        {"on": boolean, "other": boolean, "x": real, "y": real},
        [
            (square.times([0, 1]), ["on", "x"]),
            (square.times([1, 2]), ["other", "y"]),
            (ConditionalQuadratic.squared_distance(1.0, [1, -1]).times([0, 1]), ["on", "x", "y"]),
        ],
    )
    terms = Terms.of(graph.groups, graph.variables.num_states)
    components = find_components(terms, np.array([2, 3]))
    monkeypatch.setattr("hylift.inference.exact.local.WORTHWHILE", 0.0)

    found = solve_states(components, terms, maximise=False)

    assert (found.failed >= 0).tolist() == [True, True, False, False]
