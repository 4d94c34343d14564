"""Errors and warnings about a model: all at once, in order, and about its declarations."""

import warnings

import pytest

from hylift.errors import ModelError
from hylift.graph.domains import boolean, categorical, real
from hylift.language.checks.check import MOST_PAIRS, check, problems
from hylift.language.statements import (
    Model,
    ParameterDeclaration,
    PredicateDeclaration,
    Rule,
    TypeDeclaration,
)
from hylift.language.syntax import Apply, Atom, Gaussian, Number, Variable, WeightTable, binary
from hylift.language.text.parser import parse
from language.checked import assert_one, found, underlined

DECLARATIONS = [
    ("topic = {a, b}", "type 'topic' is declared twice, first in line 1", "topic"),
    ("In(paper): real", "predicate 'In' is declared twice, first in line 4", "In"),
    ("const Half = 1", "constant 'Half' is declared twice, first in line 16", "Half"),
    ("const Pop = 1", "'Pop' is both a predicate and a constant, first in line 9", "Pop"),
    (
        "Size(paper, topic!): real",
        "'Size' is real, so no argument can be marked '!': exactly one constant holds only "
        "for truth values",
        "Size",
    ),
    ("const Third = 1 / 0", "constant 'Third' divides by zero in '1 / 0'", "1 / 0"),
    ("const Third = Thrd", "unknown constant 'Thrd'.", "Thrd"),
    ("const Third = Hal", "unknown constant 'Hal'. Did you mean 'Half'?", "Hal"),
    ("const Third = Third", "constant 'Third' is defined by itself", "Third"),
]


@pytest.mark.parametrize(("text", "message", "words"), DECLARATIONS)
def test_an_error_in_a_declaration_says_what_is_wrong_and_where(text, message, words):
    only = [problem for problem in found(text) if problem.severity == "error"]

    assert [problem.message for problem in only] == [message]
    assert underlined(only[0]).startswith(words)


@pytest.mark.parametrize(
    ("text", "message", "words"),
    [
        (
            "1 Near(p, q) ^ (EXIST q Near(p, q))",
            "'q' under EXIST is not the 'q' outside it: rename one of them",
            "EXIST q Near(p, q)",
        ),
        (
            "1 In(p, t1)",
            "'t1' is a variable here, although type 'topic' has a constant of that name: "
            'write "t1" with quotes to mean the constant',
            "t1",
        ),
        ("0 In(p, t)", "a rule of weight 0 has no effect", "0"),
        (
            "1 EXIST t (In(p, t) ^ Topic(t)) => Wet(p)",
            "EXIST t extends over '=>' to the end of the formula: write '(EXIST t …) => …' to end "
            "it before",
            "EXIST t (In(p, t) ^ Topic(t)) => Wet(p)",
        ),
        (
            "Loud(papr)\n1 Loud(p)",
            "type 'papr' of 'Loud' is not declared. Did you mean 'paper'?",
            "Loud",
        ),
    ],
)
def test_what_is_allowed_but_strange_is_a_warning(text, message, words):
    assert_one(text, "warning", message, words)


@pytest.mark.parametrize(
    "formula",
    [
        "EXIST t In(p, t) => Wet(p)",
        "EXIST t ((In(p, t)) => Wet(p))",
        "EXIST t (In(p, t)) => Topic(t)",
        "(EXIST t (In(p, t))) => Wet(p)",
        "EXIST t (In(p, t)) ^ Wet(p)",
    ],
)
def test_a_quantifier_whose_reach_is_clear_is_left_alone(formula):
    assert found(f"1 {formula}") == []


def test_predicates_that_no_rule_uses_are_warned_about():
    model = parse("A(t)\nB(t)\n1 A(x) where C(x)\nC(t)", name="m.mln")

    assert [str(problem) for problem in check(model)] == [
        "m.mln:2:1: no rule uses 'B'\n    B(t)\n    ^"
    ]


def test_a_real_that_nothing_keeps_finite_is_warned_about_only_without_errors():
    sound = parse("x(t): real\n1 x(a)", name="m.mln")
    broken = parse("x(t): real\n1 x(a)\n1 y(a)", name="m.mln")

    assert any(p.severity == "warning" and "x" in p.message for p in problems(sound))
    assert [p.severity for p in problems(broken)] == ["error"]


def test_all_errors_are_raised_together_in_order_of_place():
    model = parse("A(t)\n1 A(x) ^ Bb(x)\nA(x)\nconst c = d", name="m.mln")

    with pytest.raises(ModelError) as raised:
        check(model)

    assert str(raised.value) == (
        "m.mln:2:10: unknown predicate 'Bb'.\n"
        "    1 A(x) ^ Bb(x)\n"
        "             ^^\n"
        "\n"
        "m.mln:3:1: the rule needs a weight, or a period at its end to be hard\n"
        "    A(x)\n"
        "    ^\n"
        "\n"
        "m.mln:4:11: unknown constant 'd'.\n"
        "    const c = d\n"
        "              ^"
    )


def test_long_lists_of_errors_end_with_how_many_more():
    model = parse("A(t)\n" + "1 A(x, y)\n" * 25, name="m.mln")

    with pytest.raises(ModelError) as raised:
        check(model)

    assert str(raised.value).count("'A' takes 1 argument (t), not 2") == 20
    assert str(raised.value).endswith("\n\n… and 5 more errors")


# Models made in Python have no places.

A, B = (PredicateDeclaration(name, ("t",), boolean) for name in "AB")
X = PredicateDeclaration("X", ("t",), real)
a, b, x = (Atom(name, (Variable("y"),)) for name in "ABX")


def first_message(rule: Rule) -> str:
    model = Model(predicates=(A, B, X), rules=(Rule(a, Number(1.0)), rule))
    return next(p.message for p in problems(model) if p.severity == "error")


def test_without_places_errors_quote_the_rule():
    assert first_message(Rule(binary("^", a, x), Number(0.5))) == (
        "rule 2, `0.5 A(y) ^ X(y)`: 'X(y)' is real, but '^' needs a truth value: "
        "compare it with a number, and multiply by that comparison"
    )


def test_a_rule_that_cannot_be_written_out_is_told_by_its_number():
    nowhere = Apply(lambda values: values, (Atom("C", (Variable("y"),)),))

    assert first_message(Rule(nowhere, Number(1.0))) == "rule 2: unknown predicate 'C'."


def test_a_gaussian_has_values():
    rule = Rule(binary("+", Gaussian((), (), ()), x), Number(1.0))

    assert first_message(rule).endswith("gaussian needs at least one value")


def test_a_hard_rule_has_no_weight():
    assert first_message(Rule(a, Number(1.0), hard=True)).endswith("a hard rule has no weight")


def test_a_variable_with_a_weight_per_constant_is_free():
    table = WeightTable((), Number(1.0))

    assert first_message(Rule(a, table, per_constant=("z",))).endswith(
        "'+z' asks for a weight per constant, but 'z' is not free"
    )


def test_a_predicate_has_no_states_of_its_own():
    colour = PredicateDeclaration("Colour", (), categorical(["red", "blue"]))

    assert [p.message for p in problems(Model(predicates=(colour,))) if p.severity == "error"] == [
        "'Colour' has its own states: mark an argument with '!' to have one categorical "
        "variable over a type"
    ]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Model(predicates=(PredicateDeclaration("abs", (), boolean),)),
            "'abs' is a built-in function: give the predicate another name",
        ),
        (
            Model(parameters=(ParameterDeclaration("normal", Number(1.0)),)),
            "'normal' is a built-in function: give the constant another name",
        ),
        (
            Model(types=(TypeDeclaration("kind", ("a", "b", "a")),)),
            "type 'kind' lists 'a' twice",
        ),
        (
            Model(types=(TypeDeclaration("kind", ()),)),
            "type 'kind' lists no constants; omit the list to take them from the data",
        ),
        (Model(types=(TypeDeclaration("kind"),) * 2), "type 'kind' is declared twice"),
        (
            Model((TypeDeclaration("t"),), (PredicateDeclaration("t", (), boolean),)),
            "'t' is both a type and a predicate",
        ),
        (
            Model(
                predicates=(
                    PredicateDeclaration("t", (), boolean),
                    PredicateDeclaration("A", ("t",), boolean),
                )
            ),
            "'t' is both a predicate and a type, in the arguments of 'A'",
        ),
    ],
)
def test_declarations_without_places_are_named(model, message):
    assert [p.message for p in problems(model) if p.severity == "error"] == [message]


def test_a_type_that_several_predicates_misspell_is_warned_about_once():
    model = parse("paper\nA(papr)\nB(papr)\n1 A(p) ^ B(p)", name="m.mln")

    assert [str(problem) for problem in problems(model)] == [
        "m.mln:2:1: type 'papr' of 'A' is not declared. Did you mean 'paper'?\n    A(papr)\n    ^"
    ]


def test_thousands_of_types_are_compared_up_to_a_limit(monkeypatch):
    compared = []
    monkeypatch.setattr(
        "hylift.language.checks.check.get_close_matches",
        lambda name, known, **_: compared.extend((name, other) for other in known),
    )
    declared = tuple(TypeDeclaration(f"t{'a' * (i % 7)}{i}") for i in range(2000))
    predicates = tuple(PredicateDeclaration(f"P{i}", (f"u{i}",), boolean) for i in range(2000))

    problems(Model(declared, predicates))

    assert 0 < len(compared) <= MOST_PAIRS


def test_a_type_declared_twice_is_checked_twice():
    lists = (TypeDeclaration("kind", ("a", "a")), TypeDeclaration("kind", ("a", "b")))

    assert [p.message for p in problems(Model(lists))] == [
        "type 'kind' is declared twice",
        "type 'kind' lists 'a' twice",
    ]


def test_checks_are_silent_in_themselves():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(parse("0 A(x)\nA(t)"))
