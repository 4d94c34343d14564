"""Spellings that are accepted with another meaning than was meant: warnings, notes and remedies."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import hylift as hl
from hylift.errors import EvidenceError, ModelError
from hylift.grounding import World


def told(rules: str, evidence: object, **options: object) -> list[str]:
    """The warnings of a grounding."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        hl.ground(hl.parse(rules), evidence, **options)
    return [str(warning.message) for warning in found]


def refused(rules: str, evidence: object = None) -> str:
    with pytest.raises((ModelError, EvidenceError)) as caught:
        hl.ground(hl.parse(rules), evidence)
    return str(caught.value)


def test_a_capital_that_no_table_has_is_probably_a_variable() -> None:
    evidence = {"A": [("Ann", True), ("Bob", False)]}
    assert told("A(person)\n1 A(X)\n1 A(x)", evidence) == [
        "the constant 'X' of type 'person' is in a rule, but in no table: variables begin with a "
        "small letter, 'x'"
    ]
    assert told("A(person)\n1 A(Ann)", evidence) == []
    assert told("Kind(seg, kind!)\n1 Kind(s, W)", {"Kind": [("s1", "Door")]}) == []


def test_constants_that_differ_in_case_or_spaces_are_told() -> None:
    rules = "Open(shop)\nBusy(shop)\n1 Open(s) => Busy(s)"
    names = ["Shop 1", "SHOP 1", "Shop 2"]
    evidence = {"Open": names, "Busy": [("Shop 1 ", True), ("Shop  2", True), ("Shop 2", False)]}
    assert told(rules, evidence) == [
        "the type 'shop' has constants that differ only in case or spaces: 'SHOP 1', 'Shop 1' and "
        "'Shop 1 ', and 1 other like it; if they are the same, write them the same in all tables, "
        "as with df[column].str.strip()"
    ]
    assert told("shop = {a, A}\n" + rules, {"Open": ["a", "A"]}) == []


def test_constants_that_unicode_composes_differently_are_told() -> None:
    rules = "Open(shop)\nBusy(shop)\n1 Open(s) => Busy(s)"
    assert told(rules, {"Open": ["Café"], "Busy": [("Cafe\u0301", True)]}) == [
        "the type 'shop' has constants that differ only in how Unicode composes their letters: "
        "'Cafe\\u0301' and 'Caf\\xe9'; if they are the same, write them the same in all tables, as "
        "with df[column].str.normalize('NFKC')"
    ]


def test_dates_in_two_notations_are_told() -> None:
    rules = "Open(day)\nBusy(day)\n1 Open(d) => Busy(d)"
    both = {"Open": ["2024-03-01", "2024-03-02"], "Busy": [("1/3/2024", True)]}
    assert told(rules, both) == [
        "the type 'day' has dates in two notations, such as '2024-03-01' and '1/3/2024': write all "
        "as the first"
    ]
    assert told(rules, {"Open": ["2024-03-01", "2024-03-02 10:00:00", "1.3"]}) == []


def test_repeated_rows_count_once_with_a_note() -> None:
    model = hl.parse("A(person)\nKind(person, kind!)\n1 A(x)\n1 Kind(x, B)")
    people = pd.DataFrame({"person": ["a", "a", "b", "b"], "value": [True, True, None, False]})
    kinds = [("a", "B"), ("b", "C"), ("a", "B"), ("a", "B")]
    world = World.of(model, {"A": people, "Kind": kinds})
    assert world.notes == (
        "A: 1 of its rows observes nothing, as the value is missing",
        "A: 1 of its rows repeats another and is left out",
        "Kind: 2 of its rows repeat others and are left out",
    )
    assert len(world.evidence["A"]) == len(world.evidence["Kind"]) == 2


def test_notes_are_those_of_the_graph_and_its_text_ends_in_the_first() -> None:
    model = hl.parse("A(person)\nB(person)\n1 A(x) => B(x)")
    people = pd.DataFrame({"person": ["a", "a", "b"], "value": [True, True, None]})
    graph = hl.ground(model, {"A": people, "B": [("b", True), ("a", None)]})
    notes = (
        "A: 1 of its rows observes nothing, as the value is missing",
        "A: 1 of its rows repeats another and is left out",
        "B: 1 of its rows observes nothing, as the value is missing",
    )
    assert graph.notes[:3] == graph.observe({"B(a)": True}).notes[:3] == notes
    assert "closed=['B'] makes them false" in graph.notes[-1]
    assert repr(graph).endswith(f" 2 observed; 5 notes, above all: {notes[0]})")


def test_rows_that_contradict_each_other_name_the_remedy() -> None:
    people = pd.DataFrame({"person": ["a", "a"], "value": [True, False]})
    assert refused("A(person)\n1 A(x)", {"A": people}) == (
        "evidence['A']: A(a): row 2 says false where row 1 says true: keep one row of each, as "
        "df.drop_duplicates(['person']) does"
    )


def test_a_filtered_frame_has_no_index_that_matters() -> None:
    frame = pd.DataFrame({"person": ["a", "b", "c"], "x": [1, 2, 3], "y": [1, 2, 3]})
    assert "index" not in refused("A(person)\n1 A(p)", {"A": frame[frame.x != 2]})


def test_a_table_of_truths_with_more_columns_is_told_to_choose() -> None:
    frame = pd.DataFrame({"person": ["a"], "sales": [1], "year": [2024]})
    assert refused("A(person)\n1 A(p)", {"A": frame}) == (
        "evidence['A']: a table of 'A' has the columns person, optionally value; this one has "
        "person, sales, year: choose columns of it (df[['person']])"
    )


def test_closed_relations_of_many_arguments_are_taken() -> None:
    rules = """
        Route(delivery, seg, seg, seg, seg, seg, seg)
        slow(seg): real
        time(delivery): real
        normal(slow(s) | 0, 1)
        normal(time(d) | slow(a) + slow(b) + slow(c) + slow(e) + slow(f) + slow(g), 1)
          where Route(d, a, b, c, e, f, g)
    """
    rows = [(f"d{i}", *(f"s{i * (k + 1) % 2000}" for k in range(6))) for i in range(3000)]
    graph = hl.ground(hl.parse(rules), {"Route": rows}, closed=["Route"])
    assert graph.num_factors == 2000 + 3000


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "A(x) ^ B(x) * normal(y(x) | 1, 1)",
            "'B(x) * normal(y(x) | 1, 1)' is a number, but '^' needs a truth value: put brackets "
            "before the product, as in '(… ^ B(x)) * normal(y(x) | 1, 1)'",
        ),
        (
            "A(x) v B(x) * (y(x) = 1)",
            "'B(x) * (y(x) = 1)' is a number, but 'v' needs a truth value: put brackets before the "
            "product, as in '(… v B(x)) * (y(x) = 1)'",
        ),
        (
            "1 !COUNT x: A(x)",
            "'COUNT x: A(x)' is a number, but '!' needs a truth value: put brackets around what it "
            "negates, as in '!(COUNT x: A(x) >= 2)'",
        ),
        (
            "1 !COUNT x: A(x) >= 2",
            "'COUNT x: A(x)' is a number, but '!' needs a truth value: put brackets around what it "
            "negates, as in '!(COUNT x: A(x) >= 2)'",
        ),
        (
            "1 (COUNT x: A(x) ^ B(x)) >= 2",
            "'COUNT x: A(x)' is a number, but '^' needs a truth value: put brackets around what it "
            "joins, as in 'COUNT x: (A(x) ^ B(x))'",
        ),
        (
            "1 COUNT x, z: A(x) v B(z) >= 2",
            "'COUNT x, z: A(x)' is a number, but 'v' needs a truth value: put brackets around what "
            "it joins, as in 'COUNT x, z: (A(x) v B(z)) >= 2'",
        ),
        (
            "normal(y(x) | 1 + SUM z: A(z) ^ B(z), 1)",
            "'SUM z: A(z)' is a number, but '^' needs a truth value: put brackets around what it "
            "joins, as in 'SUM z: (A(z) ^ B(z))'; numbers are multiplied, 'A(x) * b(x)'",
        ),
    ],
)
def test_missing_brackets_are_one_error(rule: str, message: str) -> None:
    declared = "A(x)\nB(x)\ny(x): real\nnormal(y(x) | 0, 1)\n"
    (error,) = [p.message for p in _problems(declared + rule) if p.severity == "error"]
    assert error == message


def _problems(text: str):
    with pytest.raises(ModelError) as caught:
        hl.check(hl.parse(text))
    return caught.value.problems


def test_a_variance_of_0_is_called_a_variance() -> None:
    declared = "y(x): real\nA(x)\nnormal(y(x) | 0, 1)\n0.1 A(x)\n"
    assert (
        "the variance of normal must be positive, not 0: a variance of 0, a deterministic "
        "relation, is no density; use a small one"
        in refused(declared + "normal(y(x) | 1, 0)", {"x": ["1"]})
    )
    assert refused(declared + "normal(y(x) | 1, A(x))", {"x": ["1"]}) == (
        "the variance in 'normal(y(x) | 1, A(x))' is 0 where A(x) is false: a variance of 0, a "
        "deterministic relation, is no density; use a small one"
    )


def test_python_says_exactly() -> None:
    m = hl.ModelBuilder()
    a = m.predicate("A", m.type("p"))
    x = m.variable("x")
    m.rule(1, hl.exactly(2, x, a(x)))
    assert m.build().rules == hl.parse("A(p)\n1 EXACTLY 2 x: A(x)").rules


SEGMENTS = "type = {A, B, C}\nT(seg, type)\n1 T(s, A)\n"
PAIRS = "T(s, A) => !T(s, B).\nT(s, A) => !T(s, C).\n"
WRITTEN_OUT = f"T(s, A) v T(s, B) v T(s, C).\n{PAIRS}!(T(s, C) ^ T(s, B))."


@pytest.mark.parametrize(
    "rules",
    [
        "EXACTLY 1 t: T(s, t).",
        "1 = COUNT t: T(s, t).",
        "COUNT t: T(s, t) >= 1.\nCOUNT t: T(s, t) < 2.",
        "EXIST t T(s, t).\n!(T(s, t) ^ T(s, u)) where t != u.",
        "EXIST t T(s, t).\n!T(s, t) v !T(s, u) where t != u.",
        "EXIST t T(s, t).\nT(s, t) ^ T(s, u) => t = u.",
        "EXIST t T(s, t).\nT(s, t) ^ T(s, u) ^ u != t => false.",
        WRITTEN_OUT,
    ],
)
def test_exactly_one_as_clauses_names_the_mark(rules: str) -> None:
    (message,) = told(SEGMENTS + rules, {"seg": ["s1"]})
    assert (
        "hard rules say that exactly one 'type' holds: 'T(seg, type!)' says the same, and is "
        "solved far better\n" in message
    )


@pytest.mark.parametrize(
    "rules",
    [
        "EXIST t T(s, t).",
        "EXACTLY 2 t: T(s, t).",
        "1 EXACTLY 1 t: T(s, t)",
        "EXACTLY 7 t: T(s, t).",
        "COUNT t: T(s, t) >= 7.",
        "7 > COUNT t: T(s, t).\nEXIST t T(s, t).",
        f"T(s, A) v T(s, B) v T(s, C).\n{PAIRS}",
        "EXIST t T(s, t) where s != X.\nT(s, t) ^ T(s, u) => t = u.",
        "EXIST t T(s, t).\nT(s, t) ^ T(s, u) => t = u where t != A.",
    ],
)
def test_other_clauses_are_not_exactly_one(rules: str) -> None:
    assert told(SEGMENTS + rules, {"seg": ["s1", "X"]}) == []


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            "1 (SUM x: A(x)) >= 2",
            "'(SUM x: A(x)) >= 2' is soft: comparisons of counts, as of 'COUNT x: A(x)', are true",
        ),
        ("1 2 * A(x) = 1", ""),
        ("1 (SUM x: y(x)) >= 2", ""),
        ("1 (COUNT x: A(x)) >= 2", ""),
        ("1 A(z) ^ (SUM x: A(x)) >= 2", ""),
    ],
)
def test_soft_comparisons_of_sums_of_truths_are_told(rule: str, sentence: str) -> None:
    found = told(f"A(p)\ny(p): real\nnormal(y(x) | 0, 1)\n0.1 A(x)\n{rule}", {"p": ["a", "b"]})
    assert sentence in "".join(found)
    assert bool(found) == bool(sentence)


def test_a_hard_rule_on_a_sum_of_truths_is_told_to_count() -> None:
    assert "; comparisons of counts, as of 'COUNT x: A(x)', are true or false" in refused(
        "A(p)\nSUM x: A(x) = 1.", {"p": ["a", "b"]}
    )


@pytest.mark.parametrize(
    "rule",
    [
        "student(y(s) | In(s, r) * t(r), 1, 4)",
        "bernoulli_logit(A(s) | 2 - In(s, r) * t(r))",
        "1 y(s) = In(s, r) * t(r)",
        "normal(y(s) | 1, In(s, r) * v(r) + 1)",
    ],
)
def test_a_relation_in_any_parameter_is_told_to_sum(rule: str) -> None:
    declared = "In(s, r)\nA(s)\ny(s): real\nt(r): real\nv(r): real[1, 2]\nnormal(y(s) | 0, 1)\n"
    declared += "normal(t(r) | 0, 1)\n"
    found = [problem.message for problem in hl.check(hl.parse(declared + rule))]
    assert any("of its own for every 'r'" in m and "write 'SUM r: In(s, r) * " in m for m in found)
    other = rule.replace("In(s, r) * ", "") + " where In(s, r)"
    assert not any("of its own" in p.message for p in hl.check(hl.parse(declared + other)))


@pytest.mark.parametrize("tie", ["(In(s, r) ^ B(r))", "In(s, r) * B(r)", "In(s, r) * !B(r)"])
def test_a_relation_between_truth_values_in_a_parameter_is_told_to_ask_for_any(tie: str) -> None:
    declared = "In(s, r)\nA(s)\nB(r)\n1 B(r)\n"
    messages = [
        problem.message
        for problem in hl.check(hl.parse(f"{declared}bernoulli(A(s) | 0.1 + 0.8*{tie})"))
    ]
    some = f"{declared}bernoulli(A(s) | 0.1 + 0.8*(EXIST r (In(s, r) ^ B(r))))"

    assert any(
        "of its own for every 'r': for one 'bernoulli' that depends on whether some 'r' is such, "
        "write 'EXIST r (In(s, r) ^ …)'" in message
        for message in messages
    )
    assert not any("of its own" in problem.message for problem in hl.check(hl.parse(some)))


def test_a_number_without_a_weight_is_told() -> None:
    declared = "A(x)\ny(x): real\nnormal(y(x) | 0, 1)\n0.1 A(x)\n"
    (message,) = told(declared + "A(x) * y(x)", {"x": ["1"]})
    assert "'A(x) * y(x)' has no weight, which counts as 1: write it before the formula" in message
    for rule in ("1 A(x) * y(x)", "A(x) * (y(x) = 1)", "A(x) * normal(y(x) | 1, 1)", "-y(x)^2"):
        assert told(declared + rule, {"x": ["1"]}) == []
