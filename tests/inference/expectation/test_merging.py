"""Expectation propagation with factors of the same reals merged, and with powers of factors."""

from __future__ import annotations

import numpy as np
import pytest

import hylift as hl
from answers import log_z
from hylift.inference import EP, Exact, infer
from hylift.potentials import REAL, ConditionalQuadratic, Function, Table
from hylift.potentials.product import Product

SENSORS = """
In(sensor, room)
Faulty(sensor)
reading(sensor): real
temperature(room): real
-3  Faulty(s)
normal(temperature(r) | 20, 9)
In(s, r) * normal(reading(s) | 20*Faulty(s) + temperature(r)*!Faulty(s), 0.25 + 100*Faulty(s))
"""


def contradictory(each: int) -> hl.FactorGraph:
    """Three rooms with sensors that read about the same, but far more or less than each other."""
    sensors = [(f"s{i}", f"r{i % 3}") for i in range(3 * each)]
    rng = np.random.default_rng(2)
    evidence = {"In": sensors, "reading": [(s, rng.normal(21, 3)) for s, _ in sensors]}
    return hl.ground(hl.parse(SENSORS), evidence, closed=["In"])


@pytest.mark.parametrize("each", [4, 8])
def test_sensors_of_one_room_are_one_site(each: int) -> None:
    graph = contradictory(each)

    found, exact = infer(graph, EP()), infer(graph, Exact())

    assert found.solution.result == "converged"
    assert log_z(found) == pytest.approx(log_z(exact), abs=1e-8)
    assert exact.compare(found).max_l1 <= 1e-6


@pytest.mark.parametrize("each", [4, 9])
def test_powers_of_factors_converge_where_sites_contradict_each_other(each: int) -> None:
    graph = contradictory(each)

    found = infer(graph, EP(merge_factors=False), check=False)

    assert found.solution.result == "converged"
    assert any("only with each factor as several copies" in text for text in found.solution.doubts)


def test_functions_of_the_same_real_are_one_site() -> None:
    """A hidden answer, whose probability two functions say, and answers that are known."""
    model = hl.parse("""
        Right(question)
        ability: real[-8, 8]
        difficulty(question): real
        normal(ability | 1, 2)
        Right(q) * (ability > difficulty(q); slope=3)
        !Right(q) * (ability < difficulty(q); slope=3)
    """)
    hard = [("a", -1.0), ("b", 0.5), ("c", 0.0), ("d", 1.5)]
    graph = hl.ground(model, {"difficulty": hard, "Right": [("a", True), ("b", False)]})

    found, exact = infer(graph, EP()), infer(graph, Exact())

    assert log_z(found) == pytest.approx(log_z(exact), abs=1e-6)
    for name in ("Right(c)", "Right(d)"):
        assert found.marginal(name).probs == pytest.approx(exact.marginal(name).probs, abs=1e-6)


def test_a_product_has_the_sum_of_the_logarithms_of_its_factors() -> None:
    rng = np.random.default_rng(0)
    table = Table(rng.normal(size=(3, 2)))
    function = Function(lambda s, x, y, a: a * s * x - np.abs(y), 1, 2, rng.normal(size=(3, 1)))
    quadratic = ConditionalQuadratic.squared_distance(rng.random(3), [1.0, -1.0])
    power = np.array([[1.0, 1.0, 2.0]] * 3)
    product = Product(
        (table, function, quadratic), ((1,), (0, 3, 2), (2, 3)), (2, 2, REAL, REAL), power
    )
    row, slots = np.array([2, 0]), [np.array([1, 0]), np.array([0, 1]), rng.normal(size=2), 0.5]

    found = product.take(np.arange(3)).log_value(row, slots)

    expected = table.log_value(row, slots[1:2]) + 2 * quadratic.log_value(row, slots[2:])
    expected += function.log_value(row, [slots[0], slots[3], slots[2]])
    assert found == pytest.approx(expected, abs=1e-12)


def test_slow_convergence_is_a_doubt() -> None:
    """Clusters whose centres are hidden, and could be exchanged."""
    model = hl.parse("""
        cluster = {0, 1}
        Cluster(point, cluster!)
        place(point): real
        centre(cluster): real
        normal(centre(k) | 0, 4)
        normal(place(p) | centre(0)*Cluster(p, 0) + centre(1)*Cluster(p, 1), 1)
    """)
    places = np.random.default_rng(0).normal(np.arange(20) % 2 * 2.5, 1.0)
    graph = hl.ground(model, {"place": [*enumerate(places.tolist())]})

    doubts = infer(graph, EP(), check=False).solution.doubts

    assert any("may be off" in text or "did not converge" in text for text in doubts)
