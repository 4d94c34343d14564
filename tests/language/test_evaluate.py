"""The value of an expression is the same in arrays, in forms, and at one point at a time."""

import numpy as np
import pytest

from hylift.errors import ModelError
from hylift.language.lowering.evaluate import NotQuadratic, QuadraticPolynomial, evaluate
from hylift.language.syntax import (
    Apply,
    Call,
    Comparison,
    Expr,
    Gaussian,
    Normal,
    Number,
    Power,
    Quantified,
    Truth,
    Unary,
    binary,
)
from language.formulas import DOOR, REALS, TRUTHS, UNLIKE, A, B, Formulas, W, X, Y, value_at

KINDS = ["truth", "constant", "linear", "quadratic", "wild"]


def arrays(seed: int, size: int = 7) -> dict[Expr, np.ndarray]:
    rng = np.random.default_rng(seed)
    values: dict[Expr, np.ndarray] = {truth: rng.random(size) < 0.5 for truth in TRUTHS}
    values |= {number: rng.normal(size=size) for number in REALS}
    values[W] = np.asarray(0.7)
    return values


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_points_have_the_values_of_the_points(kind: str, seed: int) -> None:
    formula, values = getattr(Formulas(seed), kind)(2), arrays(seed)

    actual = evaluate(formula, values.__getitem__)

    expected = [
        value_at(
            formula,
            {
                node: array.item() if array.ndim == 0 else array[k].item()
                for node, array in values.items()
            },
        )
        for k in range(7)
    ]
    np.testing.assert_allclose(
        np.broadcast_to(np.asarray(actual, dtype=float), 7), np.asarray(expected, dtype=float)
    )
    assert (kind == "truth") == (np.asarray(actual).dtype == np.bool_)


def value(formula: Expr, **given: object) -> np.ndarray:
    """The value with atoms given by predicate."""
    leaves: dict[Expr, object] = {
        node: given[node.predicate] for node in (A, B, X, Y, DOOR) if node.predicate in given
    }
    result = evaluate(formula, leaves.__getitem__)
    assert not isinstance(result, QuadraticPolynomial)
    return result


def test_truths_add_up_as_numbers() -> None:
    both = np.array([True, True, False])

    assert value(binary("+", A, B), A=both, B=~both).tolist() == [1.0, 1.0, 1.0]
    assert value(binary("+", A, A), A=both).tolist() == [2.0, 2.0, 0.0]
    assert value(Unary("-", A), A=both).tolist() == [-1.0, -1.0, 0.0]


@pytest.mark.parametrize(("op", "sign"), [("<", 1), ("<=", 1), (">", -1), (">=", -1)])
def test_a_soft_inequality_is_a_log_sigmoid_at_any_distance(op: str, sign: int) -> None:
    formula = Comparison(op, X, Number(0.0), Number(10.0))  # type: ignore[arg-type]

    values = value(formula, X=np.array([-1e6, -0.1, 0.0, 0.1, 1e6])[::sign])

    close = -np.log1p(np.exp(-1.0)), -np.log(2.0), -np.log1p(np.exp(1.0))
    np.testing.assert_allclose(values, [0.0, *close, -1e7])


def test_a_false_truth_switches_off_what_has_no_value() -> None:
    log = Call("log", (X,))
    off, x = np.array([False, False, True]), np.array([-1.0, 0.0, 1.0])

    assert value(binary("*", A, log), A=off, X=x).tolist() == [0.0, 0.0, 0.0]
    assert value(binary("*", binary("*", Number(2.0), A), log), A=off, X=x).tolist() == [0.0] * 3
    assert value(binary("/", A, X), A=np.array([False]), X=np.array([0.0])).tolist() == [0.0]


def test_what_is_not_defined_is_nan_without_a_warning() -> None:
    assert np.isnan(value(Call("log", (X,)), X=np.array([-1.0]))).all()
    assert np.isnan(value(Power(X, 0.5), X=np.array([-1.0]))).all()
    assert value(Call("exp", (X,)), X=np.array([1e4])).tolist() == [np.inf]


def test_functions_of_forms_that_do_not_vary_are_computed() -> None:
    form = QuadraticPolynomial.slot(0)
    leaf = {X: form, A: np.array([False, True])}.__getitem__
    zero = binary("-", X, X)

    assert np.asarray(evaluate(Call("exp", (zero,)), leaf)) == 1.0
    assert np.asarray(evaluate(Comparison("<", zero, Number(0.0)), leaf)) == -np.log(2.0)
    for formula in (
        Call("abs", (X,)),
        Call("max", (X, Number(0.0))),
        Comparison(">", X, Number(0.0)),
        Normal(Number(0.0), Number(0.0), X),
        binary("*", A, Call("exp", (X,))),
        Apply(np.abs, (X,)),
    ):
        with pytest.raises(NotQuadratic):
            evaluate(formula, leaf)


def test_a_users_function_gets_truths_and_numbers() -> None:
    def f(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.where(a, x, -x)

    assert value(Apply(f, (A, X)), A=np.array([True, False]), X=np.array([1.0, 2.0])).tolist() == [
        1.0,
        -2.0,
    ]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: "no", "must return numbers, not 'no'"),
        (lambda x: None, "must return numbers, not None"),
        (lambda x: np.zeros(3), "returned the shape (3,) for arguments that broadcast to (2,)"),
        (lambda x: x[:, None], "returned the shape (2, 1) for arguments that broadcast to (2,)"),
    ],
)
def test_a_users_function_that_returns_something_else_is_named(function: object, text: str) -> None:
    with pytest.raises(ModelError) as caught:
        value(Apply(function, (X,)), X=np.zeros(2))  # type: ignore[arg-type]

    assert str(caught.value).startswith("the function '<lambda>' ")
    assert text in str(caught.value)


def test_a_covariance_that_is_none_is_refused() -> None:
    one, two = Number(1.0), Number(2.0)
    formula = Gaussian((X, Y), (), ((one, two), (two, one)))

    with pytest.raises(ModelError) as caught:
        value(formula, X=np.zeros(1), Y=np.zeros(1))

    expected = "cov=[[1.0, 2.0], [2.0, 1.0]] of gaussian is not positive definite"
    assert str(caught.value) == expected


def test_numbers_have_no_not_equal() -> None:
    with pytest.raises(ModelError, match="numbers cannot be compared with '!='"):
        value(Comparison("!=", X, Y), X=np.zeros(1), Y=np.zeros(1))


@pytest.mark.parametrize(
    "formula", [Quantified("EXIST", ("p",), A), Unary("!", X), binary("^", A, Number(1.0))]
)
def test_what_cannot_be_evaluated_is_a_mistake_of_the_caller(formula: Expr) -> None:
    with pytest.raises(TypeError):
        value(formula, A=np.array([True]), X=np.array([1.0]))


def test_a_comparison_of_logical_terms_comes_from_its_grounding() -> None:
    truths = evaluate(binary("^", UNLIKE, Truth(True)), {UNLIKE: np.array([True, False])}.get)

    assert np.asarray(truths).tolist() == [True, False]
