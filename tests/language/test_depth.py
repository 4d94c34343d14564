"""Deep formulas are refused before anything goes down them; long chains are not deep."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from hylift.errors import ModelError
from hylift.grounding import ground
from hylift.language import ModelBuilder, check, format_model, parse
from hylift.language.statements import Model, ParameterDeclaration, Rule
from hylift.language.syntax import (
    Atom,
    Comparison,
    Expr,
    Number,
    Operation,
    Unary,
    Variable,
    WeightTable,
    binary,
)
from hylift.language.walk import LONGEST_CHAIN, MAX_DEPTH, chain_fault, depth

DECLARED = "t = {A, B}\nP(t)\nQ(t)\nx(t): real\n"
DEEP = "the expression has more than 100 levels; split it into several rules"

DEEPEST = {
    "negations": "1 " + "!" * (MAX_DEPTH - 1) + "P(a)",
    "implications": "1 " + " => ".join(["P(a)"] * MAX_DEPTH),
    "brackets": "1 " + "(" * (MAX_DEPTH - 1) + "P(a)" + " ^ P(a))" * (MAX_DEPTH - 1),
    "differences": "-1 " + " - ".join(["x(a)"] * (MAX_DEPTH - 1)) + " - x(a)^2",
    "quotients": "-1 x(a)^2" + " / 1.1" * (MAX_DEPTH - 2),
    "functions": "-1 " + "abs(" * (MAX_DEPTH - 1) + "x(a)" + ")" * (MAX_DEPTH - 1),
    "comparisons": "1 " + "(" * 30 + "x(a) - 1" + " = 1)" * 30,
    "quantifiers": "1 " + "".join(f"EXIST b{i} P(b{i}) ^ " for i in range(6)) + "P(a)",
}


def literal(number: int) -> Expr:
    return Atom("P", (Variable(f"v{number}"),))


def nested(levels: int) -> Expr:
    expr: Expr = literal(0)
    for _ in range(levels - 1):
        expr = Unary("!", expr)
    return expr


def sum_of(num_operands: int) -> str:
    return " + ".join(["x(a)^2"] * num_operands)


def in_a_thread(work: Callable[[], None], frames: int) -> BaseException | None:
    """What the work raises, called from a depth of frames in a thread of its own."""
    raised: list[BaseException] = []

    def call(left: int) -> None:
        if left:
            call(left - 1)
            return
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call, args=(frames,))
    thread.start()
    thread.join()
    return raised[0] if raised else None


@pytest.mark.filterwarnings("ignore::hylift.language.ModelWarning")
@pytest.mark.parametrize("text", DEEPEST.values(), ids=DEEPEST.keys())
def test_the_deepest_formulas_are_worked_on_from_deep_inside_a_thread(text: str) -> None:
    def work() -> None:
        model = parse(DECLARED + text)
        again = parse(format_model(model))
        assert again == model
        assert hash(again.rules) == hash(model.rules)
        ground(model)

    assert in_a_thread(work, frames=300) is None


def test_depth_counts_levels() -> None:
    assert depth(Number(1.0)) == 1
    assert depth(binary("+", Number(1.0), Unary("-", Number(1.0)))) == 3
    assert depth(nested(5000)) == 5000


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 5000])
@pytest.mark.parametrize("place", ["formula", "where", "weight", "table", "constant"])
def test_an_expression_that_is_too_deep_is_refused_wherever_it_stands(
    place: str, levels: int
) -> None:
    deep = nested(levels)
    rule = {
        "formula": Rule(deep),
        "where": Rule(literal(0), where=(deep,)),
        "weight": Rule(literal(0), deep),
        "table": Rule(literal(0), WeightTable((), deep)),
        "constant": Rule(literal(0)),
    }[place]
    constants = (ParameterDeclaration("W", deep),) if place == "constant" else ()

    with pytest.raises(ModelError) as caught:
        check(Model(parameters=constants, rules=(rule,)))

    where = "constant 'W'" if constants else "rule 1"
    assert str(caught.value) == f"{where}: {DEEP}"


def test_a_formula_that_is_too_deep_is_refused_by_the_builder() -> None:
    m = ModelBuilder()
    p = m.predicate("P", m.type("t", ["A"]))
    x = m.variable("x")
    formula = p(x)
    for _ in range(2000):
        formula = ~formula
    m.rule(1, formula)
    m.rule(1, sum(p(x) for _ in range(2000)))

    assert repr(formula) == "<…>"
    with pytest.raises(ModelError) as caught:
        m.build()

    assert str(caught.value) == f"rule 1: {DEEP}\n\nrule 2: {chain_fault('+')}"


@pytest.mark.parametrize("num_operands", [3, 300, LONGEST_CHAIN])
@pytest.mark.parametrize("op", ["+", "v", "^"])
def test_a_long_chain_is_one_operation(op: str, num_operands: int) -> None:
    names = [f"P(v{i})" for i in range(num_operands)]
    model = parse(f"{DECLARED}1 !({f' {op} '.join(names)})")

    (rule,) = model.rules

    operands = tuple(literal(i) for i in range(num_operands))
    assert rule.formula == Unary("!", Operation(op, operands))  # type: ignore[arg-type]
    assert depth(rule.formula) == 3
    text = format_model(model)
    assert f" {op} ".join(names) in text
    assert parse(text) == model


def test_a_long_chain_and_its_parts_have_places() -> None:
    (rule,) = parse(f"{DECLARED}1 {sum_of(60)}\n").rules

    assert isinstance(rule.formula, Operation)
    whole, second = rule.formula.place, rule.formula.operands[1].place
    assert whole is not None
    assert second is not None
    assert (whole.column, whole.end) == (3, 3 + len(sum_of(60)))
    assert (second.column, second.end) == (3 + len("x(a)^2 + "), 3 + len(sum_of(2)))


def test_a_long_chain_means_what_a_short_one_does() -> None:
    declared = "t = {A}\nx(t): real[-5, 5]\n"

    (group,) = ground(parse(f"{declared}-1 {sum_of(300)}")).groups
    (expected,) = ground(parse(f"{declared}-300 x(a)^2")).groups

    assert group.potential.A == expected.potential.A == -300


def test_a_chain_made_step_by_step_is_the_one_that_is_read() -> None:
    chain = literal(0)
    for i in range(1, 80):
        chain = binary("v", chain, literal(i))
    model = Model(rules=(Rule(chain, Number(1.0)), Rule(Comparison("=", chain, Number(1.0)))))

    assert parse(format_model(model)) == model


def test_a_long_sum_in_python_is_no_deeper_than_in_text() -> None:
    m = ModelBuilder()
    x = m.predicate("P", m.type("t", ["A", "B"]))
    a = m.variable("a")
    m.rule(1, sum(x(a) for _ in range(300)) * x(a))

    model = m.build()

    assert depth(model.rules[0].formula) == 3
    assert parse(format_model(model)) == model


def test_a_chain_of_too_many_operands_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        parse("1 " + " ^ ".join(["P(x)"] * (LONGEST_CHAIN + 1)))

    assert str(caught.value).startswith(
        "<text>:1:3: more than 1,000 operands of '^' in a row; split them into several rules\n"
    )
