"""Every error and warning about a model: its words, and the words of the model it points at."""

import warnings

import pytest

from hylift.errors import ModelError
from hylift.graph.domains import boolean, categorical, real
from hylift.language.check import check, problems
from hylift.language.parser import parse
from hylift.language.report import Problem
from hylift.language.syntax import (
    Apply,
    Atom,
    Binary,
    Model,
    Number,
    ParameterDeclaration,
    PredicateDeclaration,
    Rule,
    TypeDeclaration,
    Variable,
    WeightTable,
)

HEADER = """\
topic = {t0, t1, t2}
time = {0, ..., 9}
paper
In(paper, topic)
Near(paper, paper)
Topic(topic)
Kind(paper, topic!)
At(paper, time)
Pop(paper): real[0, 10]
Len(paper): real
Wet(paper): boolean
Dry(paper): boolean
rain: boolean
level: real
const DoorLength = 0.1
const Half = 0.5
"""


def found(text: str) -> list[Problem]:
    """The problems of a model, without predicates that are declared but not used."""
    listed = problems(parse(HEADER + text, name="m.mln"))
    return [p for p in listed if "no rule uses" not in p.message and "to keep" not in p.message]


def underlined(problem: Problem) -> str:
    place = problem.place
    line = place.source.text.splitlines()[place.line - 1]
    return line[place.column - 1 : place.end - 1]


def assert_one(text: str, severity: str, message: str, words: str) -> None:
    only = found(text)
    assert [(p.severity, p.message) for p in only] == [(severity, message)]
    assert underlined(only[0]) == words


NAMES = [
    ("1 Inn(p, t)", "unknown predicate 'Inn'. Did you mean 'In'?", "Inn"),
    ("1 lgo(p) ^ In(p, t)", "unknown predicate 'lgo'. Did you mean 'log'?", "lgo"),
    ("1 In(p, t, q)", "'In' takes 2 arguments (paper, topic), not 3", "In"),
    ("1 Topic(p, t)", "'Topic' takes 1 argument (topic), not 2", "Topic"),
    ("1 rain(p) ^ Near(p, p)", "'rain' takes no arguments, not 1", "rain"),
    ('1 In(p, "t9")', "type 'topic' has no constant 't9'.", '"t9"'),
    ("1 At(p, 12)", "type 'time' has no constant '12'. Did you mean '2'?", "12"),
    ("1 At(p, t) ^ t != 12", "type 'time' has no constant '12'. Did you mean '2'?", "12"),
    ('1 In(p, t) where "x" != t', "type 'topic' has no constant 'x'.", '"x"'),
    (
        "Pop(p) = DoorLenght",
        "'DoorLenght' is neither a constant nor a predicate. Did you mean 'DoorLength'?",
        "DoorLenght",
    ),
    (
        "1 rian ^ In(p, t)",
        "'rian' is neither a constant nor a predicate. Did you mean 'rain'?",
        "rian",
    ),
    (
        "Pop(p) = levl",
        "'levl' is neither a constant nor a predicate. Did you mean 'level'?",
        "levl",
    ),
    ("1 In(p, t) ^ Topic", "'Topic' takes 1 argument (topic), not 0", "Topic"),
    ("Pop(p) * p", "the variable 'p' is neither a number nor a truth value", "p"),
    ("1 In(p, t) ^ t", "the variable 't' is neither a number nor a truth value", "t"),
    ("Pop(p) = p", "'Pop(p) = p' compares the variable 'p' with the number 'Pop(p)'", "p"),
    (
        "1 Kind(p, t) = t",
        "'Kind(p, t) = t' compares the variable 't' with the truth value 'Kind(p, t)'",
        "t",
    ),
    (
        'Pop(p) = "t1"',
        "'Pop(p) = \"t1\"' compares 't1' of type 'topic' with the number 'Pop(p)'",
        '"t1"',
    ),
    (
        "1 Kind(p, t+1)",
        "'t + 1' stands in the '!' argument of 'Kind', whose constants are values and have no "
        "neighbours",
        "t+1",
    ),
]

VARIABLES = [
    (
        "1 In(p, t) ^ Topic(p)",
        "variable 'p' is a 'paper' in In(p, t) and a 'topic' in Topic(p)",
        "p",
    ),
    (
        "1 In(p, t) ^ z = A",
        "variable 'z' stands in no atom of the rule, so that it has no type.",
        "z",
    ),
    (
        "1 In(p, t) where p != q",
        "variable 'q' is compared in where, but no atom of the rule has it",
        "q",
    ),
    (
        "1 Near(p, p) ^ (EXIST q Near(p, q)) where p != r",
        "variable 'r' is compared in where, but no atom of the rule has it",
        "r",
    ),
    (
        "1 EXIST q, t In(p, t)",
        "EXIST names 'q', but its formula does not use it",
        "EXIST q, t In(p, t)",
    ),
    ("1 EXIST t, t In(p, t)", "EXIST names 't' twice", "EXIST t, t In(p, t)"),
]

NEEDS = "needs a truth value"
MULTIPLY = "compare it with a number, and multiply by that comparison"
INSTEAD = "multiply by it instead, as in 'A(x) * (B(x) = 1)'"
WHERE = "where takes comparisons of logical terms, and Boolean atoms or their negation"

KINDS = [
    ("1 Pop(p) ^ In(p, t)", f"'Pop(p)' is real, but '^' {NEEDS}: {MULTIPLY}", "Pop"),
    ("1 In(p, t) => Pop(p)", f"'Pop(p)' is real, but '=>' {NEEDS}: {MULTIPLY}", "Pop"),
    ("1 !Pop(p)", f"'Pop(p)' is real, but '!' {NEEDS}: {MULTIPLY}", "Pop"),
    ("1 EXIST p Pop(p)", f"'Pop(p)' is real, but EXIST {NEEDS}: {MULTIPLY}", "Pop"),
    ("Pop(p).", f"'Pop(p)' is real, but a hard rule {NEEDS}: {MULTIPLY}", "Pop"),
    ("Pop(p)^2.", f"'Pop(p)^2' is a number, but a hard rule {NEEDS}", "Pop(p)^2"),
    (
        "Pop(p) = 1.",
        f"'Pop(p) = 1' is a soft comparison of numbers, but a hard rule {NEEDS}: {INSTEAD}",
        "Pop(p) = 1",
    ),
    (
        "1 In(p, t) ^ Pop(p) > 0.5",
        f"'Pop(p) > 0.5' is a soft comparison of numbers, but '^' {NEEDS}: {INSTEAD}",
        "Pop(p) > 0.5",
    ),
    (
        "1 In(p, t) v Pop(p) * 2",
        f"'Pop(p) * 2' is a number, but 'v' {NEEDS}",
        "Pop(p) * 2",
    ),
    (
        "-1 Pop(p) ^ 2",
        "'^' with a space behind it is logical and, which needs truth values: for a power write "
        "'Pop(p)^2', without a space",
        "Pop(p) ^ 2",
    ),
    ("1 In(p, t) where Pop(p)", f"'Pop(p)' is real, but {WHERE}", "Pop"),
    ("1 In(p, t) where Pop(p) > 2", f"{WHERE}, not 'Pop(p) > 2'", "Pop(p) > 2"),
    (
        "1 In(p, t) where Topic(t) v rain",
        f"{WHERE}, not 'Topic(t) v rain'",
        "Topic(t) v rain",
    ),
    (
        "1 Wet(p) = Dry(p)",
        "'Wet(p) = Dry(p)' compares truth values: write 'Wet(p) <=> Dry(p)'",
        "Wet(p) = Dry(p)",
    ),
    (
        "1 Wet(p) != Dry(p)",
        "'Wet(p) != Dry(p)' compares truth values: write '!(Wet(p) <=> Dry(p))'",
        "Wet(p) != Dry(p)",
    ),
    ("1 Kind(p, t) < 0.5", "'<' compares numbers, but 'Kind(p, t)' is a truth value", "Kind"),
    (
        "1 Pop(p) != 3",
        "'Pop(p) != 3' compares numbers, which always differ: '!=' is for logical terms",
        "Pop(p) != 3",
    ),
    ("abs(Pop(p), 2)", "'abs' takes 1 argument, not 2", "abs(Pop(p), 2)"),
    ("max(Pop(p))", "'max' takes at least 2 arguments, not 1", "max(Pop(p))"),
    ("1 (Pop(p) > 1; slope=-2)", "a slope must be positive, not -2", "-2"),
    (
        "1 (Pop(p) > 1; slope=Pop(p))",
        "a slope is arithmetic on numbers and constants, but 'Pop(p)' is an atom",
        "Pop",
    ),
    (
        "1 (Pop(p) = 1; slope=2)",
        "a slope belongs to <, <=, > or >= between numbers, not to 'Pop(p) = 1'",
        "Pop(p) = 1",
    ),
]

DENSITIES = [
    (
        "gaussian(Kind(p, t); cov=[[1]])",
        "the values of gaussian are real, but 'Kind(p, t)' is a truth value",
        "Kind",
    ),
    (
        "gaussian(Pop(p), Len(p); mean=[1], cov=[[1, 0], [0, 1]])",
        "gaussian of 2 values needs 2 means, not 1",
        "1",
    ),
    (
        "gaussian(Pop(p), Len(p); cov=[[1, 0]])",
        "gaussian of 2 values needs a cov of 2 rows of 2",
        "gaussian(Pop(p), Len(p); cov=[[1, 0]])",
    ),
    (
        "gaussian(Pop(p), Len(p); cov=[[2, 1], [0.5, 2]])",
        "cov of gaussian must be symmetric, but entry (1, 2) is 1 and entry (2, 1) is 0.5",
        "0.5",
    ),
    (
        "gaussian(Pop(p), Len(p); cov=[[1, 2], [2, 1]])",
        "cov of gaussian must be positive definite, but its least eigenvalue is -1",
        "1",
    ),
    (
        "gaussian(Pop(p); mean=[Len(p)], cov=[[1]])",
        "a mean of gaussian is arithmetic on numbers and constants, but 'Len(p)' is an atom",
        "Len",
    ),
    (
        "gaussian(Pop(p); cov=[[1/0]])",
        "an entry of cov divides by zero in '1 / 0'",
        "1/0",
    ),
    (
        "normal(Pop(p) | 2, Half - 0.5)",
        "the variance of normal must be positive, not 0",
        "Half - 0.5",
    ),
    (
        "normal(Wet(p) | 2, 1)",
        "the value of normal is real, but 'Wet(p)' is a truth value",
        "Wet",
    ),
]

WEIGHTS = [
    ("In(p, t)", "the rule needs a weight, or a period at its end to be hard", "In"),
    (
        "0.3 - Pop(p)^2",
        "'0.3 - Pop(p)^2' is a sum or difference that starts with 0.3: for a rule of weight 0.3 "
        "write '0.3 (…)'",
        "0.3 - Pop(p)^2",
    ),
    (
        "Half + Pop(p) - Len(p)",
        "'Half + Pop(p) - Len(p)' is a sum or difference that starts with Half: for a rule of "
        "weight Half write 'Half (…)'",
        "Half + Pop(p) - Len(p)",
    ),
    ("exp(999) In(p, t)", "a weight must be finite, but 'exp(999)' is not", "exp(999)"),
    ("(Half / 0) In(p, t)", "a weight divides by zero in 'Half / 0'", "Half / 0"),
    ("2 (1 = 2)", "the rule mentions no atom", "1 = 2"),
    (
        "{t0: 1, *: 0} In(p, t)",
        "a table of weights needs a variable marked '+' in the formula, as in 'A(+x)'",
        "{t0: 1, *: 0}",
    ),
    (
        "{(t0, t1): 1, *: 0} In(p, +t)",
        "a key of this table has 1 constant (+t), but 't0, t1' has 2",
        "1",
    ),
    (
        "{t0: 1, t7: 2, *: 0} In(p, +t)",
        "type 'topic' has no constant 't7'.",
        "2",
    ),
    ("{t0: 1, t0: 2, *: 0} In(p, +t)", "the table of weights has 't0' twice", "2"),
    (
        "{t0: 1} In(p, +t)",
        "the table has no weight for t1; t2: add it, or a default, '*: 0'",
        "{t0: 1}",
    ),
    (
        "{5: 1} At(p, +t)",
        "the table has no weight for 0; 1; 2; …: add it, or a default, '*: 0'",
        "{5: 1}",
    ),
    (
        "{t0: Pop(p), *: 0} In(p, +t)",
        "a weight is arithmetic on numbers and constants, but 'Pop(p)' is an atom",
        "Pop",
    ),
]

DECLARATIONS = [
    ("topic = {a, b}", "type 'topic' is declared twice, first in line 1", "topic"),
    ("In(paper): real", "predicate 'In' is declared twice, first in line 4", "In"),
    ("const Half = 1", "constant 'Half' is declared twice, first in line 16", "Half"),
    ("const Pop = 1", "'Pop' is both a predicate and a constant, first in line 9", "Pop"),
    (
        "Size(paper, topic!): real",
        "'Size' is real, so that no argument can be marked '!': exactly one constant holds only "
        "for truth values",
        "Size",
    ),
    ("const Third = 1 / 0", "constant 'Third' divides by zero in '1 / 0'", "1 / 0"),
    ("const Third = Thrd", "unknown constant 'Thrd'. Did you mean 'Third'?", "Thrd"),
    ("const Third = Third", "constant 'Third' is defined by itself", "Third"),
]


@pytest.mark.parametrize(
    ("text", "message", "words"),
    [*NAMES, *VARIABLES, *KINDS, *DENSITIES, *WEIGHTS],
)
def test_an_error_in_a_rule_says_what_is_wrong_and_where(text, message, words):
    assert_one(text, "error", message, words)


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
        ("0 In(p, t)", "a rule of weight 0 changes nothing", "0"),
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
    "text",
    [
        "1 In(p, t) => Topic(t) ^ Near(p, q) where p != q, !rain",
        "In(p, t) => Topic(t).",
        "0.5 In(p, t) * (Pop(p) = 1.0) + !In(p, t) * (Len(p) = DoorLength)",
        "gaussian(Pop(p), Len(p); mean=[0, Half], cov=[[10, 5], [5, 10]])",
        "normal(Pop(p) | Half * Len(p), Len(p)^2)",
        "{t0: 0.1, t1: Half, t2: -1} In(p, +t)",
        "{(t0, t1): 0.1, *: 0} In(p, +s) ^ In(p, +t)",
        "{A: 0.1} Near(p, +q)",
        "1 At(p, t) => At(p, t+1)",
        "2 (Pop(p) > 0.05; slope=20)",
        "-0.04 Pop(p)^2 + Len(p)^2",
        "1 (Topic(t) + In(p, t)) = 1",
        "Kind1(topic1)\ntopic1\n1 Kind1(t)",
    ],
)
def test_sound_rules_pass(text):
    assert found(text) == []


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
    assert first_message(Rule(Binary("^", a, x), Number(0.5))) == (
        "rule 2, `0.5 A(y) ^ X(y)`: 'X(y)' is real, but '^' needs a truth value: "
        "compare it with a number, and multiply by that comparison"
    )


def test_a_rule_that_cannot_be_written_out_is_told_by_its_number():
    nowhere = Apply(lambda values: values, (Atom("C", (Variable("y"),)),))

    assert first_message(Rule(nowhere, Number(1.0))) == "rule 2: unknown predicate 'C'."


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
        "'Colour' has states of its own: mark an argument with '!' to have one categorical "
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
            "type 'kind' lists no constants; without a list the data give them",
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


def test_checks_are_silent_in_themselves():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(parse("0 A(x)\nA(t)"))
