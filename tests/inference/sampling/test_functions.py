"""Gibbs with functions of the user's own: slices for their reals, the rest as before."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hylift import ground, parse
from hylift.errors import DivergentModelError
from hylift.graph import FactorGraph, boolean, categorical, interval, real
from hylift.inference import Exact, infer
from hylift.inference.sampling import Gibbs, functions, lines
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Function, Table
from hylift.rewrite.kinds import Kinds
from item_response import ItemResponse

Vector = NDArray[np.float64]


def on_grid(graph: FactorGraph, reach: float, count: int) -> dict[str, tuple[Vector, Vector]]:
    """Values of each variable and their probabilities: all reals on evenly spaced points."""
    names, variables = list(graph.variables.names), graph.variables
    points = []
    for v in range(len(names)):
        low, high = max(variables.lower[v], -reach), min(variables.upper[v], reach)
        step = (high - low) / count
        states = np.arange(max(variables.num_states[v], 1), dtype=float)
        is_real = variables.num_states[v] == 0
        points.append(low + step * (np.arange(count) + 0.5) if is_real else states)
    grid = np.meshgrid(*points, indexing="ij", sparse=True)
    total = np.zeros([len(values) for values in points])
    for group in graph.groups:
        for row, scope, m in zip(group.row, group.scope, group.multiplicity, strict=True):
            total = total + m * group.potential.log_value(row, [grid[v] for v in scope])
    weight = np.exp(total - total.max())
    weight /= weight.sum()
    axes = range(len(names))
    return {
        name: (points[v], weight.sum(axis=tuple(a for a in axes if a != v)))
        for v, name in enumerate(names)
    }


def check(found: Posterior, truth: dict[str, tuple[Vector, Vector]]) -> None:
    """Within some standard errors of 4,000 draws, of which a fifth or more are effective."""
    assert found.solution.result == "converged", found.solution.notes
    for name, (values, probs) in truth.items():
        marginal = found.marginal(name)
        if found.variables.num_states[list(found.variables.names).index(name)]:
            np.testing.assert_allclose(marginal.probs, probs, atol=0.05)
            continue
        mean = values @ probs
        std = np.sqrt((values - mean) ** 2 @ probs)
        assert marginal.mean == pytest.approx(mean, abs=0.15 * std), name
        assert marginal.std == pytest.approx(std, rel=0.1), name
        below = np.interp(mean, values + (values[1] - values[0]) / 2, np.cumsum(probs))
        assert marginal.cdf(mean) == pytest.approx(below, abs=0.06), name


def logistic(x: Vector, y: Vector, slope: Vector) -> Vector:
    return -np.logaddexp(0, -slope * (x - y))


def student(x: Vector, y: Vector) -> Vector:
    return -2 * np.log1p((x - y) ** 2)


def guess(d: Vector, x: Vector) -> Vector:
    return np.where(d == 1, -0.7, -np.logaddexp(0, -2 * x))


def hybrid(rng: np.random.Generator) -> FactorGraph:
    """Two reals and a Boolean of functions, and a Boolean and a real that are in none of them."""
    pull = ConditionalQuadratic.gaussian(rng.normal(0, 0.7, (2, 1)), [[[0.8]], [[2.0]]])
    link = ConditionalQuadratic.squared_distance(rng.uniform(0.1, 1), [1, -1])
    return FactorGraph.build(
        {"a": boolean, "b": boolean, "x": real, "y": real, "z": real},
        [
            (Table.shared(rng.normal(size=(2, 2))), ["a", "b"]),
            (Function(logistic, 0, 2, rng.normal(0, 2, (1, 1))), ["x", "y"]),
            (Function(guess, 1, 1), ["a", "x"]),
            (pull, [["b", "z"], ["a", "x"]]),
            (link, [["x", "z"], ["y", "z"]]),
            (ConditionalQuadratic.gaussian(rng.normal(0, 1, 1), [[1.5]]), ["y"]),
        ],
    )


@pytest.mark.parametrize("seed", range(3))
def test_functions_beside_tables_and_quadratics(seed: int) -> None:
    graph = hybrid(np.random.default_rng(seed))

    found = infer(graph, Gibbs(), seed=seed)

    check(found, on_grid(graph, 8.0, 80))


def test_heavy_tails_and_bounds_on_one_side() -> None:
    graph = FactorGraph.build(
        {"x": interval(0, np.inf), "y": real},
        [
            (Function(student, 0, 2), ["x", "y"]),
            (ConditionalQuadratic.gaussian([0.3], [[1.0]]), [["x"], ["y"]]),
        ],
    )

    found = infer(graph, Gibbs())

    check(found, on_grid(graph, 8.0, 400))
    assert found.draws is not None
    assert found.draws.values[..., 0].min() >= 0
    assert found.marginal("x").cdf(0.0) == pytest.approx(0.0, abs=1e-9)


def test_products_of_hidden_reals() -> None:
    """Two modes, which slices reach from each other."""
    graph = FactorGraph.build(
        {"a": real, "t": real},
        [
            (Function(lambda a, t: -0.5 * (a * t - 0.7) ** 2 / 0.8, 0, 2), ["a", "t"]),
            (ConditionalQuadratic.gaussian([0.0], [[1.0]]), [["a"], ["t"]]),
        ],
    )

    check(infer(graph, Gibbs()), on_grid(graph, 8.0, 400))


def test_signs_change_together_where_no_real_alone_could() -> None:
    """Between the modes of a product stands a wall of a hundred nats."""
    graph = FactorGraph.build(
        {"a": real, "t": real},
        [
            (Function(lambda a, t: -0.5 * (a * t - 3.0) ** 2 / 0.04, 0, 2), ["a", "t"]),
            (ConditionalQuadratic.gaussian([0.1], [[1.0]]), [["a"], ["t"]]),
        ],
    )

    check(infer(graph, Gibbs()), on_grid(graph, 6.0, 1500))


def test_reals_of_the_same_functions_change_signs_given_the_others() -> None:
    """Each of two pairs has modes of its own, and a real is in functions of both."""
    product = Function(lambda a, t, z: -0.5 * ((a * t - 2.0 - 0.3 * z) / 0.3) ** 2, 0, 3)
    graph = FactorGraph.build(
        {"a": real, "t": real, "b": real, "s": real, "z": real},
        [
            (product, [["a", "t", "z"], ["b", "s", "z"]]),
            (ConditionalQuadratic.gaussian([0.1], [[1.0]]), [[v] for v in "atbsz"]),
        ],
    )
    alone = FactorGraph.build(
        {"a": real, "t": real, "z": real},
        [
            (product, ["a", "t", "z"]),
            (ConditionalQuadratic.gaussian([0.1], [[1.0]]), [[v] for v in "atz"]),
        ],
    )
    expected = on_grid(alone, 5.0, 120)  # z hardly matters to the signs of a pair

    found = infer(graph, Gibbs(draws=2000))

    assert found.solution.result == "converged", found.solution.notes
    sides = [float(1 - found.marginal(name).cdf(0.0)) for name in "atbs"]
    values, probs = expected["a"]
    assert sides == pytest.approx([probs[values > 0].sum()] * 4, abs=0.05)


def test_pairs_of_a_large_component_move_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a ridge of two reals that stand in the same functions, and a third that joins ridges."""
    monkeypatch.setattr(lines, "MOST_CORRELATED", 4)
    monkeypatch.setattr(functions, "MOST_CORRELATED", 4)
    ridge = Function(lambda x, y, z: -0.5 * ((x - y) / 0.02) ** 2 - 0.5 * (x + y - z) ** 2, 0, 3)
    names = [f"{kind}{k}" for kind in "xy" for k in range(3)]
    graph = FactorGraph.build(
        dict.fromkeys([*names, "z"], real),
        [
            (ridge, [[f"x{k}", f"y{k}", "z"] for k in range(3)]),
            (ConditionalQuadratic.gaussian([0.0], [[1.0]]), ["z"]),
        ],
    )

    found = infer(graph, Gibbs())

    assert found.solution.result == "converged", found.solution.notes
    for name in names:  # x + y is z and noise of variance 1
        assert found.marginal(name).std == pytest.approx(np.sqrt(2) / 2, rel=0.1)


def test_functions_that_observed_states_make_zero_are_left_out() -> None:
    graph = ItemResponse.drawn(5, 4).graph()

    kinds = Kinds.of(graph.condition())

    assert sum(map(len, kinds.functions)) == 20
    assert sum(map(len, kinds.quadratics)) == 13


@pytest.mark.slow
def test_answers_to_items_beside_a_long_chain() -> None:
    """Slopes, abilities and difficulties with other signs would explain the answers as well."""
    data = ItemResponse.drawn(40, 8)

    found = infer(data.graph(), Gibbs(), check=False)

    assert found.solution.result == "converged", found.solution.notes
    mean, std = data.moments(found)
    draws = data.chain(mean, std, 20_000)
    assert np.abs((mean - draws.mean(axis=0)) / std).max() < 0.15
    np.testing.assert_allclose(std, draws.std(axis=0), rtol=0.1)


def test_an_unknown_variance() -> None:
    model = parse("""
        i = {0, ..., 29}
        y(i): real
        m: real
        noise: real[0.05, 20]
        normal(m | 0, 100)
        normal(y(k) | m, noise)
    """)
    values = np.random.default_rng(1).normal(3, 1.5, 30)
    graph = ground(model, {f"y({k})": float(value) for k, value in enumerate(values)})
    exact = infer(graph, Exact())

    found = infer(graph, Gibbs())

    assert found.solution.result == "converged"
    for name in ("m", "noise"):
        true, got = exact.marginal(name), found.marginal(name)
        assert got.mean == pytest.approx(true.mean, abs=0.1 * true.std)
        assert got.std == pytest.approx(true.std, rel=0.1)


def test_many_states() -> None:
    wide = Function(lambda a, b: -np.abs(a - 2 * b) / 10, num_discrete=2)
    graph = FactorGraph.build({"a": categorical(100), "b": categorical(100)}, [(wide, ["a", "b"])])

    check(infer(graph, Gibbs()), on_grid(graph, 1.0, 1))


def test_reals_that_vary_together_move_together() -> None:
    """Alone each could move by a hundredth of its deviation."""
    ridge = Function(lambda x, y: -0.5 * ((x - y) / 0.02) ** 2 - 0.05 * (x + y) ** 4, 0, 2)
    graph = FactorGraph.build({"x": real, "y": real}, [(ridge, ["x", "y"])])

    found = infer(graph, Gibbs())

    assert found.draws is not None
    assert found.draws.diagnostics().ess.min() > 200
    check(found, on_grid(graph, 3.0, 2000))


def test_an_improper_function_is_refused() -> None:
    rising = Function(lambda x: -np.logaddexp(0, -x), 0, 1)

    with pytest.raises(DivergentModelError, match="improper in 'x'"):
        infer(FactorGraph.build({"x": real}, [(rising, ["x"])]), Gibbs())


def test_impossible_values_of_a_function_are_never_drawn() -> None:
    inside = Function(lambda x: np.where(np.abs(x - 5) < 1, 0.0, -np.inf), 0, 1)
    graph = FactorGraph.build(
        {"x": interval(0, 1000)}, [(inside, ["x"]), (ConditionalQuadratic.square(-0.01), ["x"])]
    )

    found = infer(graph, Gibbs())

    assert found.draws is not None
    assert np.abs(found.draws.values - 5).max() < 1
