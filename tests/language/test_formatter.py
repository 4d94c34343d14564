"""Models are written as a person would write them, with no bracket too many."""

from __future__ import annotations

import math

import pytest

from hylift.errors import UnsupportedError
from hylift.graph.domains import boolean, categorical
from hylift.language.statements import Model, PredicateDeclaration, Rule, TypeDeclaration
from hylift.language.syntax import (
    Apply,
    Atom,
    Comparison,
    Constant,
    Expr,
    Number,
    Parameter,
    Power,
    Unary,
    Variable,
    binary,
)
from hylift.language.text.formatter import format_expression, format_model, format_rule
from hylift.language.text.parser import parse
from hylift.language.walk import TOO_DEEP

CANONICAL = """\
topic = {t0, ..., t9}
paper
place = {"New York", Home, 7, a1, a2, a3}

In(paper, topic)
PaperPopularity(paper): real[0, 10]
Debt(paper): real[-2.5, inf]
recession: real
H: boolean
SegType(segment, type!)

const DoorLength = 0.1
const W = 2 * DoorLength

0.3 PaperPopularity(p) = 1
0.5 SameSession(t1, t2) * (Trend(t1) = Trend(t2)) where t1 != t2, !In(p, t1)
W SegType(s, Door) * (Length(s) = DoorLength)
W (A(x) v B(x)) ^ H
(2 * W) In(a, x) ^ In(b, x) => Near(a, b)
In(p, t) => EXIST s Topic(t, s) v s = t - 1.
-0.04 posB(b)^2 + posA(a)^-1
0.1 (-(EXIST x A(x)) * 2)
gaussian(market(c), loss(c, b); mean=[0, 0], cov=[[10, 5], [5, 10]])
normal(x(w, t+1) | 0.9 * x(w, t), max(1, recession))
{t0: 0.1, "New York": 0.4, *: 0} In(p, +t)
{(A, 1): 2} Near(+a, +b-1)
2 (Length(s) > 0.05; slope=20)
1e-07 A("small") ^ !(B(x) <=> C(x) => x(x) - (y(x) - z(x)) < 3)
"""


def atom(name: str) -> Atom:
    return Atom(name, (Variable("x"),))


A, B, C = atom("A"), atom("B"), atom("C")


def test_what_is_written_as_it_should_be_is_not_changed() -> None:
    assert format_model(parse(CANONICAL)) == CANONICAL


def test_a_model_prints_as_its_text() -> None:
    assert str(parse("const W=1.50")) == "const W = 1.5\n"


def test_kinds_of_statements_are_sorted_and_nothing_else() -> None:
    text = "1 B(x)\nconst W = 1\nB(b)\n2 A(x)\nb\nA(a)\na\n"

    written = format_model(parse(text))

    assert written == "b\na\n\nB(b)\nA(a)\n\nconst W = 1\n\n1 B(x)\n2 A(x)\n"


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (binary("=>", binary("=>", A, B), C), "(A(x) => B(x)) => C(x)"),
        (binary("=>", A, binary("=>", B, C)), "A(x) => B(x) => C(x)"),
        (binary("-", A, binary("+", B, C)), "A(x) - (B(x) + C(x))"),
        (binary("*", binary("+", A, B), C), "(A(x) + B(x)) * C(x)"),
        (Comparison("=", Comparison("=", A, B), C), "(A(x) = B(x)) = C(x)"),
        (Unary("!", Comparison("<", A, Number(2))), "!(A(x) < 2)"),
        (Unary("-", Power(Number(-2), 2)), "-(-2)^2"),
        (Power(Power(A, 2), 0.5), "(A(x)^2)^0.5"),
        (Unary("-", Number(3)), "-(3)"),
        (Unary("-", Number(-3)), "--3"),
        (binary("-", A, Number(-3)), "A(x) - -3"),
        (binary("^", A, Number(2)), "A(x) ^ 2"),
        (Number(1e22), "1e+22"),
        (Number(1 / 3), "0.3333333333333333"),
        (Number(True), "1"),
        (Comparison("<", Constant("3"), Constant("4")), '"3" < 4'),
        (Comparison("!=", Variable("x", -1), Constant("a b")), 'x - 1 != "a b"'),
        (Comparison("=", Atom("gdp"), Number(3)), "(gdp) = 3"),
        (Comparison("=", A, Parameter("K")), "A(x) = K"),
        (Atom("P", (Variable("t", 2), Constant("low"), Constant("Up"))), 'P(t+2, "low", Up)'),
        (Atom("P", (Constant("12"), Constant("EXIST"), Constant(""))), 'P(12, "EXIST", "")'),
        (Atom("P", (Constant("exist"), Constant("Forall"))), 'P("exist", "Forall")'),
        (Atom("P", (Constant('a"\\\n'),)), r'P("a\"\\\n")'),
    ],
)
def test_expressions_have_the_brackets_they_need(expr: Expr, text: str) -> None:
    assert format_expression(expr) == text


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule(Unary("-", A), Number(0.3)), "0.3 (-A(x))"),
        (Rule(Comparison("!=", Variable("v"), Variable("w")), Number(2)), "2 (v != w)"),
        (Rule(Unary("-", A)), "-A(x)"),
        (Rule(A), "(A(x))"),
        (Rule(Number(3)), "(3)"),
        (Rule(A, hard=True), "A(x)."),
        (Rule(binary("^", binary("v", A, B), C), Parameter("W")), "(W) (A(x) v B(x)) ^ C(x)"),
        (Rule(A, where=(binary("^", B, C),)), "A(x) where (B(x) ^ C(x))"),
    ],
)
def test_rules_are_not_taken_for_something_else(rule: Rule, text: str) -> None:
    assert format_rule(rule) == text
    assert parse(text).rules == (rule,)


def test_a_domain_is_written_where_it_would_be_read_otherwise() -> None:
    predicates = tuple(PredicateDeclaration(name, ("a",), boolean) for name in ("A", "B", "B"))
    model = Model((), predicates, (), (Rule(Comparison("=", A, Number(1)), Number(2)),))

    text = format_model(model)

    assert text == "A(a): boolean\nB(a)\nB(a): boolean\n\n2 A(x) = 1\n"
    assert parse(text) == model


def test_names_of_other_things_are_quoted_where_constants_are_meant() -> None:
    text = 'const Door = 1\n\n2 A(x, Door) ^ x = "Door"\n'

    assert format_model(parse(text)) == text


@pytest.mark.parametrize(
    ("constants", "text"),
    [
        (("t1", "t2", "t3"), "{t1, t2, t3}"),
        (("t1", "t2", "t3", "t4"), "{t1, ..., t4}"),
        (("-1", "0", "1", "2", "4"), "{-1, ..., 2, 4}"),
        (("t098", "t099", "t100", "t101"), "{t098, ..., t101}"),
        (("t98", "t99", "t100", "t101"), "{t98, ..., t101}"),
        (("no 1", "no 2", "no 3", "no 4"), '{"no 1", ..., "no 4"}'),
        (("07", "8", "9", "10", "11"), "{07, 8, ..., 11}"),
        (("99", "00", "01", "02", "03"), "{99, 00, ..., 03}"),
        (
            tuple(f"conference_paper_{n}" for n in range(4)),
            "{conference_paper_0, ..., conference_paper_3}",
        ),
        ((), "{}"),
    ],
)
def test_consecutive_constants_are_a_range(constants: tuple[str, ...], text: str) -> None:
    model = Model((TypeDeclaration("t", constants),))

    assert format_model(model) == f"t = {text}\n"
    assert parse(format_model(model)) == model


def test_a_model_is_shown_whatever_it_holds() -> None:
    deep: Expr = A
    for _ in range(2000):
        deep = Unary("!", deep)
    odd = Model(
        types=(TypeDeclaration("two words"),),
        rules=(
            Rule(Apply(own_function, (A, A)), Number(2.0)),
            Rule(A, Number(float("inf"))),
            Rule(deep, hard=True),
        ),
    )

    assert str(odd) == (
        "// the type 'two words' cannot be written: its name is not a word\n"
        "\n"
        f"2 <function own_function>({format_expression(A)}, {format_expression(A)})\n"
        "// the number inf cannot be written\n"
        "\n"
        f"// {TOO_DEEP}\n"
    )


def own_function(value: float) -> float:
    return value


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Model(rules=(Rule(Apply(own_function, (A,))),)), "the function 'own_function' of a rule"),
        (Model(rules=(Rule(Number(math.inf)),)), "the number inf cannot be written"),
        (Model(rules=(Rule(Power(A, math.nan)),)), "the number nan cannot be written"),
        (Model(rules=(Rule(Atom("A", (Variable("X"),))),)), "the variable 'X' cannot be written"),
        (Model(rules=(Rule(A, per_constant=("y",)),)), "'+y' cannot be written"),
        (Model((TypeDeclaration("a b"),)), "the type 'a b' cannot be written"),
        (Model(rules=(Rule(atom("max")),)), "the predicate 'max' cannot be written"),
        (
            Model(predicates=(PredicateDeclaration("A", (), categorical(["a", "b"])),)),
            "A cannot be written with the states a, b",
        ),
    ],
)
def test_what_has_no_text_is_refused(model: Model, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        format_model(model)

    assert message in str(caught.value)
