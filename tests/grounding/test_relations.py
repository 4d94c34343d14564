"""Comparisons of observed numbers, and atoms that exist only where tables have rows, against the
same models with closed-world predicates made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import hylift as hl
from hylift.errors import EvidenceError, ModelError
from hylift.grounding import World, ground_world

RNG = np.random.default_rng(7)
SEGMENTS = pd.DataFrame({"seg": [f"s{i}" for i in range(12)], "Len": RNG.random(12).round(2)})
PAIRS = pd.DataFrame(
    [(f"s{i}", f"s{j}", round(RNG.random(), 2)) for i in range(12) for j in range(12)],
    columns=["a", "b", "dist"],
)
DECLARED = """
kind = {Wall, Door, Other}
seg
Kind(seg, kind!)
Old(seg)
0.7 Kind(s, Wall)
0.4 Old(s)
"""
REAL = "Len(seg): real\ndist(seg, seg): real\n"
BY_HAND = "Short(seg)\nNear(seg, seg)\n"


def solved(rules: str, evidence: object, **options: object) -> hl.Posterior:
    return hl.infer(hl.ground(hl.parse(rules), evidence, **options), hl.Exact())


def assert_same(found: hl.Posterior, expected: hl.Posterior) -> None:
    assert found.log_partition.value == pytest.approx(expected.log_partition.value, abs=1e-10)
    assert sorted(found.variables.names) == sorted(expected.variables.names)
    for name in expected.variables.names:
        np.testing.assert_allclose(
            found.marginal(name).probs, expected.marginal(name).probs, atol=1e-10
        )


@pytest.mark.filterwarnings("ignore:.*no rule uses")
@pytest.mark.parametrize(
    ("rule", "by_hand"),
    [
        ("(Len(s) < 0.3) => !Kind(s, Wall).", "Short(s) => !Kind(s, Wall)."),
        ("1.5 Kind(s, Door) where Len(s) < 0.3", "1.5 Kind(s, Door) where Short(s)"),
        ("1.5 Kind(s, Door) where 10*Len(s) - 3 < 0, Old(s) ^ false", None),
        ("1.5 !(Len(s) < 0.3) ^ Old(s)", "1.5 !Short(s) ^ Old(s)"),
        ("1.5 (Len(s) >= 0.3) * Kind(s, Door) ^ Old(s)", None),
        (
            "0.8 (dist(s, t) < 0.2) ^ (Len(s) < 0.3) => (Old(s) <=> Old(t))",
            "0.8 Near(s, t) ^ Short(s) => (Old(s) <=> Old(t))",
        ),
        (
            "0.8 Old(s) => EXIST t (dist(s, t) < 0.1 ^ Kind(t, Door))",
            "0.8 Old(s) => EXIST t (Nearer(s, t) ^ Kind(t, Door))",
        ),
        (
            "0.3 Old(s) * COUNT t: (dist(s, t) < 0.1 ^ Old(t))",
            "0.3 Old(s) * COUNT t: (Nearer(s, t) ^ Old(t))",
        ),
        ("0.8 Old(S1) ^ Old(s) ^ dist(S1, s) < 0.2", "0.8 Old(S1) ^ Old(s) ^ Near(S1, s)"),
        (
            "0.8 max(Len(s), Len(t)) < 0.3 ^ Old(s) ^ Old(t)",
            "0.8 Short(s) ^ Short(t) ^ Old(s) ^ Old(t)",
        ),
    ],
)
def test_comparisons_of_observed_numbers_are_relations(rule: str, by_hand: str | None) -> None:
    if by_hand is None:
        with pytest.raises(ModelError):
            hl.ground(hl.parse(DECLARED + REAL + rule), {"Len": SEGMENTS, "dist": PAIRS})
        return
    rule, by_hand = rule.replace("S1", '"s1"'), by_hand.replace("S1", '"s1"')
    found = solved(DECLARED + REAL + rule, {"Len": SEGMENTS, "dist": PAIRS})
    evidence = {
        "seg": SEGMENTS[["seg"]],
        "Short": SEGMENTS[SEGMENTS.Len < 0.3][["seg"]],
        "Near": PAIRS[PAIRS.dist < 0.2][["a", "b"]],
        "Nearer": PAIRS[PAIRS.dist < 0.1][["a", "b"]],
    }
    declared = DECLARED + BY_HAND + "Nearer(seg, seg)\n"
    expected = solved(declared + by_hand, evidence, closed=["Short", "Near", "Nearer"])
    assert_same(found, expected)


def test_comparisons_in_the_place_of_numbers_stay_soft() -> None:
    rules = "x: real\ny: real\nA: boolean\n{} A * (x < y)\n"
    world = {"x": 1.0, "y": 3.0, "A": True}
    graph = hl.ground(hl.parse(rules.format("2")), world)
    assert graph.condition().log_constant == pytest.approx(-2 * np.log1p(np.exp(-2)), abs=1e-12)
    graph = hl.ground(hl.parse("x: real\ny: real\nA: boolean\n2 A ^ (x < y)\n"), world)
    assert graph.condition().log_constant == pytest.approx(2.0, abs=1e-12)


def test_constants_decide_comparisons_too() -> None:
    rules = "const W = 3\nA(x)\nlen(x): real\n1 A(y) ^ (len(y) > W - 1) ^ (W > 2)"
    graph = hl.ground(hl.parse(rules), {"len": [("a", 1.0), ("b", 2.5)]})
    assert list(graph.variables.names) == ["A(b)"]


@pytest.mark.filterwarnings("ignore:.*improper")
def test_hidden_numbers_decide_nothing() -> None:
    model = hl.parse(DECLARED + "Len(seg): real\n1 Old(s) where Len(s) < 0.3")

    def said(evidence: object, **options: object) -> str:
        with pytest.raises(ModelError) as caught:
            hl.ground(model, evidence, **options)
        return str(caught.value).splitlines()[0]

    remedy = (
        "give its value, pass only_rows=['Len'] to leave out groundings without a row, or multiply "
        "by the comparison to have a soft one, as in 'A(x) * (Len(s) < 0.3)'"
    )
    why = "'Len(s) < 0.3' is true or false here, which the data must decide, but"
    known = {"Len": [("a", 0.2), ("b", 0.5)]}
    hidden = said({**known, "seg": ["c"]})
    assert hidden.endswith(f"{why} Len(c) is hidden: {remedy}")
    assert f"{why} Len(b) is hidden" in said({"Len": [("a", 0.2, 0.0), ("b", 0.5, 0.1)]})
    given = {"Len": [("a", 0.2), ("b", None)], "seg": ["c"]}
    assert f"{why} Len(b) is hidden" in said(given, only_rows=["Len"])
    graph = hl.ground(model, {**known, "seg": ["c"]}, only_rows=["Len"])
    assert set(graph.variables.names) >= {"Old(a)", "Old(c)"}
    open_truth = hl.parse(DECLARED + "Len(seg): real\n1 Old(s) where Len(s)*Old(s) < 0.3")
    with pytest.raises(ModelError, match="but 'Old' is open"):
        hl.ground(open_truth, known)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "1 Old(s) where (Len(s) < 0.3; slope=2)",
            "where takes comparisons and truth values that",
        ),
        ("1 !((Old(s) ^ Old(s)) < 0.3)", "'<' compares numbers, but 'Old(s) ^ Old(s)' is a truth"),
        (
            "1 Old(s) ^ ((Len(s) < 1; slope=2))",
            "'(Len(s) < 1; slope=2)' is a soft comparison of numbers",
        ),
    ],
)
def test_comparisons_that_are_none(rule: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        hl.check(hl.parse(DECLARED + "Len(seg): real\n" + rule))
    assert message in str(caught.value)


VOTES = [("w1", "a", True), ("w1", "b", None), ("w2", "b", True), ("w3", "c", False)]
VOTING = """
Vote(worker, item)
Good(item)
Fair(worker)
0.3 Good(i)
0.1 Fair(w)
"""


@pytest.mark.parametrize(
    ("rule", "by_hand"),
    [
        ("1 Vote(w, i) => Good(i)", "1 Vote(w, i) => Good(i) where Asked(w, i)"),
        ("bernoulli(Vote(w, i) | 0.2 + 0.6*Good(i))", None),
        (
            "1 Vote(w, i) ^ Vote(w, j) => (Good(i) <=> Good(j)) where i != j",
            "1 Vote(w, i) ^ Vote(w, j) => (Good(i) <=> Good(j))\n"
            "  where i != j, Asked(w, i), Asked(w, j)",
        ),
        (
            "1 Good(i) => EXIST w (Vote(w, i) ^ Fair(w))",
            "1 Good(i) => EXIST w (Asked(w, i) ^ Vote(w, i) ^ Fair(w))",
        ),
        (
            "1 Good(i) => FORALL w (Vote(w, i) v Fair(w))",
            "1 Good(i) => FORALL w (Asked(w, i) => (Vote(w, i) v Fair(w)))",
        ),
        (
            "0.5 Good(i) * SUM w: Vote(w, i) * Fair(w)",
            "0.5 Good(i) * SUM w: Asked(w, i) * Vote(w, i) * Fair(w)",
        ),
        (
            "0.5 Good(i) * AVG w: Vote(w, i) * Fair(w)",
            "0.5 Good(i) * AVG w: Asked(w, i) * Vote(w, i) * Fair(w)",
        ),
        (
            "1 Good(i) ^ EXIST w (Fair(w) ^ EXIST j (Vote(w, j) ^ j != i))",
            "1 Good(i) ^ EXIST w (Fair(w) ^ EXIST j (Asked(w, j) ^ Vote(w, j) ^ j != i))",
        ),
    ],
)
def test_atoms_exist_only_where_their_table_has_rows(rule: str, by_hand: str | None) -> None:
    by_hand = by_hand or rule + " where Asked(w, i)"
    found = solved(VOTING + rule, {"Vote": VOTES}, only_rows=["Vote"])
    asked = {"Vote": VOTES, "Asked": [row[:2] for row in VOTES]}
    declared = VOTING + "Asked(worker, item)\n"
    assert_same(found, solved(declared + by_hand, asked, closed=["Asked"]))


def test_numbers_and_states_exist_only_where_their_table_has_rows() -> None:
    rules = """
        rating(user, item): real
        Mood(user, item, mood!)
        quality(item): real
        normal(quality(i) | 0, 1)
        normal(rating(u, i) | quality(i), 1)
        0.5 Mood(u, i, Good)
    """
    evidence = {
        "rating": [("u1", "a", 1.0), ("u2", "b", 2.0), ("u2", "c", None)],
        "Mood": [("u1", "a", "Good"), ("u3", "b", "Bad")],
    }
    grounding = ground_world(World.of(hl.parse(rules), evidence, only_rows=["rating", "Mood"]))
    assert sorted(grounding.graph.variables.names) == [
        "Mood(u1,a)",
        "Mood(u3,b)",
        "quality(a)",
        "quality(b)",
        "quality(c)",
        "rating(u1,a)",
        "rating(u2,b)",
        "rating(u2,c)",
    ]
    assert grounding.graph.num_factors == 3 + 3 + 2
    assert hl.infer(grounding.graph).marginal("quality(b)").mean == pytest.approx(1.0, abs=1e-12)


def test_only_rows_names_open_predicates_with_rows() -> None:
    model = hl.parse(VOTING + "1 Vote(w, i) => Good(i)")

    def said(only_rows: object, closed: tuple[str, ...] = ()) -> str:
        with pytest.raises(EvidenceError) as caught:
            hl.ground(model, {"Vote": VOTES}, only_rows=only_rows, closed=closed)
        return str(caught.value)

    assert said("Vote") == "only_rows must be a list of predicates, such as ['Vote'], not a string"
    assert said(["Votes"]) == (
        "only_rows names 'Votes', which is not a predicate of the model. Did you mean 'Vote'?"
    )
    assert said(["Fair"]) == "only_rows names 'Fair', but no table has rows of it"
    assert said(["Vote"], ("Vote",)).startswith("'Vote' is closed, so that its other atoms are")


USES = {("d0", "s0"), ("d0", "s1"), ("d1", "s1"), ("d1", "s2"), ("d1", "s3"), ("d3", "s0")}
LENGTHS = {"s0": 0.5, "s1": 2.0, "s2": -1.0, "s3": 4.0}
DELIVERIES = [f"d{i}" for i in range(4)]
USED = {d: [LENGTHS[s] for e, s in sorted(USES) if e == d] for d in DELIVERIES}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("(COUNT s: Uses(d, s)) >= 2", lambda own: len(own) >= 2),
        ("(COUNT s: Uses(d, s)) < 2", lambda own: len(own) < 2),
        ("EXACTLY 1 s: Uses(d, s)", lambda own: len(own) == 1),
        ("!(COUNT s: Uses(d, s) >= 2)", lambda own: len(own) < 2),
        ("(COUNT s: (Uses(d, s) ^ Len(s) > 1)) = 1", lambda own: sum(x > 1 for x in own) == 1),
        ("(SUM s: Uses(d, s) * Len(s)) > 1", lambda own: sum(own) > 1),
        ("(SUM s: Uses(d, s) * Len(s)^2) + 1 < 5.5", lambda own: sum(x * x for x in own) < 4.5),
        ("(AVG s: Uses(d, s) * Len(s)) < 1.5", lambda own: own and sum(own) / len(own) < 1.5),
        ("(MIN s: Uses(d, s) * Len(s)) > 0", lambda own: own and min(own) > 0),
        ("(MAX s: Uses(d, s) * Len(s)) <= 2", lambda own: own and max(own) <= 2),
        ("EXIST s Uses(d, s)", lambda own: own),
        ("!(EXIST s Uses(d, s))", lambda own: not own),
        ("FORALL s (Uses(d, s) => Len(s) > 0)", lambda own: all(x > 0 for x in own)),
        ("EXIST s (Uses(d, s) ^ Len(s) > 3) v d = d3", lambda own: own and max(own) > 3),
        ("(SUM s: Uses(d, s) * Len(s)) > (AVG s: Len(s))", lambda own: sum(own) > 5.5 / 4),
    ],
)
@pytest.mark.filterwarnings("ignore:.*no rule uses")
def test_conditions_are_whatever_the_data_decide(condition: str, holds) -> None:
    rules = "Uses(delivery, seg)\nLen(seg): real\nSlow(delivery)\n0.5 Slow(d)"
    evidence = {"Uses": sorted(USES), "Len": list(LENGTHS.items()), "delivery": DELIVERIES}
    condition = condition.replace("d = d3", 'd = "d3"')

    def slow(rule: str) -> list[str]:
        graph = hl.ground(hl.parse(f"{rules}\n{rule}"), evidence, closed=["Uses"])
        return [
            delivery
            for delivery in DELIVERIES
            if hl.infer(graph, hl.Exact()).marginal(f"Slow({delivery})").prob("true") > 0.7
        ]

    expected = [d for d in DELIVERIES if holds(USED[d]) or ("d3" in condition and d == "d3")]
    assert slow(f"1 Slow(d) where {condition}") == expected
    assert slow(f"1 Slow(d) ^ ({condition})") == expected


def test_sums_of_hidden_numbers_decide_nothing() -> None:
    rules = hl.parse("A: boolean\nx(p): real\nnormal(x(i) | 0, 1)\n1 A ^ (SUM i: x(i)) > 1")
    with pytest.raises(ModelError, match=r"\(SUM i: x\(i\)\) > 1' is true .* x\(b\) is hidden"):
        hl.ground(rules, {"x": [("a", 1.0), ("b", None)]})


def test_conditions_about_open_predicates_name_them() -> None:
    rules = hl.parse("A(p)\nB(p)\n1 A(x) where EXIST y B(y)")
    with pytest.raises(ModelError, match="requires a closed-world predicate, but 'B' is open"):
        hl.ground(rules, {"p": ["a"]})
