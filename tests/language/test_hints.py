"""What other languages write is answered with what this one writes."""

from __future__ import annotations

import pytest

from hylift.errors import ModelError
from hylift.language.text.parser import parse

AND, OR, NOT = "'and' is written '^'", "'or' is written 'v'", "'not' is written '!'"
IMPLIES, MINUS = "'implies' is written '=>'", "minus is written '-'"
EXIST, FORALL = "'there is' is written 'EXIST x'", "'for all' is written 'FORALL x'"
NO_COLON = "write a weight before its formula without a colon"
FUNCTIONS = "the functions of numbers are abs, exp, log, min and max"
NORMAL = "write 'normal(value | mean, variance)'"
CLOSED = "name closed-world predicates when grounding, by closed=…"


def error(text: str) -> str:
    with pytest.raises(ModelError) as caught:
        parse(text)
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1 A(x) and B(x)", AND),
        ("1 A(x) AND (B(x))", AND),
        ("A(x) and B(x)", AND),
        ("1 A(x) ∧ B(x)", AND),
        ("1 A(x) or B(x)", OR),
        ("1 A(x) OR B(x)", OR),
        ("1 A(x) || B(x)", OR),
        ("1 not A(x)", NOT),
        ("1 A(x) ^ NOT B(x)", NOT),
        ("1 not (A(x))", NOT),
        ("1 A(x) -> B(x)", IMPLIES),
        ("1 A(x) implies B(x)", IMPLIES),
        ("1 A(x) == B(x)", "'equal' is written '=' between terms or numbers, and '<=>' between"),
        ("1 A(x) where x <> y", "'not equal' is written '!='"),
        ("-1 x(t)**2", "powers are written 'x^2'"),
        ("x(t) ~ normal(0, 1)", "'x ~ normal(m, v)' is written 'normal(x | m, v)', where v is the"),
        ("normal(x(t), 0, 1)", NORMAL),
        ("normal(x(t) | 0)", NORMAL),
        (
            "gaussian([x(t)], 1)",
            "write 'gaussian(a, b; mean=[0, 0], cov=[[1, 0], [0, 1]])'",
        ),
        ("A(t): bool", "Did you mean 'boolean'?"),
        ("A(t): Boolean", "Did you mean 'boolean'?"),
        ("x(t): float", "Did you mean 'real'?"),
        ("x(t): int", "Did you mean 'real'?"),
        ("x(t): real(0, 1)", "write an interval as 'real[0, 1]'"),
        ("1 exists x A(x)", EXIST),
        ("EXISTS x A(x).", EXIST),
        ("1 B(y) ^ exists x, y A(x)", EXIST),
        ("1 ForAll x A(x)", FORALL),
        ("1 sqrt(x(t))", FUNCTIONS),
        ("1 sum(y, x(y))", "over constants it is written 'SUM x: …'"),
        ("1 sqrt(y, x(y))", FUNCTIONS),
        ("cauchy(x(t) | 0, 1)", "no distribution 'cauchy': write 'student(value | m, v, 1)'"),
        ("categorical(K(s) | [0.2, 0.8])", "with their states, '{A: 0.2, B: 0.8}'"),
        ("uniform(x(t) | 0, 1)", "declare the number on an interval, as in 'x: real[0, 1]'"),
        ("student_t(x(t) | 0, 1, 3)", "there are normal, bernoulli, bernoulli_logit,"),
        ("student_t(x(t) | 0, 1, 3)", "Did you mean 'student'?"),
        ("logit(A(t) | 2)", "written 'bernoulli_logit(A(x) | score)'"),
        ("bernoulli(A(t) | sigmoid(2*x(t)))", "written 'bernoulli_logit(A(x) | score)'"),
        ("normal(x(t) | 0, sd=2)", "last number is the variance: write '(2)^2'"),
        ("normal(x(t) | 0, var = S)", "last number is the variance: write 'S'"),
        ("normal(x(t) | SUM s A(s), 1)", "write 'SUM x: …'"),
        ("1 EXACTLY 2 A(s)", "write 'EXACTLY 2 x: A(x)'"),
        ("1 EXACTLY two s: A(s)", "or 'COUNT x: A(x) = K'"),
        ("1 AT LEAST 2 x: A(x)", "'at least two' is written 'COUNT x: A(x) >= 2'"),
        ("1 2 <= COUNT x: A(x) <= 3", "put one in brackets, or join two by '^'"),
        ("normal(x(t) | SUM s: y(s) where A(s, t), 1)", "multiply by a relation, as in 'A(x) *"),
        ("1 Twice(x(t))", f"the arguments of atoms are variables and constants, and {FUNCTIONS}"),
        (
            "{Sunny, Sunny: 2} A(+x, +y)",
            "put several constants in brackets, as in '{(A, B): 0.5}'",
        ),
        ("1: P(a)", NO_COLON),
        ("1: !P(a)", NO_COLON),
        ("1: rain", NO_COLON),
        ("−1 P(a)", MINUS),
        ("1 P(a) – 1", MINUS),
        ("*P(t)", CLOSED),
        ("1 A(x) where x in {A, B}", "compare with each constant, or write several rules"),
    ],
)
def test_what_is_meant_is_told(text: str, hint: str) -> None:
    assert hint in error(text)


def test_a_sign_that_begins_a_line_is_told_apart_from_a_closed_world_predicate() -> None:
    assert error("1 A(x)\n  * B(x)").endswith(
        "to continue a line, put the operator at its end, not at the start of the next"
    )


def test_predicates_may_have_the_names_of_foreign_words() -> None:
    assert error("1 In(p, )").endswith("in the arguments of 'In'")


@pytest.mark.parametrize("name", ["toy.mln", "models/toy.mln", "C:\\models\\toy.mln", " a b.mln\n"])
def test_the_name_of_a_file_is_not_a_model(name: str) -> None:
    assert error(name) == (
        f"'{name.strip()}' is the name of a file, not a model: read it with 'read_model'"
    )


def test_a_comment_may_end_like_the_name_of_a_file() -> None:
    assert parse("paper // as in toy.mln").types[0].name == "paper"
