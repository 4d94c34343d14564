"""Counts of many open atoms against enumeration, tables, and binomial tails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import hylift as hl
from hylift.errors import UnsupportedError
from hylift.graph import FactorGroup, Names, Variables
from hylift.graph.domains import boolean, categorical
from hylift.potentials import Table
from hylift.potentials.counted import Counted

RNG = np.random.default_rng(8)
TRUTH = ((False, True), (True, False), (True, False, True), (False, True))


def counted_and_table() -> tuple[Counted, Table]:
    """A count of four slots beside another, and the same written out."""
    states = (2, 2, 3, 3, 2)
    log_table = RNG.normal(size=(2, 5, 3))
    potential = Counted(log_table, states, (0, 1, 3, 4), TRUTH)
    table = np.empty((2, *states))
    for at in itertools.product(*map(range, states)):
        count = sum(t[at[slot]] for t, slot in zip(TRUTH, (0, 1, 3, 4), strict=True))
        table[(slice(None), *at)] = log_table[:, count, at[2]]
    return potential, Table(table)


def test_a_count_has_the_values_and_expectations_of_its_table() -> None:
    counted, table = counted_and_table()
    row = np.array([0, 1, 1])
    slots = [RNG.dirichlet(np.ones(size), 3) for size in counted.states]
    np.testing.assert_allclose(
        counted.tabulate(np.arange(2), counted.states), table.log_table, atol=1e-15
    )
    found = counted.expected(row, slots)
    names = "abcde"
    for slot, gradient in enumerate(found.gradients):
        others = [at for at in range(5) if at != slot]
        spec = f"f{names},{','.join('f' + names[at] for at in others)}->f{names[slot]}"
        expected = np.einsum(spec, table.log_table[row], *(slots[at] for at in others))
        np.testing.assert_allclose(gradient, expected, atol=1e-12)
        np.testing.assert_allclose(found.value, (expected * slots[slot]).sum(1), atol=1e-12)


@pytest.mark.parametrize("known", [(0,), (2,), (1, 3), (0, 2, 4), (0, 1, 3, 4), (0, 1, 2, 3, 4)])
def test_what_is_known_of_a_count_shifts_it(known: tuple[int, ...]) -> None:
    counted, table = counted_and_table()
    row = np.array([0, 1, 1, 0])
    values = np.stack([RNG.integers(counted.states[s], size=4) for s in known], axis=1) * 1.0
    left = [size for slot, size in enumerate(counted.states) if slot not in known]
    found, expected = counted.reduce(row, known, values), table.reduce(row, known, values)
    for (potential, rows), (other, own) in [(found, expected)]:
        np.testing.assert_allclose(
            potential.tabulate(np.asarray(rows), left), other.tabulate(np.asarray(own), left)
        )


def graphs(log_table: np.ndarray, others: int = 1) -> tuple[hl.FactorGraph, hl.FactorGraph]:
    """Two counts that share variables, as they are and as tables."""
    num = 9
    variables = Variables.of([boolean] * num + [categorical(["a", "b", "c"])], Names.numbered(10))
    flags = ((False, True),) * 4 + ((True, False),) * 2
    counted = Counted(log_table, (2,) * 6 + (3,), tuple(range(6)), flags)
    scope = np.array([[0, 1, 2, 3, 4, 5, 9], [3, 4, 5, 6, 7, 8, 9]], dtype=np.int32)
    row = np.array([0, 1], dtype=np.int32)
    single = FactorGroup(
        Table(RNG.normal(size=(num, 2))), np.arange(num, dtype=np.int32)[:, None],
        np.arange(num, dtype=np.int32),
    )  # fmt: skip
    table = Table(counted.tabulate(np.arange(2), counted.states))
    return tuple(
        hl.FactorGraph(variables, [FactorGroup(potential, scope, row), single])
        for potential in (counted, table)
    )


@pytest.mark.parametrize("kind", ["any", "saturated above", "saturated below", "hard"])
@pytest.mark.parametrize("method", [hl.Exact(), hl.MiniBuckets()])
def test_chains_have_the_distribution_of_tables(monkeypatch, kind: str, method) -> None:
    monkeypatch.setattr("hylift.rewrite.kinds.MOST_STATES", 1)  # no count is a table
    log_table = RNG.normal(size=(2, 7, 3))
    if kind == "saturated above":
        log_table[:, 3:] = log_table[:, 2:3]
    elif kind == "saturated below":
        log_table[:, :4] = log_table[:, 4:5]
    elif kind == "hard":
        log_table[:, [0, 1, 4]] = -np.inf
    counted, table = graphs(log_table)
    found, expected = hl.infer(counted, method), hl.infer(table, hl.Exact())
    assert found.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-9)
    if isinstance(method, hl.Exact):
        assert found.map().energy == pytest.approx(expected.map().energy, abs=1e-9)
        for name in expected.variables.names:
            np.testing.assert_allclose(
                found.marginal(name).probs, expected.marginal(name).probs, atol=1e-9
            )


def crowd(num: int, rule: str) -> str:
    return f"p = {{0, ..., {num - 1}}}\nA(p)\nB: boolean\n0.3 A(x)\n0.5 B\n{rule}\n"


def tail(least: int, num: int) -> float:
    return float(binom.sf(least - 1, num, 1 / (1 + np.exp(-0.3))))


@pytest.mark.parametrize("num", [14, 100])
@pytest.mark.parametrize(
    ("rule", "share"),
    [
        ("1.5 B => COUNT x: A(x) >= 2", lambda n: tail(2, n)),
        ("1.5 B => (COUNT x: A(x)) >= 60", lambda n: tail(60, n)),
        ("1.5 B => EXACTLY 7 x: A(x)", lambda n: tail(7, n) - tail(8, n)),
        ("1.5 B => EXIST x A(x)", lambda n: tail(1, n)),
        ("1.5 B => FORALL x A(x)", lambda n: tail(n, n)),
        ("1.5 B => (COUNT x: !A(x)) <= 3", lambda n: tail(n - 3, n)),
    ],
)
def test_counts_of_a_hundred_atoms_are_those_of_binomials(num: int, rule: str, share) -> None:
    posterior = hl.infer(hl.ground(hl.parse(crowd(num, rule))), hl.Exact())
    holds = share(num)
    weights = np.array([np.exp(1.5), np.exp(0.5) * (holds * np.exp(1.5) + 1 - holds)])
    assert posterior.log_partition.kind == "exact"
    assert posterior.log_partition.value == pytest.approx(
        num * np.log1p(np.exp(0.3)) + np.log(weights.sum()), abs=1e-9
    )
    np.testing.assert_allclose(posterior.marginal("B").probs, weights / weights.sum(), atol=1e-9)


@pytest.mark.parametrize("lift", ["none", "exact"])
def test_other_methods_take_counts_of_a_hundred_atoms(lift: str) -> None:
    graph = hl.ground(hl.parse(crowd(100, "1.5 B => COUNT x: A(x) >= 60")))
    exact = hl.infer(graph, hl.Exact())
    found = hl.infer(graph, hl.BP(max_steps=500), lift=lift)
    assert found.log_partition.value == pytest.approx(exact.log_partition.value, abs=1e-6)
    np.testing.assert_allclose(found.marginal("B").probs, exact.marginal("B").probs, atol=1e-6)


def test_evidence_on_some_of_a_hundred_atoms_shifts_their_count() -> None:
    model = hl.parse(crowd(100, "1.5 B => COUNT x: A(x) >= 60"))
    known = [(i, i % 3 == 0) for i in range(50)]
    posterior = hl.infer(hl.ground(model, {"A": known}), hl.Exact())
    holds = tail(60 - 17, 50)
    weights = np.array([np.exp(1.5), np.exp(0.5) * (holds * np.exp(1.5) + 1 - holds)])
    np.testing.assert_allclose(posterior.marginal("B").probs, weights / weights.sum(), atol=1e-9)


def test_members_of_a_relation_may_be_many() -> None:
    rules = "On(p)\nJ: boolean\nCan(p)\n-2 Can(x)\n2 J => EXIST x (On(x) ^ Can(x))"
    people = [f"p{i}" for i in range(40)]
    posterior = hl.infer(hl.ground(hl.parse(rules), {"On": people}, closed=["On"]))
    none = (1 / (1 + np.exp(-2.0))) ** 40
    weights = np.array([np.exp(2.0), (1 - none) * np.exp(2.0) + none])
    np.testing.assert_allclose(posterior.marginal("J").probs, weights / weights.sum(), atol=1e-9)


def test_states_of_categorical_variables_are_counted() -> None:
    rules = (
        "p = {0, ..., 29}\nk = {R, S, T}\nKind(p, k!)\n0.4 Kind(x, S)\n1 EXACTLY 5 x: Kind(x, R)"
    )
    posterior = hl.infer(hl.ground(hl.parse(rules)), hl.Exact())
    total = np.array([1.0, np.exp(0.4), 1.0])
    share = binom.pmf(5, 30, 1 / total.sum())
    expected = 30 * np.log(total.sum()) + np.log(share * np.e + 1 - share)
    assert posterior.log_partition.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (hl.EP(), "EP takes tables of discrete variables, and 'A(0)', 'A(1)', 'A(2)', … (50 var"),
        (hl.MeanField(), "one with impossible states has no closed form: use Exact(), BP() or"),
        (hl.BVI(), "use NPVI or MeanField"),
    ],
)
def test_methods_that_cannot_count_say_which_can(method, message: str) -> None:
    rules = "p = {0, ..., 49}\nA(p)\n0.3 A(x)\nEXACTLY 3 x: A(x)."
    with pytest.raises(UnsupportedError) as caught:
        hl.infer(hl.ground(hl.parse(rules)), method)
    assert message in str(caught.value)
