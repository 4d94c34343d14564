"""Complete pair groups of reals become stars of the same density."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate

import hylift as hl
import oracle
from hylift.graph import FactorGraph, boolean, real
from hylift.inference.prepared import Prepared
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.stars import common_fields, common_means

Q = ConditionalQuadratic


def reals(count: int, *factors: tuple[ConditionalQuadratic, list[tuple[int, ...]]]) -> FactorGraph:
    """Reals x0, x1, … with squares of their own, factors between some, and a Boolean for each."""
    domains = {f"x{i}": real for i in range(count)} | {f"b{i}": boolean for i in range(count)}
    own = Q.gaussian([[0.0], [2.0]], [[[0.5]], [[1.0]]])
    built = [(own, [[f"b{i}", f"x{i}"] for i in range(count)])]
    for potential, scopes in factors:
        built.append((potential, [[f"x{i}" for i in scope] for scope in scopes]))
    return FactorGraph.build(domains, built)


def pairs(*members: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations(members, 2))


COUPLINGS = {
    "distance": Q.squared_distance(0.3, [1.0, -1.0]),
    "offset": Q.squared_distance(0.3, [1.0, -1.0], 0.7),
    "slope": Q.squared_distance(0.2, [1.0, -0.5], 0.1),
    "product": Q.product(0.1),
}


@pytest.mark.parametrize("name", COUPLINGS)
@pytest.mark.parametrize("both_orders", [False, True])
def test_stars_have_the_same_integral_marginals_and_maximum(name, both_orders):
    scopes = pairs(0, 1, 2, 3)
    scopes += [scope[::-1] for scope in scopes] if both_orders else []
    graph = reals(4, (COUPLINGS[name], scopes))
    expected = oracle.solve(graph)

    starred = common_means(graph)

    assert starred.graph.num_variables == graph.num_variables + 1
    found = oracle.solve(starred.graph)
    assert found.log_z == pytest.approx(expected.log_z, abs=1e-9)
    for variable in range(4):
        assert found.mean[variable] == pytest.approx(expected.mean[variable], abs=1e-8)
        assert found.var[variable] == pytest.approx(expected.var[variable], abs=1e-8)
        assert found.probs[4 + variable] == pytest.approx(expected.probs[4 + variable], abs=1e-9)
    best = oracle.solve(common_means(graph, maximise=True).graph)
    assert best.map_energy == pytest.approx(expected.map_energy, abs=1e-8)


def test_squared_distances_leave_nothing_beside_the_stars():
    graph = reals(5, (COUPLINGS["distance"], pairs(0, 1, 2, 3, 4)))

    starred = common_means(graph)

    assert [len(group) for group in starred.graph.groups] == [5, 5]
    assert starred.graph.groups[1].scope[:, 1].tolist() == [10] * 5


def test_cliques_of_several_kinds_and_what_is_incomplete():
    distance, stronger = COUPLINGS["distance"], Q.squared_distance(0.5, [1.0, -1.0])
    graph = reals(
        9,
        (distance, pairs(0, 1, 2, 3)),
        (distance, pairs(4, 5, 6, 7)[:-1]),
        (stronger, pairs(2, 4, 6, 8)),
    ).condition()

    starred = common_means(graph)

    assert starred.graph.num_variables - graph.num_variables == 2
    sizes = sorted(len(group) for group in starred.graph.groups)
    assert sizes == [5, 8, 9]
    rng = np.random.default_rng(0)
    for _ in range(3):  # the integral over both means, in closed form
        values = np.concatenate([rng.normal(size=9), rng.integers(0, 2, 9)])
        density = oracle.gaussian(
            lambda m, v=values: starred.graph.log_density(np.concatenate([v, m])), 2
        )
        assert density.log_total == pytest.approx(graph.log_density(values), abs=1e-9)


@pytest.mark.parametrize(
    "factors",
    [
        [(Q.squared_distance(0.3, [1.0, -1.0]), pairs(0, 1, 2))],
        [(Q.product(-0.1), pairs(0, 1, 2, 3))],
        [(COUPLINGS["distance"], [*pairs(0, 1, 2, 3), (0, 1)])],
        [(COUPLINGS["distance"], [*pairs(0, 1, 2, 3)[1:], (0, 2)])],
        [(COUPLINGS["distance"], [*pairs(0, 1, 2, 3), (0, 4)])],
    ],
    ids=["three", "repulsive", "one pair twice", "one for another", "not closed"],
)
def test_all_else_stays_as_it_is(factors):
    graph = reals(5, *factors)

    assert common_means(graph) is None


def spins(coupling: np.ndarray, scopes: list[tuple[int, ...]], count: int) -> FactorGraph:
    """Booleans with a table each, and the same table for these pairs."""
    rng = np.random.default_rng(count)
    own = [
        (Table.shared([0.0, field]), [[f"s{i}"]]) for i, field in enumerate(rng.normal(size=count))
    ]
    tied = (Table.shared(coupling), [[f"s{i}" for i in scope] for scope in scopes])
    return FactorGraph.build({f"s{i}": boolean for i in range(count)}, [*own, tied])


@pytest.mark.parametrize(
    "table",
    [np.diag([0.0, 0.4]), np.array([[0.3, -0.2], [0.1, 0.4]])],
    ids=["both", "in order"],
)
def test_stars_of_booleans_have_the_same_integral_and_marginals(table, monkeypatch):
    monkeypatch.setattr("hylift.rewrite.stars.LEAST_BOOLEANS", 4)
    graph = spins(table, pairs(0, 1, 2, 3, 4), 6)
    expected = oracle.solve(graph)

    fields = common_fields(graph)

    assert fields is not None
    assert fields.summary == "5 Booleans in 1 field"
    found = oracle.solve(fields.graph)
    assert found.log_z == pytest.approx(expected.log_z, abs=1e-9)
    for variable, probs in expected.probs.items():
        assert found.probs[variable] == pytest.approx(probs, abs=1e-9)


@pytest.mark.parametrize(
    ("table", "scopes"),
    [
        (np.diag([0.0, -0.4]), pairs(0, 1, 2, 3, 4)),
        (np.diag([-np.inf, 0.4]), pairs(0, 1, 2, 3, 4)),
        (np.diag([0.0, 0.4]), pairs(0, 1, 2, 3, 4)[1:]),
    ],
    ids=["repulsive", "impossible", "incomplete"],
)
def test_other_booleans_stay_as_they_are(table, scopes, monkeypatch):
    monkeypatch.setattr("hylift.rewrite.stars.LEAST_BOOLEANS", 4)

    assert common_fields(spins(table, scopes, 5)) is None


def rooms(count: int, prior: float = -0.5) -> FactorGraph:
    """The rooms of the docs, with so many of them."""
    model = hl.parse(f"""
        room = {{0, ..., {count - 1}}}
        Heated(room)
        temperature(room): real
        {prior} Heated(r)
        normal(temperature(r) | 12 + 8*Heated(r), 4)
        -0.1 (temperature(r) - temperature(s))^2 where r != s
    """)
    return Prepared.of(hl.ground(model)).ground


def test_rooms_are_an_integral_over_their_mean():
    graph = rooms(8)
    expected = oracle.solve(graph)

    star = common_means(graph).graph

    values = np.zeros(17)

    def one_room(m: float, heated: int) -> float:
        """The integral over the temperature of the first room."""

        def density(x: np.ndarray) -> float:
            at = values.copy()
            at[[0, 8, 16]] = heated, x[0], m
            return sum(float(g.log_values(at)[0]) for g in star.groups)

        return np.exp(oracle.gaussian(density, 1).log_total)

    def integrand(m: float) -> np.ndarray:
        cold, heated = one_room(m, 0), one_room(m, 1)
        return (cold + heated) ** 8 * np.array([1.0, heated / (cold + heated)])

    total, share = integrate.quad_vec(integrand, -10, 45, epsabs=1e-13, epsrel=1e-12)[0]
    assert np.log(total) + star.log_constant == pytest.approx(expected.log_z, abs=1e-8)
    assert share / total == pytest.approx(expected.probs[0][1], abs=1e-9)
