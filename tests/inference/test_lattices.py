"""Sums over lattices against closed forms, in which every joint state has its own Gaussian."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import hylift as hl
from hylift.inference.exact import one_pass, tables
from hylift.inference.exact.lattices import collapsed, promotion

ANYTHING = float(np.log(4.0))
"""Log work beyond which every component is dear here."""

MODELS = {
    "star": """
        s = {1, ..., 6}
        Faulty(s)
        level: real
        reading(s): real
        -1  Faulty(i)
        normal(level | 20, 9)
        normal(reading(i) | level, 1 + 63*Faulty(i))
        """,
    "biases": """
        s = {1, ..., 5}
        Faulty(s)
        level: real
        bias(s): real
        reading(s): real
        -1  Faulty(i)
        normal(level | 20, 9)
        normal(bias(i) | 2*Faulty(i), 1 + 15*Faulty(i))
        normal(reading(i) | level + bias(i), 1)
        """,
    "walk": """
        s = {1, ..., 8}
        Faulty(s)
        level(s): real
        reading(s): real
        -1  Faulty(i)
        0.5  Faulty(i) ^ Faulty(i+1)
        normal(level(1) | 20, 9)
        normal(level(i+1) | level(i), 1)
        normal(reading(i) | level(i), 1 + 63*Faulty(i))
        """,
    "switching": """
        s = {1, ..., 7}
        Rising(s)
        level(s): real
        reading(s): real
        1  Rising(i) ^ Rising(i+1)
        normal(level(1) | 20, 9)
        normal(level(i+1) | level(i) + 2*Rising(i), 1 + Rising(i))
        normal(reading(i) | level(i), 4)
        """,
    "between": """
        s = {1, ..., 5}
        Faulty(s)
        level(s): real
        step(s): real
        reading(s): real
        -1  Faulty(i)
        normal(level(1) | 20, 9)
        normal(step(i) | level(i), 0.5)
        normal(level(i+1) | step(i), 0.5)
        normal(reading(i) | level(i), 1 + 63*Faulty(i))
        """,
    "three in one": """
        s = {1, ..., 4}
        Faulty(s)
        left(s): real
        right(s): real
        level: real
        reading(s): real
        -1  Faulty(i)
        normal(level | 20, 9)
        normal(left(i) | 5*Faulty(i), 2)
        normal(right(i) | 3*Faulty(i), 1 + 2*Faulty(i))
        normal(reading(i) | level + left(i) - right(i), 1)
        """,
}


def graph_of(name: str, seed: int = 0) -> hl.FactorGraph:
    model = hl.parse(MODELS[name])
    rng = np.random.default_rng(seed)
    count = len(hl.ground(model).variables.names.predicate("reading")[0])
    readings = 20 + 4 * rng.standard_normal(count)
    return hl.ground(model, {f"reading({i + 1})": value for i, value in enumerate(readings)})


@contextmanager
def lattices_everywhere() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(promotion, "CHEAP", ANYTHING)
        patch.setattr(promotion, "LOG_NODES", 0.0)  # as if a lattice cost nothing
        patch.setattr(promotion.Links, "log_cost", lambda *_: -1.0)
        yield


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_a_sum_over_lattices_is_the_integral(name: str, seed: int) -> None:
    graph = graph_of(name, seed)
    expected = hl.infer(graph, hl.Exact())

    with lattices_everywhere():
        found = hl.infer(graph, hl.Exact())

    assert "sum over lattices" in found.solution.notes[0]
    assert found.log_partition.kind == "exact"
    assert found.log_partition.error < 1e-9
    assert found.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-11)
    for atom in expected.select(None):
        one, other = (p.known_marginals()[int(atom)] for p in (found, expected))
        if one.num_states:
            np.testing.assert_allclose(one.probs, other.probs, atol=1e-11)
        else:
            assert one.mean == pytest.approx(other.mean, abs=1e-8)
            assert one.std == pytest.approx(other.std, rel=1e-8)
            assert one.quantile(0.05) == pytest.approx(other.quantile(0.05), abs=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_not_kept_between_passes_is_computed_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(name)
    with lattices_everywhere():
        expected = hl.infer(graph, hl.Exact()).known_marginals()
        monkeypatch.setattr(tables, "MOST_KEPT", 0)
        found = hl.infer(graph, hl.Exact()).known_marginals()

    for one, other in zip(found, expected, strict=True):
        if one.num_states:
            np.testing.assert_allclose(one.probs, other.probs, rtol=1e-13)
        else:
            assert one.mean == pytest.approx(other.mean, abs=1e-12)
            assert one.std == pytest.approx(other.std, rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_expected_counts_over_lattices_are_those_of_closed_forms(name: str) -> None:
    graph = graph_of(name)
    expected = hl.infer(graph, hl.Exact()).expected_counts()["expected"].to_numpy()

    with lattices_everywhere():
        found = hl.infer(graph, hl.Exact()).expected_counts()["expected"].to_numpy()

    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_windows_that_are_too_narrow_at_first_are_widened(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(name)
    expected = hl.infer(graph, hl.Exact())
    monkeypatch.setattr(one_pass, "OCCUPIED", 0.5)

    with lattices_everywhere():
        found = hl.infer(graph, hl.Exact())

    assert found.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-11)


def test_a_window_that_misses_a_mode_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = hl.ground(
        hl.parse("""
            High
            x: real
            y(n): real
            n = {1, ..., 3}
            2  High
            normal(x | 1000*High, 1)
            normal(y(i) | x, 1)
        """)
    )
    monkeypatch.setattr(
        collapsed, "_samples", lambda num_states: np.zeros((1, len(num_states)), int)
    )

    with lattices_everywhere():
        found = hl.infer(graph, hl.Exact())

    assert found.marginal("High").prob("true") == pytest.approx(1 / (1 + np.exp(-2)), abs=1e-10)
    assert found.marginal("x").mean == pytest.approx(1000 / (1 + np.exp(-2)), rel=1e-9)


def test_a_real_with_two_hundred_neighbours_is_exact_by_direct_integration() -> None:
    rng = np.random.default_rng(1)
    readings = 20 + rng.standard_normal(200) * np.where(rng.random(200) < 0.3, 8, 1)
    graph = hl.ground(
        hl.parse(MODELS["star"].replace("6", "200", 1)),
        {f"reading({i + 1})": value for i, value in enumerate(readings)},
    )

    found = hl.infer(graph, hl.Exact())

    x = np.linspace(10, 30, 20_001)
    each = -0.5 * (x[:, None] - readings) ** 2
    good = each - 0.5 * np.log(2 * np.pi)
    bad = each / 64 - 0.5 * np.log(2 * np.pi * 64) - 1
    density = np.logaddexp(good, bad).sum(axis=1)
    density += -((x - 20) ** 2) / 18 - 0.5 * np.log(2 * np.pi * 9)
    top = density.max()
    weight = np.exp(density - top)
    log_z = top + np.log(weight.sum() * (x[1] - x[0]))
    assert found.log_partition.value == pytest.approx(log_z, abs=1e-9)
    assert found.log_partition.error < 1e-9
    faulty = (weight @ np.exp(bad - np.logaddexp(good, bad))) / weight.sum()
    names = [f"Faulty({i + 1})" for i in range(200)]
    probs = [found.marginal(name).prob("true") for name in names]
    np.testing.assert_allclose(probs, faulty, atol=1e-10)
    mean = weight @ x / weight.sum()
    assert found.marginal("level").mean == pytest.approx(mean, abs=1e-8)


def test_terms_on_a_cycle_do_not_all_bound_their_reals() -> None:
    tie = hl.ConditionalQuadratic.squared_distance(1.0, [1, -1])
    weak = hl.ConditionalQuadratic.square(-1e-6)
    graph = hl.FactorGraph.build(
        dict.fromkeys("xyz", hl.real),
        [(tie, [["x", "y"], ["y", "z"], ["z", "x"], ["x", "y"]]), (weak, [["x"], ["y"], ["z"]])],
    )
    reals = np.arange(3)
    num_states = graph.variables.num_states

    found = collapsed.Collapsed.of(list(graph.groups), num_states, reals, reals, maximise=False)

    widths = found.widths()
    assert np.count_nonzero(widths < 10) == 2  # the third is held by its weak square alone
    assert widths.max() == pytest.approx(np.sqrt(np.pi / 1e-6))


def test_a_bound_on_one_side_of_a_real_with_many_neighbours_is_kept() -> None:
    readings = 0.3 + 0.01 * np.arange(20)
    model = hl.parse("""
        Faulty(k)
        reading(k): real
        level: real[0, inf]
        normal(level | 0, 4)
        -2  Faulty(i)
        normal(reading(i) | level*!Faulty(i) + 8*Faulty(i), 0.25 + 9*Faulty(i))
    """)

    found = hl.infer(hl.ground(model, {f"reading({i})": r for i, r in enumerate(readings)}))

    x = np.linspace(0, 4, 400_001)
    good = -2 * (readings - x[:, None]) ** 2 - 0.5 * np.log(2 * np.pi * 0.25)
    bad = -2 - (readings - 8) ** 2 / 18.5 - 0.5 * np.log(2 * np.pi * 9.25)
    density = -(x**2) / 8 - 0.5 * np.log(8 * np.pi) + np.logaddexp(good, bad).sum(axis=1)
    weight = np.exp(density - density.max())
    weight[0] *= 0.5
    assert found.marginal("level").mean == pytest.approx(weight @ x / weight.sum(), abs=1e-7)
    log_z = density.max() + np.log(weight.sum() * (x[1] - x[0]))
    assert found.log_partition.value == pytest.approx(log_z, abs=1e-8)


def test_densities_that_nodes_do_not_resolve_are_noted() -> None:
    model = hl.parse("""
        y(g, k): real
        level(g): real
        scale(g): real[0, 50]
        c: real
        normal(c | 0, 100)
        normal(level(g) | c, 4)
        normal(y(g, i) | level(g), scale(g)^2)
    """)
    data = {f"y({g},{i})": 3.0 * g + i for g in range(3) for i in range(2)}

    found = hl.infer(hl.ground(model, data))

    assert found.marginal("scale(0)").mean == pytest.approx(7.248, abs=0.05)  # linear between nodes
    assert found.solution.result != "converged"
    assert any("is not resolved between its nodes" in note for note in found.solution.notes)
