"""Every construct of the language gives the nodes it should."""

from __future__ import annotations

import pytest

from hylift.graph.domains import boolean, interval, real
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
    Operation,
    Parameter,
    Power,
    Quantified,
    Truth,
    Unary,
    Variable,
    WeightTable,
    binary,
)
from hylift.language.text.parser import parse


def rule(text: str) -> Rule:
    (only,) = parse(text).rules
    return only


def formula(text: str) -> Expr:
    """The formula of a rule with the weight 1."""
    return rule(f"1 {text}").formula


def atom(name: str, *variables: str) -> Atom:
    return Atom(name, tuple(map(Variable, variables)))


A, B, C = atom("A", "x"), atom("B", "x"), atom("C", "x")


# Declarations.


def test_types_have_listed_constants_ranges_or_none() -> None:
    model = parse('topic = {t0, ..., t3, Other, "New York", 7, -2}\npaper\nempty = {}')

    listed = ("t0", "t1", "t2", "t3", "Other", "New York", "7", "-2")
    assert model.types == (
        TypeDeclaration("topic", listed),
        TypeDeclaration("paper"),
        TypeDeclaration("empty", ()),
    )


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("{1, ..., 4}", ("1", "2", "3", "4")),
        ("{-1, ..., 1}", ("-1", "0", "1")),
        ("{t08, ..., t11}", ("t08", "t09", "t10", "t11")),
        ("{t8, ..., t11}", ("t8", "t9", "t10", "t11")),
        ("{A1, ..., A2, B1, ..., B2}", ("A1", "A2", "B1", "B2")),
    ],
)
def test_a_range_counts_up(text: str, constants: tuple[str, ...]) -> None:
    assert parse(f"t = {text}").types[0].constants == constants


def test_predicates_have_types_a_domain_and_at_most_one_unique_argument() -> None:
    model = parse(
        """
        In(paper, topic)
        SegType(segment, type!)
        Popularity(paper): real[0, 10]
        Debt(paper): real[-2.5, inf]
        gdp: real
        H: boolean
        K()
        """
    )

    assert model.predicates == (
        PredicateDeclaration("In", ("paper", "topic"), boolean),
        PredicateDeclaration("SegType", ("segment", "type"), boolean, unique=1),
        PredicateDeclaration("Popularity", ("paper",), interval(0, 10)),
        PredicateDeclaration("Debt", ("paper",), interval(-2.5, float("inf"))),
        PredicateDeclaration("gdp", (), real),
        PredicateDeclaration("H", (), boolean),
        PredicateDeclaration("K", (), boolean),
    )


def test_constants_are_arithmetic_on_numbers_and_constants() -> None:
    model = parse("const Door = 0.1\nconst Twice = 2 * Door")

    assert model.parameters == (
        ParameterDeclaration("Door", Number(0.1)),
        ParameterDeclaration("Twice", binary("*", Number(2), Parameter("Door"))),
    )


@pytest.mark.parametrize(
    "use",
    ["1 L(x) = 2", "1 2 > L(x)", "-1 L(x)^2", "normal(L(x) | 0, 1)", "gaussian(L(x); cov=[[1]])"],
)
def test_a_predicate_without_domain_is_real_where_it_is_used_as_a_number(use: str) -> None:
    model = parse(f"L(seg)\n{use}")

    assert model.predicates[0].domain == real


def test_a_predicate_compared_with_one_that_is_real_is_real() -> None:
    model = parse("A(t)\nB(t)\nC(t)\nD(t): real\n1 A(x) = B(x)\n1 B(x) = C(x)\n1 C(x) > D(x)")

    assert [declared.domain for declared in model.predicates] == [real] * 4


@pytest.mark.parametrize(
    "use",
    [
        "1 L(x)",
        "1 L(x) * (M(x) = 2)",
        "1 L(x) v x = y",
        "1 L(x) = L(y)",
        "1 L(x) = true",
        "M(seg)\n1 L(x) = M(x)",
        "M(seg): boolean\n1 L(x) = M(x)\n1 M(x) = 1",
    ],
)
def test_a_predicate_without_domain_is_boolean_otherwise(use: str) -> None:
    assert parse(f"L(seg)\n{use}").predicates[0].domain == boolean


def test_a_domain_that_is_given_stays() -> None:
    assert parse("L(seg): boolean\n1 L(x) = 2").predicates[0].domain == boolean


def test_an_atom_alone_on_a_line_declares_its_predicate_only_once() -> None:
    model = parse("In(paper, topic)\nIn(p, t)")

    assert len(model.predicates) == 1
    assert model.rules == (Rule(atom("In", "p", "t")),)


def test_a_word_on_a_line_of_its_own_is_an_atom_if_a_formula_uses_it_so() -> None:
    model = parse("Rain\npaper\nWet(paper)\n1 Rain => Wet(p)")

    assert model.types == (TypeDeclaration("paper"),)
    assert model.predicates[0] == PredicateDeclaration("Rain", (), boolean)
    assert model.rules[0].formula == binary("=>", Atom("Rain"), atom("Wet", "p"))


def test_a_word_that_types_an_argument_stays_a_type() -> None:
    model = parse("Rain\nWet(Rain)\n1 Rain => Wet(p)")

    assert model.types == (TypeDeclaration("Rain"),)


def test_declarations_may_follow_their_use() -> None:
    model = parse("1 x(s) = K + gdp\ngdp: real\nconst K = 2")

    right = binary("+", Parameter("K"), Atom("gdp"))
    assert model.rules[0].formula == Comparison("=", atom("x", "s"), right)


# Rules.


def test_a_rule_has_a_weight_or_is_hard_or_neither() -> None:
    assert rule("0.3 A(x) ^ B(x)") == Rule(binary("^", A, B), Number(0.3))
    assert rule("-0.7 A(x)") == Rule(A, Number(-0.7))
    assert rule("A(x) => B(x).") == Rule(binary("=>", A, B), hard=True)
    assert rule("A(x)^2 + 1") == Rule(binary("+", Power(A, 2), Number(1)))


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("W A(x)", Parameter("W")),
        ("W (A(x))", Parameter("W")),
        ("(W) (A(x))", Parameter("W")),
        ("2*W A(x)", binary("*", Number(2), Parameter("W"))),
        ("(2 + W) A(x)", binary("+", Number(2), Parameter("W"))),
        ("exp(2) A(x)", Call("exp", (Number(2),))),
    ],
)
def test_a_weight_stands_right_before_the_formula(text: str, weight: Expr) -> None:
    (only,) = parse(f"const W = 1\n{text}").rules

    assert only == Rule(A, weight)


def test_a_word_before_brackets_is_a_predicate_unless_it_is_a_constant() -> None:
    assert rule("In (p, t).").formula == atom("In", "p", "t")
    assert parse("const W = 1\n1 W(x)").rules[0].formula == atom("W", "x")


def test_a_sign_between_number_and_formula_is_an_operator() -> None:
    assert rule("0.3 - A(x)") == Rule(binary("-", Number(0.3), A))
    assert rule("0.3 (-A(x))") == Rule(Unary("-", A), Number(0.3))


def test_a_table_gives_each_constant_its_weight() -> None:
    table = WeightTable(((("t0",), Number(0.1)), (("New York",), Parameter("W"))), Number(0))
    assert rule('{t0: 0.1, "New York": W, *: 0} In(p, +t)') == Rule(
        atom("In", "p", "t"), table, per_constant=("t",)
    )

    pairs = WeightTable(((("A", "1"), Number(2)),))
    assert rule("{(A, 1): 2} In(+p, +t)").weight == pairs


def test_marked_variables_keep_their_order_and_may_be_shifted() -> None:
    read = rule("1 In(+t, x) ^ In(+p, +t) ^ Next(+s+1)")

    assert read.per_constant == ("t", "p", "s")
    last = read.formula.operands[-1]  # type: ignore[union-attr]
    assert last == Atom("Next", (Variable("s", 1),))


def test_conditions_are_separated_by_commas_or_by_and() -> None:
    different = Comparison("!=", Variable("x"), Variable("y"))
    expected = (different, A, Unary("!", B))

    assert rule("1 C(x) where x != y, A(x), !B(x)").where == expected
    assert rule("1 C(x) where x != y ^ A(x) ^ !B(x)").where == expected
    assert rule("C(x) where x != y.") == Rule(C, hard=True, where=(different,))
    assert rule("1 C(x) where (A(x) ^ B(x))").where == (binary("^", A, B),)


# Expressions.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A(x) => B(x) => C(x)", binary("=>", A, binary("=>", B, C))),
        ("A(x) <=> B(x) <=> C(x)", binary("<=>", binary("<=>", A, B), C)),
        ("A(x) <=> B(x) => C(x)", binary("<=>", A, binary("=>", B, C))),
        ("A(x) v B(x) => C(x)", binary("=>", binary("v", A, B), C)),
        ("A(x) ^ B(x) v C(x)", binary("v", binary("^", A, B), C)),
        ("A(x) ^ (B(x) v C(x))", binary("^", A, binary("v", B, C))),
        ("A(x) = B(x) ^ C(x)", binary("^", Comparison("=", A, B), C)),
        ("A(x) + B(x) = C(x)", Comparison("=", binary("+", A, B), C)),
        ("A(x) - B(x) - C(x)", binary("-", binary("-", A, B), C)),
        ("A(x) + B(x) * C(x)", binary("+", A, binary("*", B, C))),
        ("A(x) / B(x) * C(x)", binary("*", binary("/", A, B), C)),
        ("!A(x) * B(x)", binary("*", Unary("!", A), B)),
        ("!!A(x)", Unary("!", Unary("!", A))),
        ("(-A(x)^2)", Unary("-", Power(A, 2))),
        ("A(x)^0.5 ^ B(x)", binary("^", Power(A, 0.5), B)),
        ("A(x)^-1", Power(A, -1)),
        ("A(x) ^ 2", binary("^", A, Number(2))),
        ("A(x) ^B(x)", binary("^", A, B)),
        ("true v false", binary("v", Truth(True), Truth(False))),
        ("2 * -3", binary("*", Number(2), Number(-3))),
        ("2 * -(3)", binary("*", Number(2), Unary("-", Number(3)))),
    ],
)
def test_operators_bind_as_documented(text: str, expected: Expr) -> None:
    assert formula(text) == expected


def test_a_quantifier_reaches_as_far_as_it_can() -> None:
    body = binary("=>", binary("^", A, B), C)
    assert formula("EXIST x A(x) ^ B(x) => C(x)") == Quantified("EXIST", ("x",), body)
    assert formula("A(x) ^ FORALL x, y B(x) v C(x)") == binary(
        "^", A, Quantified("FORALL", ("x", "y"), binary("v", B, C))
    )
    assert formula("exist x A(x) ^ B(x) => C(x)") == formula("EXIST x A(x) ^ B(x) => C(x)")
    assert formula("Exist x A(x)") == formula("EXIST x A(x)")
    assert formula("forall x A(x)") == formula("Forall x A(x)") == formula("FORALL x A(x)")
    assert formula("!EXIST x A(x)") == Unary("!", Quantified("EXIST", ("x",), A))
    assert formula("(EXIST x (A(x))) v B(x)") == binary("v", Quantified("EXIST", ("x",), A), B)


def test_v_is_a_name_where_no_operator_may_stand() -> None:
    assert formula("A(v) v B(v)") == binary("v", atom("A", "v"), atom("B", "v"))
    assert formula("EXIST v A(v) v v != w") == Quantified(
        "EXIST",
        ("v",),
        binary("v", atom("A", "v"), Comparison("!=", Variable("v"), Variable("w"))),
    )


def test_words_in_atoms_are_variables_or_constants_by_their_first_letter() -> None:
    terms = (Variable("door"), Constant("Door"), Constant("door"), Constant("12"), Constant("-1"))

    assert formula('A(door, Door, "door", 12, -1)') == Atom("A", terms)
    assert formula("A(t+1, t-2)") == Atom("A", (Variable("t", 1), Variable("t", -2)))


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("x != y", Variable("x"), Variable("y")),
        ("x = Door", Variable("x"), Constant("Door")),
        ("t < 3", Variable("t"), Constant("3")),
        ("(-3 <= t)", Constant("-3"), Variable("t")),
        ("t = s + 1", Variable("t"), Variable("s", 1)),
        ('x > "3"', Variable("x"), Constant("3")),
        ("A(x) = 3", A, Number(3)),
        ("2 > 3", Number(2), Number(3)),
        ("A(x) >= gdp", A, Atom("gdp")),
        ("gdp = 3", Atom("gdp"), Number(3)),
        ("K = 3", Parameter("K"), Number(3)),
        ("(t) = 3", Atom("t"), Number(3)),
        ("A(x) = x", A, Variable("x")),
    ],
)
def test_comparisons_are_logical_between_terms(text: str, left: Expr, right: Expr) -> None:
    read = parse(f"gdp: real\nconst K = 1\n1 {text}").rules[0].formula

    assert isinstance(read, Comparison)
    assert (read.left, read.right) == (left, right)


def test_a_variable_of_the_rule_is_one_though_a_constant_has_its_name() -> None:
    read = parse("const a = 0.9\n1 In(a, x) ^ a != b => a * y(x) = 0").rules[0].formula

    assert isinstance(read, Operation)
    left, right = read.operands
    assert isinstance(left, Operation)
    assert isinstance(right, Comparison)
    assert left.operands[1] == Comparison("!=", Variable("a"), Variable("b"))
    assert right.left == binary("*", Parameter("a"), atom("y", "x"))


def test_a_comparison_may_have_a_slope() -> None:
    assert formula("(A(x) > 0.05; slope=20)") == Comparison(">", A, Number(0.05), Number(20))


def test_functions_and_densities() -> None:
    assert formula("max(A(x), 2, B(x))") == Call("max", (A, Number(2), B))
    assert formula("normal(A(x) | 2*B(x), q)") == Normal(A, binary("*", Number(2), B), Atom("q"))
    read = formula("gaussian(A(x), B(x); mean=[0, m], cov=[[10, 5], [5, c]])")
    rows = ((Number(10), Number(5)), (Number(5), Parameter("c")))
    assert read == Gaussian((A, B), (Number(0), Parameter("m")), rows)
    assert formula("gaussian(A(x); cov=[[1]])") == Gaussian((A,), (), ((Number(1),),))


# Lines, comments, places.


def test_a_statement_goes_on_in_brackets_after_operators_and_before_where() -> None:
    text = """
        1 A(x) ^   // a comment
            B(x) v
            (C(x)

            )      /* over
                      two lines */

            where x != y,
                x != z
        A(thing)
        """

    model = parse(text)

    assert len(model.rules) == 1
    assert model.rules[0].formula == binary("v", binary("^", A, B), C)
    assert len(model.rules[0].where) == 2
    assert [declared.name for declared in model.predicates] == ["A"]


def test_line_ends_of_all_systems_and_a_byte_order_mark() -> None:
    expected = Model((TypeDeclaration("paper"), TypeDeclaration("topic")))

    for text in ("paper\r\ntopic\r\n", "paper\rtopic", "\ufeffpaper\n\ttopic"):
        assert parse(text) == expected


def test_nothing_is_a_model_without_statements() -> None:
    assert parse("") == parse("\n // nothing \n") == Model()


def test_nodes_know_their_place() -> None:
    model = parse("In(paper)\n  0.5 In(p) ^\n    Out(p+1)", name="a.mln")

    (read,) = model.rules
    assert isinstance(read.formula, Operation)
    places = [read.place, read.formula.place, read.formula.operands[1].place]
    spans = [(p.line, p.column, p.end) for p in places if p is not None]
    assert spans == [(2, 3, 14), (2, 7, 14), (3, 5, 8)]
    assert model.predicates[0].place is not None
    assert model.predicates[0].place.end == 3
    assert model.predicates[0].place.source.name == "a.mln"
    argument = read.formula.operands[1].arguments[0].place  # type: ignore[union-attr]
    assert (argument.column, argument.end) == (9, 12)
