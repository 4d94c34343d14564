"""Folding and expanding change what a formula looks like, never its value."""

import itertools

import numpy as np
import pytest

from hylift.language.lowering.fold import expand, fold
from hylift.language.syntax import (
    Apply,
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
    Place,
    Power,
    Quantified,
    Source,
    Truth,
    Unary,
    Variable,
    binary,
)
from hylift.language.walk import atoms, nodes
from language.formulas import DOOR, TRUTHS, UNLIKE, A, B, Formulas, Values, W, X, Y, value_at

# Known truths put in


def truth_value(value: bool | float) -> bool:
    return isinstance(value, bool | np.bool_)


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.parametrize("kind", ["truth", "constant", "quadratic", "wild"])
def test_folding_never_changes_the_value(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    formula = getattr(Formulas(seed), kind)(3 if kind == "truth" else 2)
    known = {node: bool(rng.integers(2)) for node in TRUTHS if rng.random() < 0.6}

    folded = fold(formula, known)

    assert not any(node in known for node in nodes(folded))
    for _ in range(5):
        values: Values = {node: bool(rng.integers(2)) for node in TRUTHS}
        values |= {X: rng.normal(), Y: rng.normal(), W: 0.7}
        expected = value_at(formula, {**values, **known})
        actual = value_at(folded, values)
        assert float(actual) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)
        assert truth_value(actual) or not truth_value(expected)


@pytest.mark.parametrize("seed", range(80))
def test_a_formula_of_known_truths_is_true_or_false(seed: int) -> None:
    rng = np.random.default_rng(seed)
    formula = Formulas(seed).truth(3)
    known = {node: bool(rng.integers(2)) for node in TRUTHS}

    assert fold(formula, known) == Truth(bool(value_at(formula, dict(known))))


@pytest.mark.parametrize("seed", range(40))
def test_a_truth_is_left_only_where_it_matters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    formula = Formulas(seed).truth(3)
    known = {node: bool(rng.integers(2)) for node in TRUTHS if node != A}

    folded = fold(formula, known)

    # One atom is left, once or more: each time it is there, it may decide.
    assert isinstance(folded, Truth) or set(atoms(folded)) == {A}


ONE, TWO = Number(1.0), Number(2.0)
TRUE, FALSE = Truth(True), Truth(False)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (binary("^", B, DOOR), FALSE),
        (binary("^", A, DOOR), DOOR),
        (binary("v", A, DOOR), TRUE),
        (binary("v", DOOR, B), DOOR),
        (binary("=>", A, DOOR), DOOR),
        (binary("=>", DOOR, A), TRUE),
        (binary("=>", DOOR, B), Unary("!", DOOR)),
        (binary("=>", Unary("!", DOOR), B), DOOR),
        (binary("<=>", DOOR, B), Unary("!", DOOR)),
        (binary("<=>", A, DOOR), DOOR),
        (Unary("!", Unary("!", DOOR)), DOOR),
        (binary("*", B, Call("log", (X,))), Number(0.0)),
        (binary("*", A, X), X),
        (binary("*", A, DOOR), DOOR),
        (binary("*", X, Unary("!", B)), X),
        (binary("+", B, X), X),
        (binary("-", X, B), X),
        (binary("-", B, X), Unary("-", X)),
        (binary("/", B, X), Number(0.0)),
        (binary("/", X, A), X),
        (binary("+", binary("*", B, X), binary("*", A, TWO)), TWO),
        (Unary("-", Unary("-", X)), X),
        (Power(binary("+", A, A), 3.0), Number(8.0)),
        (Power(X, 0.0), ONE),
        (Power(X, 1.0), X),
        (Call("max", (A, TWO)), TWO),
        (Call("max", (X, TWO)), Call("max", (X, TWO))),
        (Call("log", (B,)), Number(-np.inf)),
        (Comparison("=", A, TWO), Number(-1.0)),
        (Comparison("<", A, ONE, binary("*", TWO, A)), Number(-np.log(2.0))),
        (Gaussian((A,), (), ((TWO,),)), Number(-0.25)),
        (Normal(B, B, ONE), Number(-0.5 * np.log(2 * np.pi))),
        (binary("*", A, W), W),
        (binary("^", UNLIKE, DOOR), DOOR),
    ],
)
def test_what_no_longer_matters_goes(formula: Expr, expected: Expr) -> None:
    assert fold(formula, {A: True, B: False, UNLIKE: True}) == expected


def test_what_has_no_value_stays_for_others_to_report() -> None:
    undefined = Call("log", (Number(-1.0),))

    assert fold(undefined, {}) == undefined
    assert fold(binary("*", B, undefined), {B: False}) == Number(0.0)


def test_a_users_function_is_called_once_all_its_truths_are_known() -> None:
    apply = Apply(lambda a, b: np.where(a, 3.0, 4.0) + b, (A, B))

    assert fold(apply, {A: True}) == apply
    assert fold(apply, {A: True, B: True}) == Number(4.0)


def test_a_quantifier_hides_what_is_known_of_its_variables() -> None:
    some = Quantified("EXIST", ("p",), A)
    other = Quantified("FORALL", ("r",), binary("v", A, Atom("C", (Variable("r"),))))

    assert fold(some, {A: True}) == some
    assert fold(other, {A: True}) == TRUE
    assert fold(Quantified("EXIST", ("r",), A), {A: True}) == Quantified("EXIST", ("r",), TRUE)


def test_places_survive() -> None:
    place = Place(Source("<text>", "A(p)"), 1, 1, 5)

    assert fold(Atom("A", (Variable("p"),), place=place), {A: True}).place == place


# Quantifiers written out


def atom(name: str, *arguments: str) -> Atom:
    """Lower case arguments are variables; `t+1` is shifted."""
    terms = []
    for text in arguments:
        name_, plus, shift = text.partition("+")
        is_variable = text[0].islower()
        terms.append(Variable(name_, int(shift) if plus else 0) if is_variable else Constant(text))
    return Atom(name, tuple(terms))


TYPES = {"x": "thing", "y": "thing", "t": "time", "e": "empty"}
CONSTANTS = {"thing": ("C1", "C2"), "time": ("T0", "T1", "T2"), "empty": ()}


def joined(op: str, *parts: Expr) -> Expr:
    return parts[0] if len(parts) == 1 else Operation(op, parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (
            Quantified("EXIST", ("x",), atom("P", "x", "z")),
            joined("v", atom("P", "C1", "z"), atom("P", "C2", "z")),
        ),
        (
            Quantified("FORALL", ("x", "y"), atom("Q", "x", "y")),
            joined(
                "^",
                atom("Q", "C1", "C1"),
                atom("Q", "C1", "C2"),
                atom("Q", "C2", "C1"),
                atom("Q", "C2", "C2"),
            ),
        ),
        (Quantified("EXIST", ("e",), atom("P", "e")), FALSE),
        (Quantified("FORALL", ("e",), atom("P", "e")), TRUE),
        (
            Quantified("EXIST", ("t",), joined("^", atom("P", "t"), atom("P", "t+1"))),
            joined(
                "v",
                joined("^", atom("P", "T0"), atom("P", "T1")),
                joined("^", atom("P", "T1"), atom("P", "T2")),
            ),
        ),
        (
            Quantified("FORALL", ("t",), binary("=>", atom("P", "t+2"), atom("R", "z"))),
            binary("=>", atom("P", "T2"), atom("R", "z")),
        ),
        (Quantified("EXIST", ("t",), atom("P", "t+5")), FALSE),
        (
            binary(
                "*", TWO, Quantified("EXIST", ("x",), Quantified("EXIST", ("x",), atom("P", "x")))
            ),
            binary(
                "*",
                TWO,
                joined("v", *[joined("v", atom("P", "C1"), atom("P", "C2"))] * 2),
            ),
        ),
    ],
)
def test_quantifiers_are_written_out_over_their_type(formula: Expr, expected: Expr) -> None:
    assert expand(formula, CONSTANTS, TYPES) == expected


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons_between_quantified_variables_follow_the_order_of_their_type(op: str) -> None:
    comparison = Comparison(op, Variable("t"), Variable("s"))  # type: ignore[arg-type]
    formula = Quantified("EXIST", ("t",), Quantified("EXIST", ("s",), comparison))

    expanded = expand(formula, {"time": ("Late", "Early")}, {"t": "time", "s": "time"})

    holds = {"=": "TFFT", "!=": "FTTF", "<": "FTFF", "<=": "TTFT", ">": "FFTF", ">=": "TFTT"}
    truths = [Truth(letter == "T") for letter in holds[op]]
    assert expanded == joined("v", joined("v", *truths[:2]), joined("v", *truths[2:]))


def test_comparisons_with_free_variables_or_unknown_constants_wait() -> None:
    free = Comparison("!=", Variable("x"), Variable("z"))
    unknown = Comparison("=", Variable("x"), Constant("C9"))

    expanded = expand(Quantified("EXIST", ("x",), joined("^", free, unknown)), CONSTANTS, TYPES)

    first, second = (
        joined(
            "^",
            Comparison("!=", Constant(name), Variable("z")),
            Comparison("=", Constant(name), Constant("C9")),
        )
        for name in ("C1", "C2")
    )
    assert expanded == joined("v", first, second)


def test_a_long_quantifier_stays_shallow() -> None:
    names = tuple(f"C{i}" for i in range(5000))

    expanded = expand(Quantified("EXIST", ("x",), atom("P", "x")), {"thing": names}, TYPES)

    assert atoms(expanded) == [atom("P", name) for name in names]
    assert fold(expanded, {atom("P", name): False for name in names}) == FALSE


def test_expanding_keeps_the_meaning() -> None:
    body = binary("=>", atom("P", "x"), Quantified("EXIST", ("y",), atom("Q", "x", "y")))
    expanded = expand(Quantified("FORALL", ("x",), body), CONSTANTS, TYPES)
    names = CONSTANTS["thing"]
    ground = atoms(expanded)

    for truths in itertools.product([False, True], repeat=len(ground)):
        values: Values = dict(zip(ground, truths, strict=True))
        expected = all(
            not values[atom("P", x)] or any(values[atom("Q", x, y)] for y in names) for x in names
        )
        assert value_at(expanded, values) == expected


def test_parameters_are_nobodys_business_here() -> None:
    assert fold(binary("+", Parameter("W"), ONE), {}) == binary("+", Parameter("W"), ONE)
