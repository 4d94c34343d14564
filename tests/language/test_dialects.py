"""Notation of Alchemy's, pracmln's and LoMRF's files that differs from ours."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

import hylift as hl
from hylift.errors import ModelError
from hylift.language.checks.check import check
from hylift.language.statements import Model
from hylift.language.text.formatter import format_model
from hylift.language.text.parser import parse

HEAD = "In(p, t)\nA(p)\nB(p)\nT(t)\n"
MOTHERS = "person = {Ann, Bob}\nperson motherOf(person)\nHappy(person)\nage(person): real\n"


def read(rules: str, head: str = HEAD) -> Model:
    """The model, which also survives being written and read."""
    model = parse(head + rules)
    assert parse(format_model(model)) == model
    return model


def error(rules: str, head: str = HEAD) -> str:
    with pytest.raises(ModelError) as caught:
        parse(head + rules)
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        ("1 A(p') ^ A(p'') => p' = p''", "1 A(q) ^ A(r) => q = r"),
        ("1 A(x) | B(x) ^ A(x) | B(y)", "1 A(x) v B(x) ^ A(x) v B(y)"),
        ("[FORALL x A(x)] ^ [A(y) v B(y)].", "(FORALL x A(x)) ^ (A(y) v B(y))."),
        ("2 [A(x)]", "2 A(x)"),
        ("1 T(t++) => T(t--)", "1 T(t+1) => T(t-1)"),
        ("1 T(succ(t)) => T(pred(t))", "1 T(t+1) => T(t-1)"),
        ("1 A(?x) ^ ?x =/= ?y => B(?y)", "1 A(x) ^ x != y => B(y)"),
        ("0 In(?p, red) ^ In(?p, Red)", '0 In(p, "red") ^ In(p, Red)'),
        ("EXIST ?x In(?x, red) ^ ?x = ann.", 'EXIST x In(x, "red") ^ x = "ann".'),
        ("A(?x).\nA(bob).", 'A(x).\nA("bob").'),
        ("logx(0.25) A(x)\nlogx(0) !A(x)", "log(0.25) A(x)\n-100 !A(x)"),
        ("1 A(x) :- B(x) ^ A(y)", "1 B(x) ^ A(y) => A(x)"),
        ("A(x) v B(x) :- B(y).", "B(y) => A(x) v B(x)."),
        ("#fixweight\n1 A(x)", "1 A(x)"),
    ],
)
def test_other_notation_means_the_same_as_ours(foreign: str, ours: str) -> None:
    shown = format_model(read(foreign))
    for before, after in (("p''", "r"), ("p'", "q")):
        shown = shown.replace(before, after)

    assert shown == format_model(read(ours))


def test_predicates_and_constants_may_have_primes() -> None:
    model = read("Children's(film)\n1 Children's(f)", head="")

    posterior = hl.infer(hl.ground(model, {"Children's(Jaws)": False, "film": ["O'Hara"]}))

    assert posterior.marginal("Children's(O'Hara)").prob("true") == pytest.approx(0.731, abs=1e-3)


def test_a_constant_that_is_listed_twice_is_one_with_a_warning() -> None:
    model = read("kind = {A, B, A}\nIs(kind)\n1 Is(k)", head="")

    assert model.types[0].constants == ("A", "B")
    [warned] = check(model)
    assert "type 'kind' lists 'A' more than once: it is one constant" in str(warned)


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        ("2 motherOf(x) = y", "2 motherOf(x, y)"),
        ("Ann = motherOf(x) v motherOf(x) != Bob.", "motherOf(x, Ann) v !motherOf(x, Bob)."),
        ("1 Happy(motherOf(x))", "1 motherOf(x, value) ^ Happy(value)"),
        (
            "1 Happy(motherOf(x)) => Happy(motherOf(motherOf(x)))",
            "1 motherOf(x, value) ^ motherOf(value, value2) ^ (Happy(value) => Happy(value2))",
        ),
        ("motherOf(x) = motherOf(y).", "motherOf(y, value) => motherOf(x, value)."),
        ("Happy(motherOf(value)).", "motherOf(value, value2) => Happy(value2)."),
        (
            "normal(age(motherOf(x)) | age(x), 2)",
            "motherOf(x, value) * normal(age(value) | age(x), 2)",
        ),
    ],
)
def test_a_function_is_a_predicate_with_one_value(foreign: str, ours: str) -> None:
    assert read(foreign, MOTHERS) == read(
        ours, MOTHERS.replace("person motherOf(person)", "motherOf(person, person!)")
    )


@pytest.mark.parametrize("rule", ["1.5 Happy(motherOf(x)) => Happy(x)", "0.7 !Happy(motherOf(x))"])
def test_a_rule_with_a_function_weighs_the_atom_of_its_value(rule: str) -> None:
    weight, *_ = rule.split()
    head = MOTHERS.replace("age(person): real\n", "")
    model = read(f"0.3 Happy(x)\n0.2 motherOf(Ann) = Bob\n{rule}", head)

    posterior = hl.infer(hl.ground(model), hl.Exact())

    people = ("Ann", "Bob")
    total, happy = 0.0, 0.0
    for mothers in itertools.product(people, repeat=2):
        mother = dict(zip(people, mothers, strict=True))
        for states in itertools.product((False, True), repeat=2):
            is_happy = dict(zip(people, states, strict=True))
            score = 0.3 * sum(states) + 0.2 * (mother["Ann"] == "Bob")
            for x in people:
                holds = not is_happy[mother[x]] or ("=>" in rule and is_happy[x])
                score += float(weight) * holds
            total += math.exp(score)
            happy += math.exp(score) * is_happy["Ann"]
    assert posterior.marginal("Happy(Ann)").prob("true") == pytest.approx(happy / total, abs=1e-10)
    assert float(posterior.log_partition) == pytest.approx(math.log(total), abs=1e-10)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("1 A(B(x))", "5:5: 'B' is not a function of constants, in the arguments of 'A'; the arg"),
        ("1 T(succ(T1))", "5:5: 'succ' is not a function: write 't+1'"),
        ("$N = 3", "5:1: '$' is not allowed here; a named number is declared as in 'const N = 3'"),
        ("1 A(?X)", "5:5: '?X' is a variable, which begins with a small letter: '?x'"),
        ("1 A(?x) ^ EXIST y B(y)", "5:17: the variables of this file are marked: write '?y'"),
        ("1 A(x) ? B(x)", "5:8: '?' is not allowed here; variables are marked as in 'Smokes(?x)'"),
        ("1 \\exists x A(x)", "is not allowed here; 'there is' is written 'EXIST x'"),
        ("#unique{x}", "5:1: '#' is not allowed here; comments begin with '//', and '#include' an"),
        ("*A(x) v B(x).", "5:1: expected a statement, not '*'; Alchemy's '*A(x)' stands for"),
        ("2:20 A(x)", "write a weight before its formula without a colon; utilities are not"),
        ("P(A(x)) = 0.4", "'P(f) = p', are not supported: give f a weight"),
        ("G(p) 2.5 1.0", "declare 'G' alone and add the rule 'log(2.5 / 1.0) …'"),
        ("person f(x!)", "5:8: the arguments of a function are not marked '!'"),
    ],
)
def test_what_is_not_read_is_refused_with_a_remedy(rules: str, message: str) -> None:
    assert message in error(rules)


def test_a_function_of_a_quantified_variable_is_refused() -> None:
    message = error("EXIST x Happy(motherOf(x)).", MOTHERS)

    assert "5:15: 'motherOf' depends on the quantified variable 'x': quantify its value" in message


def test_facts_may_list_constants_and_give_values_of_functions(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    path.write_text("person = {Ann, Bob}\nAnn = motherOf(Bob)\nHappy(Ann)\n\0", encoding="utf-8")
    model = parse("person motherOf(person)\nHappy(person)\n2 Happy(x) => Happy(motherOf(x))")

    posterior = hl.infer(hl.ground(model, path), hl.Exact())

    # Bob adds 2 in any case, as Ann is happy; Ann does so by either mother if Bob is happy.
    weight = math.exp(2)
    happy, total = 2 * weight, 2 * weight + (weight + 1)
    assert posterior.marginal("Happy(Bob)").prob("true") == pytest.approx(happy / total, abs=1e-10)
