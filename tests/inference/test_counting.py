"""Exact inference in models of many look-alikes, by counts and common means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import hylift as hl
import oracle
from hylift.graph import FactorGraph

SMOKERS = """
    Smokes(person)
    Cancer(person)
    Friends(person, person)
    1.4 !Smokes(x)
    2.3 !Cancer(x)
    4.6 !Friends(x, y)
    1.5 Smokes(x) => Cancer(x)
    1.1 Friends(x, y) ^ Smokes(x) => Smokes(y)
"""


def smokers(count: int) -> FactorGraph:
    return hl.ground(hl.parse(f"person = {{0, ..., {count - 1}}}\n{SMOKERS}"))


def smokers_by_hand(n: int) -> tuple[float, float, float, float]:
    """log Z, and the probabilities that someone smokes, has cancer, and befriends another."""
    k = np.arange(n + 1)  # how many smoke
    # A pair may break the last rule in one order if the first smokes and the second does not.
    agree, breaks = np.logaddexp(4.6 + 1.1, 1.1), np.logaddexp(4.6 + 1.1, 0.0)
    logs = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + 1.4 * (n - k)
    logs += (n - k) * np.logaddexp(2.3 + 1.5, 1.5) + k * np.logaddexp(2.3, 1.5)
    logs += n * agree + k * (n - k) * breaks + (n * (n - 1) - k * (n - k)) * agree
    log_z = float(logsumexp(logs))
    share = np.exp(logs - log_z)
    smokes = float(share @ k) / n
    cancer = smokes * np.exp(1.5 - np.logaddexp(2.3, 1.5)) + (1 - smokes) / (1 + np.exp(2.3))
    broken = float(share @ (k * (n - k))) / (n * (n - 1))
    friends = broken * np.exp(-breaks) + (1 - broken) * np.exp(1.1 - agree)
    return log_z, smokes, float(cancer), float(friends)


@pytest.mark.parametrize("count", [3, 40, pytest.param(1000, marks=pytest.mark.slow)])
def test_smokers_are_exact_for_any_number_of_people(count):
    log_z, smokes, cancer, friends = smokers_by_hand(count)

    found = hl.infer(smokers(count), tasks=("marginals", "logz", "map"))

    assert found.log_partition.kind == "exact"
    assert found.log_partition.value == pytest.approx(log_z, rel=1e-12)
    assert found.marginal("Smokes(1)").prob("true") == pytest.approx(smokes, abs=1e-10)
    assert found.marginal("Cancer(2)").prob("true") == pytest.approx(cancer, abs=1e-10)
    assert found.marginal("Friends(2,0)").prob("true") == pytest.approx(friends, abs=1e-10)
    best = found.map()
    assert best.kind == "exact"
    nobody = (1.4 + 2.3 + 1.5) * count + (4.6 + 1.1) * count**2
    assert best.energy == pytest.approx(-nobody, rel=1e-12)


@pytest.mark.parametrize("model", ["smokers", "rooms"])
def test_expected_counts_of_rules_are_those_without_rewrites(model):
    graph = smokers(3) if model == "smokers" else rooms(6, -0.3)
    plain = hl.infer(graph, hl.Exact(), rewrite=False).expected_counts()

    found = hl.infer(graph, hl.Exact()).expected_counts()

    assert found["expected"].to_numpy() == pytest.approx(plain["expected"].to_numpy(), abs=1e-9)


def test_evidence_on_some_people_leaves_a_count_for_each_kind():
    known = {"Cancer(0)": True, "Cancer(1)": True, "Friends(2,3)": True}
    graph = hl.ground(hl.parse(f"person = {{0, ..., 3}}\n{SMOKERS}"), known)
    plain = hl.infer(graph, hl.Exact(), rewrite=False, tasks=("marginals", "logz", "map"))

    found = hl.infer(graph, hl.Exact(), tasks=("marginals", "logz", "map"))

    assert found.log_partition.value == pytest.approx(plain.log_partition.value, abs=1e-10)
    assert plain.compare(found).max_kl < 1e-12
    assert found.map().energy == pytest.approx(plain.map().energy, abs=1e-10)
    assert found.energy(found.map()) == pytest.approx(found.map().energy, abs=1e-10)


def test_two_modes_of_two_tied_predicates_are_both_found():
    graph = hl.ground(hl.parse("d = {0, ..., 19}\nR(d)\nS(d)\n2 R(x) v S(y)"))
    k = np.arange(21)
    ways = gammaln(21) - gammaln(k + 1) - gammaln(21 - k)
    logs = ways[:, None] + ways + 2.0 * (400 - np.outer(20 - k, 20 - k))
    share = np.exp(logs - logsumexp(logs))

    found = hl.infer(graph)

    assert found.log_partition.kind == "exact"
    assert found.log_partition.value == pytest.approx(float(logsumexp(logs)), abs=1e-10)
    expected = float(share.sum(axis=1) @ k) / 20
    assert found.marginal("R(3)").prob("true") == pytest.approx(expected, abs=1e-10)
    assert found.marginal("S(19)").prob("true") == pytest.approx(expected, abs=1e-10)
    assert expected == pytest.approx(0.75, abs=1e-4)


@pytest.mark.parametrize("count", [24, 200])
def test_booleans_of_different_weights_with_one_coupling_are_exact(count):
    weights = np.random.default_rng(count).normal(-0.5, 1.0, count).round(3)
    own = "\n".join(f"{weight} On({i})" for i, weight in enumerate(weights))
    model = f"n = {{0, ..., {count - 1}}}\nOn(n)\n{own}\n{2 / count} On(x) ^ On(y) where x < y"
    graph = hl.ground(hl.parse(model))

    def log_sum(fields: np.ndarray, more: float) -> float:
        """Over the number of Booleans that are on, one Boolean after the other."""
        logs = np.zeros(1)
        for field in fields:
            logs = np.logaddexp(np.append(logs, -np.inf), np.append(-np.inf, logs + field + more))
        k = np.arange(len(logs))
        return float(logsumexp(logs + 2 / count * k * (k - 1) / 2))

    log_z = log_sum(weights, 0.0)
    on = np.exp(weights[0] + log_sum(weights[1:], 2 / count) - log_z)

    found = hl.infer(graph)

    assert found.log_partition.kind == "exact"
    assert found.log_partition.value == pytest.approx(log_z, abs=1e-9)
    assert found.marginal("On(0)").prob("true") == pytest.approx(on, abs=1e-9)


def rooms(count: int, prior: float) -> FactorGraph:
    """The rooms of the docs, with so many of them."""
    model = f"""
        room = {{0, ..., {count - 1}}}
        Heated(room)
        temperature(room): real
        {prior!r} Heated(r)
        normal(temperature(r) | 12 + 8*Heated(r), 4)
        -0.1 (temperature(r) - temperature(s))^2 where r != s
    """
    return hl.ground(hl.parse(model))


def rooms_by_hand(n: int, prior: float) -> tuple[float, float]:
    """log Z, and the probability that a room is heated, by the number of heated rooms c.

    Given c, the precision of the temperatures is (1/4 + 0.4 n) I - 0.4 11ᵀ, with eigenvalue 1/4
    along 1, where ties change nothing, and 1/4 + 0.4 n across.
    """
    c = np.arange(n + 1)
    spread = 64 * c * (n - c) / n  # sum of squares around the mean
    stiff = 0.25 + 0.4 * n
    logs = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1) + prior * c
    logs += -0.5 * (n - 1) * np.log(4 * stiff) - spread / 8 + spread / (32 * stiff)
    log_z = float(logsumexp(logs))
    return log_z, float(np.exp(logs - log_z) @ c) / n


@pytest.mark.parametrize(
    ("count", "prior"),
    [
        (8, -0.5),
        (30, -0.05),
        pytest.param(1000, -0.00084852740830149, marks=pytest.mark.slow),
    ],
)
def test_any_number_of_rooms_is_exact(count, prior):
    log_z, heated = rooms_by_hand(count, prior)

    found = hl.infer(rooms(count, prior), tasks=("marginals", "logz", "map"))

    assert found.log_partition.kind == "exact"
    assert found.log_partition.error < 1e-9
    assert found.log_partition.value == pytest.approx(log_z, abs=found.log_partition.error)
    assert found.marginal("Heated(5)").prob("true") == pytest.approx(heated, abs=1e-9)
    assert found.marginal("temperature(2)").mean == pytest.approx(12 + 8 * heated, abs=1e-8)
    best = found.map()
    assert best.kind == "exact"
    assert found.energy(best) == pytest.approx(best.energy, abs=1e-8)
    assert best.energy == pytest.approx(0.5 * count * np.log(8 * np.pi), abs=1e-8)  # all cold


@pytest.mark.parametrize("count", [3, 5])
def test_rooms_with_a_common_mean_have_the_answers_of_enumeration(count):
    graph = rooms(count, -0.5)
    expected = oracle.solve(graph)

    found = hl.infer(graph, hl.Exact(), tasks=("marginals", "logz", "map"))

    assert found.log_partition.value == pytest.approx(expected.log_z, abs=1e-9)
    heated, temperature = found.marginal("Heated(1)"), found.marginal("temperature(2)")
    assert heated.probs == pytest.approx(expected.probs[1], abs=1e-9)
    assert temperature.mean == pytest.approx(expected.mean[count + 2], abs=1e-7)
    assert temperature.std**2 == pytest.approx(expected.var[count + 2], abs=1e-7)
    assert found.map().energy == pytest.approx(expected.map_energy, abs=1e-8)


def test_explain_names_counts_and_means():
    counted = hl.lift(smokers(5)).explain().rewrites
    tied = hl.lift(rooms(6, -0.5)).explain().rewrites

    assert counted == {"counts": "5 variables in 1 count, beside 30 leaves"}
    assert tied == {
        "common means": "6 reals around 1 mean",
        "counts": "6 variables in 1 count, beside 6 leaves",
    }


@pytest.mark.parametrize("seed", range(6))
def test_random_look_alikes_have_the_same_answers_with_and_without_rewrites(seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=6).round(2)
    model = f"""
        thing = {{a, b, c, d, e}}
        P(thing)
        color = {{x, y, z}}
        Q(thing, color!)
        G
        L(thing, thing)
        value(thing): real
        {weights[0]} P(i) ^ P(j)
        {weights[1]} P(i) ^ Q(j, "x")
        {weights[2]} Q(i, c) ^ Q(j, c)  where i != j
        {weights[3]} G ^ P(i)
        {weights[4]} L(i, j) ^ P(i) => P(j)
        normal(value(i) | 2*G, 1)
        {weights[5]} value(i)*value(j)/100 where i != j
    """
    known = {"P(a)": True} if seed % 2 else {"Q(b)": "z"}
    links = {f"L({i},{j})": True for i in "abcd" for j in "abcde"}
    graph = hl.ground(hl.parse(model), known | links)
    plain = hl.infer(graph, hl.Exact(), rewrite=False, tasks=("marginals", "logz", "map"))

    found = hl.infer(graph, hl.Exact(), tasks=("marginals", "logz", "map"))

    assert found.log_partition.value == pytest.approx(plain.log_partition.value, abs=1e-9)
    assert plain.compare(found).max_kl < 1e-9
    assert found.map().energy == pytest.approx(plain.map().energy, abs=1e-8)
