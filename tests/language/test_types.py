"""The types of variables, truths and numbers, and the values of constants."""

import pytest

from hylift.errors import ModelError
from hylift.language.report import Problem
from hylift.language.statements import Model, ParameterDeclaration
from hylift.language.syntax import (
    Atom,
    Call,
    Constant,
    Expr,
    Number,
    Parameter,
    Power,
    Unary,
    Variable,
    binary,
)
from hylift.language.text.parser import parse
from hylift.language.types import constant_value, variable_types
from hylift.language.walk import is_truth

HEADER = """\
paper
topic
In(paper, topic)
Near(paper, paper)
Topic(topic)
Pop(paper): real
x(paper): real
"""


def model_of(text: str) -> Model:
    return parse(HEADER + text, name="m.mln")


def types_of(text: str) -> dict[str, str]:
    model = model_of(text)
    return variable_types(model, model.rules[0])


@pytest.mark.parametrize(
    ("rule", "types"),
    [
        ("1 In(p, t)", {"p": "paper", "t": "topic"}),
        ("1 In(p, t) ^ p != q where Near(p, q)", {"p": "paper", "t": "topic", "q": "paper"}),
        ("1 EXIST t In(p, t)", {"p": "paper", "t": "topic"}),
        ("1 (EXIST y In(p, y)) ^ (FORALL y In(q, y))", {"p": "paper", "q": "paper", "y": "topic"}),
        ("normal(x(p) | 2*x(q), 1) where Near(p, q)", {"p": "paper", "q": "paper"}),
        ("1 In(P1, T1)", {}),
    ],
)
def test_a_variable_has_the_type_of_the_arguments_it_stands_in(rule, types):
    assert types_of(rule) == types


@pytest.mark.parametrize(
    ("rule", "message", "column", "width"),
    [
        (
            "1 In(x, t) ^ Topic(x)",
            "variable 'x' is a 'paper' in In(x, t) and a 'topic' in Topic(x)",
            20,
            1,
        ),
        (
            "1 (EXIST y In(p, y)) ^ (EXIST y Near(p, y))",
            "variable 'y' is a 'topic' in In(p, y) and a 'paper' in Near(p, y). "
            "They are two variables: rename one 'y'",
            41,
            1,
        ),
        (
            "1 Topic(y) ^ (EXIST y Near(p, y))",
            "variable 'y' is a 'topic' in Topic(y) and a 'paper' in Near(p, y). "
            "They are two variables: rename one 'y'",
            31,
            1,
        ),
        ("1 In(p, t) ^ p != t", "'p != t' compares a 'paper' with a 'topic'", 14, 6),
        (
            "1 In(p, t) ^ z = T1",
            "variable 'z' is compared, but no atom of the rule has it",
            14,
            1,
        ),
        (
            "1 In(p, t) where y != z",
            "variable 'y' is compared in where, but no atom of the rule has it",
            18,
            1,
        ),
    ],
)
def test_a_variable_has_one_type(rule, message, column, width):
    with pytest.raises(ModelError) as raised:
        types_of(rule)

    assert str(raised.value) == (
        f"m.mln:8:{column}: {message}\n    {rule}\n    {' ' * (column - 1)}{'^' * width}"
    )


@pytest.mark.parametrize(
    ("formula", "truth"),
    [
        ("In(p, t)", True),
        ("Pop(p)", False),
        ("!In(p, t)", True),
        ("In(p, t) ^ Topic(t)", True),
        ("In(p, t) => Topic(t)", True),
        ("In(p, t) * Topic(t)", False),
        ("(-Pop(p))", False),
        ("Pop(p)^2", False),
        ("Pop(p) = 1", False),
        ("(EXIST t In(p, t))", True),
        ("(true v In(p, t))", True),
        ("abs(Pop(p))", False),
        ("gaussian(Pop(p); cov=[[1]])", False),
        ("normal(Pop(p) | 0, 1)", False),
    ],
)
def test_truths_and_numbers_are_told_apart(formula, truth):
    model = model_of(f"1 {formula}")

    assert is_truth(model, model.rules[0].formula) is truth


def test_a_comparison_of_logical_terms_is_true_or_false():
    model = model_of("1 In(p, t) where p != q")

    assert is_truth(model, model.rules[0].where[0])


CONSTANTS = Model(
    parameters=(
        ParameterDeclaration("A", Number(3.0)),
        ParameterDeclaration("B", binary("*", Parameter("A"), Parameter("A"))),
        ParameterDeclaration("Early", Parameter("Late")),
        ParameterDeclaration("Late", Number(1.0)),
        ParameterDeclaration("Own", binary("+", Parameter("Own"), Number(1.0))),
    )
)
ZERO, TWO = Number(0.0), Number(2.0)


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (Number(0.5), 0.5),
        (Unary("-", Parameter("A")), -3.0),
        (binary("-", Parameter("B"), binary("/", TWO, Number(4.0))), 8.5),
        (Power(Parameter("A"), 2.0), 9.0),
        (Call("max", (TWO, Parameter("A"), ZERO)), 3.0),
        (Call("log", (Call("exp", (TWO,)),)), 2.0),
        (Call("abs", (Unary("-", TWO),)), 2.0),
    ],
)
def test_arithmetic_on_constants_has_a_value(expr, value):
    assert constant_value(CONSTANTS, expr, "a weight") == pytest.approx(value, abs=1e-12)


ATOM = Atom("x", (Variable("p"),))


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (ATOM, "a weight is arithmetic on numbers and constants, but 'x(p)' is an atom"),
        (
            binary("*", TWO, binary("^", ATOM, ATOM)),
            "a weight is arithmetic on numbers and constants, but 'x(p) ^ x(p)' is a truth value",
        ),
        (
            Constant("Door"),
            "a weight is arithmetic on numbers and constants, but 'Door' is a constant of a type",
        ),
        (
            Unary("-", Variable("x")),
            "a weight is arithmetic on numbers and constants, but 'x' is a variable",
        ),
        (Parameter("Lat"), "unknown constant 'Lat'. Did you mean 'Late'?"),
        (Parameter("Early"), "constant 'Early' needs 'Late', which is declared after it"),
        (Parameter("Own"), "constant 'Own' is defined by itself"),
        (binary("/", TWO, ZERO), "a weight divides by zero in '2 / 0'"),
        (Call("exp", (Number(1000.0),)), "a weight must be finite, but 'exp(1000)' is not"),
        (Call("log", (ZERO,)), "a weight must be finite, but 'log(0)' is not"),
        (Power(Number(-2.0), 0.5), "a weight must be finite, but '(-2)^0.5' is not"),
        (Number(float("nan")), "a weight must be finite, but 'nan' is not"),
        (Call("abs", (TWO, TWO)), "'abs' takes 1 argument, not 2"),
        (Call("max", (TWO,)), "'max' takes at least 2 arguments, not 1"),
        (Call("sin", (TWO,)), "unknown function 'sin'. Did you mean 'min'?"),
    ],
)
def test_anything_else_has_no_value(expr, message):
    with pytest.raises(ModelError) as raised:
        constant_value(CONSTANTS, expr, "a weight")

    assert str(raised.value) == message


def test_constants_that_build_on_each_other_are_computed_once():
    value: Expr = Number(1.0)
    declared = []
    for i in range(200):
        declared.append(ParameterDeclaration(f"A{i}", value))
        value = binary("*", Parameter(f"A{i}"), Parameter(f"A{i}"))

    assert constant_value(Model(parameters=tuple(declared)), value, "a weight") == 1.0


def test_constants_have_values_or_errors():
    values = list(CONSTANTS.parameter_values.values())

    assert values[:2] == [3.0, 9.0]
    assert [value.message for value in values if isinstance(value, Problem)] == [
        "constant 'Early' needs 'Late', which is declared after it",
        "constant 'Own' is defined by itself",
    ]
