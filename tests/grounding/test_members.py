"""Quantifiers, sums and counts over the rows of closed-world relations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as stats

import hylift as hl
from hylift.errors import IntractableError, ModelError
from slow_grounding import agree

PEOPLE = ", ".join(f"P{i}" for i in range(40))
ON = [("On", "P3", "J0"), ("On", "P5", "J0"), ("On", "P7", "J0"), ("On", "P3", "J1")]
JOBS = f"""
person = {{{PEOPLE}}}
job = {{J0, J1, J2}}
On(person, job)
Can(person)
Done(job)
-0.5 Can(x)
0.2 Done(j)
"""


def shapes(grounding) -> set[tuple[int, ...]]:
    return {group.scope.shape for group in grounding.graph.groups}


@pytest.mark.parametrize(
    "rule",
    [
        "2 Done(j) => EXIST x (On(x, j) ^ Can(x))",
        "2 Done(j) => !(EXIST x (On(x, j) ^ Can(x) ^ !Done(j)))",
        "2 Done(j) => FORALL x (On(x, j) => Can(x))",
        "0.7 Done(j) * COUNT x: (On(x, j) ^ Can(x))",
        "0.7 Done(j) ^ (COUNT x: (On(x, j) ^ Can(x))) >= 2",
        "0.7 EXACTLY 1 x: (On(x, j) ^ Can(x))",
        "0.3 (COUNT x: On(x, j)) * Done(j)",
        "0.3 (AVG x: On(x, j) * Can(x)) * Done(j)",
        "0.3 (MAX x: On(x, j) * Can(x)) * Done(j)",
        "0.3 (MIN x: On(x, j) * Can(x)) - Done(j)",
        "0.3 (SUM x: On(x, j) * Can(x)) * (SUM x: On(x, j) * !Can(x))",
        "0.3 Done(j) * SUM x, y: On(x, j) * On(y, j) * (x < y) * (Can(x) <=> Can(y))",
        "0.3 Done(j) ^ Done(k) ^ (EXIST x (On(x, j) ^ On(x, k) ^ Can(x))) where j < k",
        "0.3 SUM x: (On(x, j) ^ !On(x, J1)) * Can(x) * Done(j)",
        "0.3 EXIST x (On(x, J0) ^ Can(x))",
        "0.3 (COUNT x: (On(x, j) ^ Can(x))) + 1 >= 2",
        "0.3 (AVG x: On(x, j) * (x != P3) * Can(x)) * Done(j)",
        "0.3 (AVG x: (x < P2) * Can(x)) * Done(j) * On(P3, j)",
        "0.3 (COUNT x: (On(x, j) ^ Can(x))) > (COUNT x: (On(x, j) ^ !Can(x)))",
        "0.3 Done(j) ^ (COUNT x: (On(x, j) ^ Can(x))) > (COUNT x: (On(x, k) ^ Can(x)))",
    ],
)
def test_quantifiers_over_relations_are_those_of_the_formula(rule: str) -> None:
    agree(JOBS + rule, true_atoms=ON, closed=["On"], seeds=5)


def test_states_of_one_variable_may_be_members() -> None:
    text = """
        s = {S0, S1}
        c = {C0, C1, C2}
        Ok(s, c)
        Kind(s, c!)
        0.5 Kind(x, C0)
        1 EXIST k (Ok(x, k) ^ Kind(x, k))
    """
    rows = [("Ok", "S0", "C0"), ("Ok", "S0", "C1"), ("Ok", "S1", "C2")]
    agree(text, true_atoms=rows, closed=["Ok"], seeds=5)


def test_counts_are_exact_in_functions_too() -> None:
    text = """
        p = {A, B, C}
        Can(p)
        z: real[-3, 3]
        0.2 Can(x)
        2 ((COUNT x: Can(x)) >= 2) * exp(z)
        -1 z^2
    """
    graph = agree(text).graph
    exact, drawn = hl.infer(graph, hl.Exact()), hl.infer(graph, hl.Gibbs(draws=500))
    assert drawn.marginal("z").mean == pytest.approx(exact.marginal("z").mean, abs=0.02)


@pytest.mark.filterwarnings("ignore:.*'j' under EXIST is not the 'j' outside it")
def test_shifts_of_bound_variables_are_theirs_alone() -> None:
    rule = "0.3 Done(j) ^ EXIST j (On(P3, j) ^ Done(j+1))"
    agree(JOBS + rule, true_atoms=ON, closed=["On"], seeds=5)


def test_only_members_are_in_the_factor() -> None:
    rule = "2 Done(j) => EXIST x (On(x, j) ^ Can(x))"
    found = agree(JOBS + rule, true_atoms=ON, closed=["On"])
    assert shapes(found) == {(40, 1), (3, 1), (1, 4), (1, 2), (1, 1)}


LIKES = "Likes(person, job)\n0.1 Likes(x, j)\n"
EVERYBODY = {"On": [(f"P{i}", "J0") for i in range(40)]}


def test_a_quantifier_with_many_members_is_told_what_to_count() -> None:
    rule = "2 Done(j) => EXIST x (On(x, j) ^ Can(x) ^ Likes(x, j))"
    with pytest.raises(ModelError) as caught:
        hl.ground(hl.parse(JOBS + LIKES + rule), EVERYBODY, closed=["On"])
    assert str(caught.value) == (
        "the rule '2 Done(j) => EXIST x On(x, j) ^ Can(x) ^ Likes(x, j)' is a potential of about "
        "10^24 numbers over 81 variables, more than the maximum of 4,194,304: EXIST x has 40 "
        "members here; give what it says of each a predicate of its own, of which it is enough to "
        "count the true ones, as in 'Part(x, j) <=> (Can(x) ^ Likes(x, j)).'"
    )


def test_a_count_of_open_formulas_is_told_what_to_count() -> None:
    text = "p = {1, ..., 40}\nCan(p)\nLikes(p)\n0.1 Likes(x)\n"
    with pytest.raises(ModelError) as caught:
        hl.ground(hl.parse(text + "2 COUNT x: (Can(x) ^ Likes(x)) >= 2"))
    assert "as in 'Part(x) <=> (Can(x) ^ Likes(x)).'; or quantify over fewer" in str(caught.value)

    rules = "Part(p)\nPart(x) <=> (Can(x) ^ Likes(x)).\n2 COUNT x: Part(x) >= 2"
    assert hl.ground(hl.parse(text + rules)).num_factors == 40 + 40 + 1


def test_what_has_a_predicate_of_its_own_is_counted() -> None:
    rules = "Part(person, job)\nPart(x, j) <=> (Can(x) ^ Likes(x, j)).\n"
    rule = "2 Done(j) => EXIST x (On(x, j) ^ Part(x, j))"
    found = hl.infer(hl.ground(hl.parse(JOBS + LIKES + rules + rule), EVERYBODY, closed=["On"]))
    none = (1 - (1 / (1 + np.exp(0.5))) * (1 / (1 + np.exp(-0.1)))) ** 40
    odds = np.exp(0.2) * ((1 - none) * np.exp(2) + none) / np.exp(2)
    assert found.marginal("Done(J0)").prob("true") == pytest.approx(odds / (1 + odds), abs=1e-9)


def test_advice_names_only_what_is_open() -> None:
    with pytest.raises(ModelError) as caught:
        hl.ground(hl.parse(JOBS + "2 Done(j) => EXIST x (On(x, j) ^ Can(x))"), EVERYBODY)
    assert "close some of its predicates (closed=['On']), quantify over" in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            "1 Done(j) => FORALL x (On(x, j) ^ Can(x))",
            "'FORALL x On(x, j) ^ Can(x)' is false unless 'On(x, j)' is true for every 'x': to say "
            "something of those for whom it is, write 'FORALL x (On(x, j) => …)'",
        ),
        (
            "1 Done(j) => EXIST x (On(x, j) => Can(x))",
            "'EXIST x On(x, j) => Can(x)' is true if 'On(x, j)' is false for some 'x': to say that "
            "there is one for whom it is true, write 'EXIST x (On(x, j) ^ …)'",
        ),
    ],
)
def test_the_connective_of_the_other_quantifier_is_warned_of(rule: str, sentence: str) -> None:
    messages = [problem.message for problem in hl.check(hl.parse(JOBS + rule), closed=["On"])]
    assert messages == [sentence]
    assert sentence not in [p.message for p in hl.check(hl.parse(JOBS + rule))]


@pytest.mark.parametrize(
    ("rule", "number"),
    [
        ("FORALL x, j (Done(j) => Can(x) v On(x, j)).", 40 * 3 - 4),
        ("FORALL j FORALL x (On(x, j) => Can(x) v Done(j)).", 4),
        ("FORALL x (On(x, j) => Can(x)) where j != J1.", 3),
    ],
)
def test_hard_rules_about_all_are_about_each(rule: str, number: int) -> None:
    rules = JOBS + rule
    found = agree(rules, true_atoms=ON, closed=["On"], seeds=5)
    assert found.graph.num_factors == 40 + 3 + number
    assert found.plans[-1].label.startswith("FORALL")


@pytest.mark.parametrize(
    ("comparison", "holds"),
    [
        ("(COUNT x: Can(x)) >= (COUNT x: Has(x)) + 2", lambda can, has: can >= has + 2),
        ("(COUNT x: Can(x)) - (COUNT x: !Has(x)) = 2", lambda can, has: can - (30 - has) == 2),
        ("3 > (COUNT x: Has(x)) - (COUNT x: Can(x))", lambda can, has: has - can < 3),
        ("(-(COUNT x: Can(x))) < -(COUNT x: Has(x))", lambda can, has: can > has),
    ],
)
def test_two_counts_of_many_open_atoms_are_compared(comparison: str, holds) -> None:
    text = "p = {1, ..., 30}\nCan(p)\nHas(p)\n0.3 Can(x)\n-0.2 Has(x)\n1.5 " + comparison
    posterior = hl.infer(hl.ground(hl.parse(text)), hl.Exact())

    can, has = np.arange(31)[:, None], np.arange(31)
    weight = stats.binom(30, 1 / (1 + np.exp(-0.3))).pmf(can)
    weight = weight * stats.binom(30, 1 / (1 + np.exp(0.2))).pmf(has)
    weight = weight * np.exp(1.5 * holds(can, has))
    expected = [(weight * count).sum() / 30 / weight.sum() for count in (can, has)]
    found = [posterior.marginal(name).prob("true") for name in ("Can(7)", "Has(9)")]
    assert found == pytest.approx(expected, abs=1e-10)


def test_majorities_of_hundreds_of_open_atoms_are_exact() -> None:
    text = "p = {1, ..., 450}\nCan(p)\n0.3 Can(x)\n1 COUNT x: Can(x) <= 225"
    posterior = hl.infer(hl.ground(hl.parse(text)), hl.Exact())

    count = np.arange(451)
    weight = stats.binom(450, 1 / (1 + np.exp(-0.3))).pmf(count) * np.exp(1.0 * (count <= 225))
    expected = (weight * count).sum() / 450 / weight.sum()
    assert posterior.marginal("Can(7)").prob("true") == pytest.approx(expected, abs=1e-10)


def test_counts_of_too_many_open_atoms_name_other_methods() -> None:
    text = "p = {1, ..., 900}\nCan(p)\n0.3 Can(x)\n1 COUNT x: Can(x) <= 450"
    with pytest.raises(IntractableError) as caught:
        hl.infer(hl.ground(hl.parse(text)), hl.Exact())
    assert str(caught.value) == (
        "a factor of 900 discrete variables needs a table of 8.45e+270 entries; the limit is "
        "2.68e+08. Count fewer atoms, or use Gibbs() or SMC()."
    )


def test_several_counts_are_told_to_be_predicates_of_their_own() -> None:
    text = "p = {1, ..., 30}\nq\nCan(p)\nHas(p, q)\n0.3 Can(x)\n"
    rule = "1 (COUNT x: Has(x, y)) >= 5 ^ (COUNT x: Can(x)) < 7"
    with pytest.raises(ModelError) as caught:
        hl.ground(hl.parse(text + rule), {"q": ["a"]})
    assert (
        "give one of its counts a predicate of its own, as in 'Part(y) <=> ((COUNT x: Has(x, y)) "
        ">= 5).'; or quantify over fewer constants, or split it" in str(caught.value)
    )


def test_counts_of_a_relation_are_numbers() -> None:
    found = agree(JOBS + "0.3 (COUNT x: On(x, j)) * Done(j)", true_atoms=ON, closed=["On"])
    assert shapes(found) == {(40, 1), (3, 1), (1, 1)}


def test_groundings_without_members_have_no_average() -> None:
    found = agree(JOBS + "0.3 (AVG x: On(x, j) * Can(x)) * Done(j)", true_atoms=ON, closed=["On"])
    assert found.graph.num_factors == 45


DELIVERIES = """
Uses(delivery, seg)
time(delivery): real
duration(seg): real
normal(duration(s) | 5, 4)
normal(time(d) | SUM s: Uses(d, s) * duration(s), 4)
"""


def test_sums_of_reals_are_those_of_dense_algebra() -> None:
    rng = np.random.default_rng(3)
    uses = rng.random((30, 12)) < 0.3
    rows = [(f"d{d}", f"s{s}") for d, s in np.argwhere(uses)]
    times = rng.normal(10, 4, 30)
    evidence = {
        "Uses": rows,
        "time": [(f"d{d}", time) for d, time in enumerate(times)],
        "seg": [f"s{s}" for s in range(12)],
    }
    graph = hl.ground(hl.parse(DELIVERIES), evidence, closed=["Uses"])
    posterior = hl.infer(graph)

    precision = uses.T @ uses.astype(float) / 4 + np.eye(12) / 4
    cov = np.linalg.inv(precision)
    mean = cov @ (uses.T @ times / 4 + 5 / 4)
    for s in range(12):
        own = posterior.marginal(f"duration(s{s})")
        assert own.mean == pytest.approx(mean[s], abs=1e-10)
        assert own.std == pytest.approx(np.sqrt(cov[s, s]), abs=1e-10)


def test_lifted_sums_are_those_of_the_ground_graph() -> None:
    rows = [(f"d{d}", f"s{(d + i) % 6}") for d in range(6) for i in range(2)]
    evidence = {"Uses": rows, "time": [(f"d{d}", 12.0) for d in range(6)]}
    graph = hl.ground(hl.parse(DELIVERIES), evidence, closed=["Uses"])
    assert hl.lift(graph).graph.num_variables == 1
    by_lifting = hl.infer(graph, hl.GaBP())
    exact = hl.infer(graph)
    assert by_lifting.marginal("duration(s1)").mean == pytest.approx(
        exact.marginal("duration(s1)").mean, abs=1e-8
    )


def test_the_builder_has_sums_and_counts() -> None:
    m = hl.ModelBuilder()
    delivery, seg = m.type("delivery"), m.type("seg")
    uses = m.predicate("Uses", delivery, seg)
    time = m.predicate("time", delivery, domain=hl.real)
    duration = m.predicate("duration", seg, domain=hl.real)
    d, s = m.variables("d s")
    m.rule(None, hl.normal(duration(s), 5, 4))
    m.rule(None, hl.normal(time(d), hl.sum_over(s, uses(d, s) * duration(s)), 4))
    assert m.build().rules == hl.parse(DELIVERIES).rules


def test_sums_that_run_over_all_constants_are_written_out() -> None:
    agree("p = {A, B, C}\nCan(p)\nx: real\nnormal(x | SUM y: Can(y), 2)\n0.5 (COUNT y: Can(y)) > 1")


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("1 COUNT x: y(x)", "'y(x)' is real, but COUNT needs a truth value"),
        ("1 SUM X: Can(X)", "SUM takes variables, but 'X' is a constant"),
        ("1 ((COUNT x: Can(x)) > 2; slope=3)", "is true or false, and has no slope"),
        ("1 (COUNT x: Can(x)) >= y(z)", "compares a count, but 'y(z)' is none"),
        ("1 EXACTLY 1.5 x: Can(x)", "no count is 1.5"),
        ("SUM x: Can(x).", "a hard rule needs a truth value"),
    ],
)
def test_what_cannot_be_said_is_told(rule: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        hl.ground(hl.parse(f"p = {{A, B}}\nCan(p)\ny(p): real\n1 Can(x)\n-1 y(x)^2\n{rule}"))
    assert sentence in str(caught.value)


@pytest.mark.parametrize("mean", ["Uses(d, s) * duration(s)", "3 + 2 * Uses(d, s) * duration(s)"])
def test_a_normal_for_every_row_is_warned_of(mean: str) -> None:
    text = DELIVERIES.replace("SUM s: Uses(d, s) * duration(s)", mean)
    (found,) = hl.check(hl.parse(text))
    assert "a normal of its own for every 's'" in found.message
    assert "'SUM s: " in found.message


@pytest.mark.parametrize(
    "mean", ["2 * duration(s) * Uses(e, s)", "(SUM s: Uses(d, s) * duration(s))"]
)
def test_other_means_are_left_alone(mean: str) -> None:
    assert not hl.check(hl.parse(DELIVERIES.replace("SUM s: Uses(d, s) * duration(s)", mean)))
