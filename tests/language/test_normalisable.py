"""Reals that may run away are found, those that are held are left alone."""

import pytest

from hylift.graph.domains import Domain, boolean, interval, real
from hylift.language.checks.normalisable import unheld_reals
from hylift.language.statements import (
    Model,
    ParameterDeclaration,
    PredicateDeclaration,
    Rule,
    TypeDeclaration,
)
from hylift.language.syntax import (
    Atom,
    Call,
    Comparison,
    Constant,
    Expr,
    Gaussian,
    Normal,
    Number,
    Parameter,
    Place,
    Power,
    Quantified,
    Source,
    Term,
    Unary,
    Variable,
    WeightTable,
    binary,
)

PLACE = Place(Source("papers.mln", "x(paper): real"), 1, 1, 2)


def atom(name: str, *terms: Term | str) -> Atom:
    return Atom(name, tuple(Variable(term) if isinstance(term, str) else term for term in terms))


def square(expr: Expr) -> Expr:
    return Unary("-", Power(expr, 2.0))


def times(left: Expr, right: Expr) -> Expr:
    return binary("*", left, right)


X, IN, B = atom("x", "p"), atom("In", "p", "t"), atom("B", "p")
DOOR, WALL = atom("Kind", "p", Constant("Door")), atom("Kind", "p", Constant("Wall"))
KIND, TOP = atom("Kind", "p", "k"), atom("Top", "p", "t")
ZERO, ONE = Number(0.0), Number(1.0)


def model(*rules: Rule | Expr, kinds: tuple[str, ...] | None = ("Door", "Wall", "Other")) -> Model:
    return Model(
        types=(TypeDeclaration("kind", kinds),),
        predicates=(
            PredicateDeclaration("x", ("paper",), real, place=PLACE),
            PredicateDeclaration("In", ("paper", "topic"), boolean),
            PredicateDeclaration("B", ("paper",), boolean),
            PredicateDeclaration("Kind", ("paper", "kind"), boolean, unique=1),
            PredicateDeclaration("Bounded", ("paper",), interval(0, 10)),
        ),
        parameters=(ParameterDeclaration("W", Number(0.5)),),
        rules=tuple(rule if isinstance(rule, Rule) else Rule(rule) for rule in rules),
    )


def soft(formula: Expr, weight: float | Expr | WeightTable) -> Rule:
    return Rule(formula, Number(weight) if isinstance(weight, float) else weight)


def reason(*rules: Rule | Expr, kinds: tuple[str, ...] | None = ("Door", "Wall", "Other")) -> str:
    """Why x may run away; nothing if it cannot."""
    found = unheld_reals(model(*rules, kinds=kinds))
    if not found:
        return ""
    (problem,) = found
    assert problem.severity == "warning"
    assert problem.place == PLACE
    assert problem.subject == "x"
    head, tail = (
        "the density may be improper in 'x': ",
        "; give it bounds or add a rule such as '-0.01 x(p)^2'",
    )
    assert problem.message.startswith(head)
    assert problem.message.endswith(tail)
    return problem.message[len(head) : -len(tail)]


EQUAL = Comparison("=", X, ONE)


@pytest.mark.parametrize(
    "rules",
    [
        [square(X)],
        [soft(EQUAL, 0.3)],
        [soft(EQUAL, Parameter("W"))],
        [soft(Unary("-", EQUAL), -0.3)],
        [Gaussian((X,), (), ((ONE,),))],
        [Normal(atom("x", Variable("p", 1)), times(Parameter("W"), X), ONE)],
        [soft(EQUAL, WeightTable(((("C",), ONE),), Number(0.1)))],
        [times(IN, EQUAL), square(X)],
        [times(B, EQUAL), times(Unary("!", B), EQUAL)],
        [times(Unary("!", atom("B", "q")), Comparison("=", atom("x", "q"), ONE)), times(B, EQUAL)],
        [binary("+", times(IN, EQUAL), times(Unary("!", IN), square(X)))],
        [times(DOOR, EQUAL), times(Unary("!", DOOR), EQUAL)],
        [times(KIND, EQUAL)],
        [Rule(square(X), where=(Comparison("!=", Variable("p"), Constant("A")),))],
        [times(Comparison("!=", Variable("p"), Variable("q")), Comparison("=", X, atom("x", "q")))],
        [Unary("-", Call("abs", (X,)))],
        [Comparison("=", X, atom("Bounded", "p"))],
    ],
)
def test_a_real_whose_square_falls_off_in_every_state_is_held(rules: list[Rule | Expr]) -> None:
    assert reason(*rules) == ""


def test_all_states_of_a_listed_type_have_to_be_held() -> None:
    rules = [times(DOOR, EQUAL), times(WALL, EQUAL)]

    assert reason(*rules, kinds=("Door", "Wall")) == ""
    assert reason(*rules, kinds=None) == ""
    assert reason(*rules, kinds=("Door", "Wall", "Other")) == (
        "its rules confine it only in some states (for example, not where Kind(p, Door) is false "
        "and Kind(p, Wall) is false)"
    )


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([soft(EQUAL, -0.3)], "its rules favour large values"),
        ([Power(X, 2.0)], "its rules favour large values"),
        ([soft(X, 0.3)], "none of its rules has a negative square of it"),
        (
            [times(IN, EQUAL)],
            "its rules confine it only in some states (for example, not where In(p, t) is "
            "false, unless 'In' is closed-world)",
        ),
        (
            [times(IN, times(B, EQUAL)), soft(times(IN, X), 2.0)],
            "its rules confine it only in some states (for example, not where B(p) is false, "
            "unless 'In' and 'B' are closed-world)",
        ),
        (
            [times(binary("v", IN, B), EQUAL)],
            "its rules confine it only in some states (for example, not where In(p, t) is false "
            "and B(p) is false, unless 'In' and 'B' are closed-world)",
        ),
        (
            [times(Quantified("EXIST", ("t",), IN), EQUAL)],
            "its rules confine it only in some states (for example, not where EXIST t In(p, t) is "
            "false)",
        ),
        (
            [times(atom("B", "q"), EQUAL), times(Unary("!", B), EQUAL)],
            "its rules confine it only in some states (for example, not where B(q) is false and "
            "B(p) is true, unless 'B' is closed-world)",
        ),
        (
            [soft(EQUAL, WeightTable(((("C",), ONE),), ZERO))],
            "none of its rules has a negative square of it",
        ),
    ],
)
def test_a_real_that_may_run_away_is_reported_with_the_reason(
    rules: list[Rule | Expr], expected: str
) -> None:
    assert reason(*rules) == expected


def test_a_real_that_no_rule_uses_is_left_alone() -> None:
    assert reason() == ""
    assert reason(square(atom("Bounded", "p"))) == ""


def test_a_predicate_whose_closing_would_not_help_is_not_named() -> None:
    assert "closed-world" not in reason(times(DOOR, EQUAL))
    assert "closed-world" not in reason(times(IN, times(DOOR, EQUAL)))


def test_the_states_of_a_reals_own_arguments_are_not_free_to_choose() -> None:
    pair = Model(
        types=(TypeDeclaration("kind", ("Door", "Wall")),),
        predicates=(
            PredicateDeclaration("x", ("thing", "kind"), real),
            PredicateDeclaration("Kind", ("thing", "kind"), boolean, unique=1),
        ),
        rules=(Rule(times(atom("Kind", "s", "k"), Comparison("=", atom("x", "s", "k"), ONE))),),
    )

    (problem,) = unheld_reals(pair)

    assert "only in some states (for example, not where Kind(s, k) is false" in problem.message
    assert "'-0.01 x(t, k)^2'" in problem.message


def test_arguments_of_one_type_get_different_names_in_the_hint() -> None:
    near = Model(
        predicates=(PredicateDeclaration("near", ("paper", "paper"), real),),
        rules=(Rule(atom("near", "p", "q")),),
    )
    recession = Model(
        predicates=(PredicateDeclaration("recession", (), real),), rules=(Rule(atom("recession")),)
    )

    assert "'-0.01 near(p, p2)^2'" in unheld_reals(near)[0].message
    assert "'-0.01 recession^2'" in unheld_reals(recession)[0].message


def test_half_an_interval_is_not_enough() -> None:
    positive = Model(
        predicates=(PredicateDeclaration("x", (), interval(0, float("inf"))),),
        rules=(Rule(atom("x")),),
    )

    assert len(unheld_reals(positive)) == 1


ABOVE, BELOW = interval(0, float("inf")), interval(float("-inf"), 0)
OTHER = atom("y", "p")


@pytest.mark.parametrize(
    ("domain", "rule", "is_held"),
    [
        (ABOVE, soft(X, -1.0), True),
        (ABOVE, soft(X, 1.0), False),
        (BELOW, soft(X, 1.0), True),
        (BELOW, soft(X, -1.0), False),
        (real, soft(X, -1.0), False),
        (ABOVE, soft(times(B, X), -1.0), False),
        (ABOVE, soft(binary("+", times(B, X), times(Unary("!", B), Power(X, 2.0))), -1.0), True),
        (ABOVE, soft(binary("-", X, Power(X, 2.0)), -1.0), False),
        (ABOVE, soft(binary("+", X, times(X, OTHER)), -1.0), False),
        (ABOVE, soft(binary("+", X, OTHER), -1.0), True),
    ],
)
def test_a_slope_towards_the_one_open_end_holds_a_real(
    domain: Domain, rule: Rule, is_held: bool
) -> None:
    declared = (
        PredicateDeclaration("x", ("paper",), domain),
        PredicateDeclaration("y", ("paper",), interval(0, 1)),
        PredicateDeclaration("B", ("paper",), boolean),
    )

    found = unheld_reals(Model(predicates=declared, rules=(rule,)))

    assert [problem.subject for problem in found] == ([] if is_held else ["x"])


def test_rules_too_large_to_look_at_are_trusted() -> None:
    many = [atom(f"P{i}") for i in range(25)]
    gate: Expr = many[0]
    for other in many[1:]:
        gate = binary("v", gate, other)
    base = model(times(gate, EQUAL))
    declared = tuple(PredicateDeclaration(f"P{i}", (), boolean) for i in range(25))

    large = Model(base.types, base.predicates + declared, (), base.rules)

    assert unheld_reals(large) == []
