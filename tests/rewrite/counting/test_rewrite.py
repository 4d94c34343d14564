"""Counting leads to an easier graph, and all answers back from it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hylift as hl
import oracle
from hylift.graph import FactorGraph
from hylift.inference.prepared import Prepared
from hylift.rewrite.counting.rewrite import counts
from hylift.rewrite.rewritten import SAME, Rewritten
from rewrite.counting.enumeration import expectations, random_tables
from rewrite.counting.test_counts import two_classes

SMOKERS = """
    person = {a, b, c, d}
    Smokes(person)
    Cancer(person)
    Friends(person, person)
    0.4 !Smokes(x)
    0.7 !Cancer(x)
    0.2 Friends(x, y)
    1.5 Smokes(x) => Cancer(x)
    1.1 Friends(x, y) ^ Smokes(x) => Smokes(y)
"""


def half_known() -> FactorGraph:
    """Three people of whom nothing is known, and three with cancer; no one befriends himself."""
    model = hl.parse(SMOKERS.replace("{a, b, c, d}", "{a, b, c, p, q, r}"))
    pairs = itertools.product("abcpqr", repeat=2)
    known = {f"Friends({x},{y})": x != y for x, y in pairs if (x, y) != ("a", "a")}
    cancer = {f"Cancer({x})": True for x in "pqr"}
    return Prepared.of(hl.ground(model, known | cancer)).ground


def probs_before(found: Rewritten, answer: oracle.Answer) -> list[np.ndarray]:
    """Probabilities of the variables before a rewrite, from those after it."""
    back, num_states = found.back, found.graph.variables.num_states
    probs = [answer.probs[int(variable)] for variable in back.variable]
    for variable in np.flatnonzero(back.table != SAME):
        there = back.variable[[variable]]
        entries = back.entries(np.array([variable]), num_states[there])
        probs[variable] = np.bincount(entries.here, entries.share * probs[variable][entries.there])
    return probs


@pytest.mark.parametrize("graph", [two_classes(3), half_known()], ids=["random", "smokers"])
def test_all_marginals_and_log_z_come_back(graph):
    expected = oracle.solve(graph)

    found = counts(graph)

    assert found is not None
    answer = oracle.solve(found.graph)
    assert answer.log_z == pytest.approx(expected.log_z, abs=1e-10)
    for variable, probs in enumerate(probs_before(found, answer)):
        assert probs == pytest.approx(expected.probs[variable], abs=1e-10)


def complete(people: str, **cancer: bool) -> FactorGraph:
    """Any of these people may be friends; of some it is known whether they have cancer."""
    model = hl.parse(SMOKERS.replace("a, b, c, d", ", ".join(people)))
    known = {f"Cancer({who})": value for who, value in cancer.items()}
    return Prepared.of(hl.ground(model, known)).ground


def test_look_alike_leaves_are_represented_by_one():
    graph = complete("abcde")

    found = counts(graph)

    assert found is not None
    names = list(found.graph.variables.names)
    assert names == ["Cancer(a)", "Friends(a,a)", "Friends(a,b)", "count of atoms like Smokes(a)"]
    assert found.summary == "5 variables in 1 count, beside 30 leaves"


def test_leaves_of_all_friendships_have_the_probabilities_of_enumeration():
    graph = complete("abc", a=True, b=True, c=True)
    expected = oracle.solve(graph)

    found = counts(graph)

    assert found is not None
    probs = probs_before(found, oracle.solve(found.graph))
    assert np.array(probs) == pytest.approx(np.array(list(expected.probs.values())), abs=1e-10)


@pytest.mark.parametrize("graph", [two_classes(3), half_known()], ids=["random", "smokers"])
def test_statistics_have_the_same_expectations(graph):
    num_states = graph.variables.num_states.tolist()
    scopes = [[0], [1, 0], [0, 5], [7, 2], [3, 8, 1]]
    groups = random_tables(np.random.default_rng(0), num_states, scopes)
    expected = sum(float(expectations(graph, group).sum()) for group in groups)

    found = counts(graph)

    assert found is not None
    restated, constant = found.back.in_other(groups, found.graph.variables.num_states)
    sums = [float(g.multiplicity @ expectations(found.graph, g)) for g in restated]
    assert sum(sums) + constant == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("graph", [two_classes(1), half_known()], ids=["random", "smokers"])
def test_the_best_assignment_comes_back(graph):
    best = -oracle.solve(graph).map_energy

    found = counts(graph, maximise=True)

    assert found is not None
    states = itertools.product(*(range(size) for size in found.graph.variables.num_states))
    values = max(np.array(list(states), dtype=float), key=found.graph.log_density)
    assert found.graph.log_density(values) == pytest.approx(best, abs=1e-10)
    before = found.back.values(values, np.random.default_rng(0))
    assert graph.log_density(before) == pytest.approx(best, abs=1e-10)


def test_draws_of_counts_become_draws_of_members_and_leaves():
    graph = two_classes(3)
    expected = oracle.solve(graph)
    found = counts(graph)
    assert found is not None
    rng = np.random.default_rng(0)
    worlds = np.array(list(np.ndindex(*found.graph.variables.num_states)), dtype=float)
    logs = np.array([found.graph.log_density(world) for world in worlds])
    share = np.exp(logs - logs.max())
    draws = worlds[rng.choice(len(worlds), 20000, p=share / share.sum())]

    before = found.back.values(draws.reshape(4, 5000, -1), rng)

    assert before.shape == (4, 5000, 9)
    for variable, probs in expected.probs.items():
        often = np.bincount(before[..., variable].astype(int).ravel(), minlength=len(probs))
        assert often / 20000 == pytest.approx(probs, abs=0.02)  # five standard errors


def test_a_graph_without_twins_is_not_rewritten():
    assert counts(complete("abcd", a=True, b=False)) is None
