"""Formulas become potentials with the same values, of the most specific kind."""

import numpy as np
import pytest

import hylift as hl
from hylift.errors import ModelError
from hylift.language.lowering.formula import Leaf, Slot
from hylift.language.lowering.lower import lower
from hylift.language.syntax import (
    Apply,
    Atom,
    Call,
    Expr,
    Number,
    Power,
    Truth,
    Variable,
    binary,
)
from hylift.potentials import REAL, ConditionalQuadratic, Function, Potential, Table
from language.formulas import (
    DOOR,
    REALS,
    UNLIKE,
    WALL,
    A,
    B,
    Formulas,
    Values,
    W,
    X,
    Y,
    value_at,
)

NUM_ROWS = 3
STATES = (2, 2, 3)
PARAMETERS = {"W": 0.7}


def all_leaves(rng: np.random.Generator, num_rows: int = NUM_ROWS) -> dict[Expr, Leaf]:
    """Slots A, B, Kind, X, Y; the states of Kind and the comparison differ from row to row."""
    return {
        A: Slot(0, 2),
        B: Slot(1, 2),
        DOOR: Slot(2, 3, rng.integers(3, size=num_rows)),
        WALL: Slot(2, 3, rng.integers(3, size=num_rows)),
        X: Slot(3, REAL),
        Y: Slot(4, REAL),
        UNLIKE: rng.integers(2, size=num_rows).astype(bool),
    }


def without_reals(leaves: dict[Expr, Leaf]) -> dict[Expr, Leaf]:
    return {node: leaf for node, leaf in leaves.items() if node not in REALS}


def expected_at(
    formula: Expr, weight: float, leaves: dict[Expr, Leaf], row: int, slots: list[float]
) -> float:
    """weight * formula at one point, by the scalar oracle."""
    values: Values = {W: PARAMETERS["W"]}
    for node, leaf in leaves.items():
        if not isinstance(leaf, Slot):
            values[node] = bool(leaf[row])
        elif leaf.num_states == REAL:
            values[node] = slots[leaf.index]
        else:
            values[node] = bool(slots[leaf.index] == (1 if leaf.state is None else leaf.state[row]))
    return weight * float(value_at(formula, values))


def points(rng: np.random.Generator, num_reals: int, count: int) -> list[np.ndarray]:
    """Per slot: random states or reals."""
    discrete = [rng.integers(size, size=count) for size in STATES]
    return [*discrete, *rng.normal(scale=2.0, size=(num_reals, count))]


def assert_same_values(
    potential: Potential,
    formula: Expr,
    weight: np.ndarray,
    leaves: dict[Expr, Leaf],
    rng: np.random.Generator,
) -> None:
    count = 12
    row = rng.integers(len(weight), size=count)
    slots = points(rng, len(potential.slot_states) - len(STATES), count)

    actual = potential.log_value(row, slots)

    expected = [
        expected_at(formula, weight[r], leaves, r, [slot[k] for slot in slots])
        for k, r in enumerate(row)
    ]
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-8)


# Against the oracle


@pytest.mark.parametrize("seed", range(60))
def test_a_logical_formula_becomes_a_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    formula = Formulas(seed).truth(3)
    leaves, weight = without_reals(all_leaves(rng)), rng.normal(size=NUM_ROWS)

    potential = lower(formula, weight, leaves, parameters=PARAMETERS)

    assert isinstance(potential, Table)
    assert potential.slot_states == STATES
    assert_same_values(potential, formula, weight, leaves, rng)


@pytest.mark.parametrize("seed", range(60))
def test_a_number_without_reals_becomes_a_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    formula = Formulas(seed).constant(2)
    leaves, weight = without_reals(all_leaves(rng)), rng.normal(size=NUM_ROWS)

    potential = lower(formula, weight, leaves, parameters=PARAMETERS)

    assert isinstance(potential, Table)
    assert_same_values(potential, formula, weight, leaves, rng)


@pytest.mark.parametrize("seed", range(120))
def test_a_quadratic_formula_becomes_a_quadratic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    formula = Formulas(seed).quadratic(2)
    leaves, weight = all_leaves(rng), rng.normal(size=NUM_ROWS)

    potential = lower(formula, weight, leaves, parameters=PARAMETERS)

    assert isinstance(potential, ConditionalQuadratic)
    assert potential.slot_states == (*STATES, REAL, REAL)
    assert_same_values(potential, formula, weight, leaves, rng)


@pytest.mark.parametrize("seed", range(120))
def test_any_formula_becomes_a_potential_of_the_same_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    formula = Formulas(seed).wild(2)
    leaves, weight = all_leaves(rng), rng.normal(size=NUM_ROWS)

    potential = lower(formula, weight, leaves, parameters=PARAMETERS)

    assert_same_values(potential, formula, weight, leaves, rng)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["quadratic", "wild"])
def test_evidence_reduces_what_was_lowered_to_the_same_values(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    formula = getattr(Formulas(seed), kind)(2)
    leaves, weight = all_leaves(rng), rng.normal(size=NUM_ROWS)
    potential = lower(formula, weight, leaves, parameters=PARAMETERS)
    observed = tuple(np.flatnonzero(rng.random(5) < 0.5).tolist())
    row, slots = rng.integers(NUM_ROWS, size=8), points(rng, 2, 8)

    values = np.array([slots[slot] for slot in observed]).reshape(len(observed), 8).T
    reduced, new_row = potential.reduce(row, observed, values)

    hidden = [slot for k, slot in enumerate(slots) if k not in observed]
    np.testing.assert_allclose(
        reduced.log_value(new_row, hidden), potential.log_value(row, slots), rtol=1e-8, atol=1e-8
    )


# Rows, slots and kinds


def alone(formula: Expr, leaves: dict[Expr, Leaf], weight: float = 1.0) -> Potential:
    """The potential of one row."""
    return lower(formula, np.array([weight]), leaves, parameters=PARAMETERS)


def test_each_row_has_its_weight_state_and_truth() -> None:
    formula = binary("^", DOOR, UNLIKE)
    leaves: dict[Expr, Leaf] = {
        DOOR: Slot(0, 3, np.array([2, 0, 1])),
        UNLIKE: np.array([True, True, False]),
    }

    table = lower(formula, np.array([1.0, 2.0, 3.0]), leaves, parameters={})

    assert isinstance(table, Table)
    assert table.log_table.tolist() == [[0.0, 0.0, 1.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_atoms_of_one_variable_share_its_slot() -> None:
    other = Atom("X", (Variable("q"),))
    formula = Power(binary("-", X, other), 2.0)

    apart = alone(formula, {X: Slot(0, REAL), other: Slot(1, REAL)})
    same = alone(formula, {X: Slot(0, REAL), other: Slot(0, REAL)})

    assert isinstance(apart, ConditionalQuadratic)
    assert isinstance(same, ConditionalQuadratic)
    assert apart.A.tolist() == [[[1.0, -1.0], [-1.0, 1.0]]]
    assert same.A.tolist() == [[[0.0]]]


def test_states_of_one_variable_exclude_each_other() -> None:
    leaves: dict[Expr, Leaf] = {DOOR: Slot(0, 3, np.array([0])), WALL: Slot(0, 3, np.array([1]))}

    table = alone(binary("+", DOOR, binary("*", Number(5.0), WALL)), leaves)

    assert isinstance(table, Table)
    assert table.log_table.tolist() == [[1.0, 5.0, 0.0]]


def test_a_hard_formula_forbids_what_breaks_it() -> None:
    formula = binary("=>", A, B)

    table = lower(formula, np.ones(2), {A: Slot(0, 2), B: Slot(1, 2)}, parameters={}, hard=True)

    assert isinstance(table, Table)
    assert table.log_table.tolist() == [[[0.0, 0.0], [-np.inf, 0.0]]] * 2


def test_a_formula_without_slots_is_a_constant_per_row() -> None:
    formula = binary("+", UNLIKE, W)

    table = lower(
        formula, np.array([1.0, 2.0]), {UNLIKE: np.array([True, False])}, parameters=PARAMETERS
    )

    assert isinstance(table, Table)
    assert table.log_table.tolist() == pytest.approx([1.7, 1.4])


def test_no_rows_make_an_empty_potential() -> None:
    leaves: dict[Expr, Leaf] = {A: Slot(0, 2), UNLIKE: np.zeros(0, dtype=bool)}

    table = lower(binary("^", A, UNLIKE), np.zeros(0), leaves, parameters={})

    assert isinstance(table, Table)
    assert table.log_table.shape == (0, 2)


def test_slots_that_do_not_matter_stay() -> None:
    quadratic = alone(binary("*", Truth(False), X), {A: Slot(0, 2), X: Slot(1, REAL)})

    assert isinstance(quadratic, ConditionalQuadratic)
    assert quadratic.slot_states == (2, REAL)
    assert not quadratic.A.any()
    assert not quadratic.b.any()
    assert not quadratic.c.any()


def test_slots_out_of_order_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="slots must count from 0, discrete ones first"):
        alone(binary("*", A, X), {X: Slot(0, REAL), A: Slot(1, 2)})


# Functions


def test_what_is_not_quadratic_becomes_a_function_of_its_slots() -> None:
    formula = binary("*", A, Call("exp", (X,)))
    leaves: dict[Expr, Leaf] = {A: Slot(0, 2), X: Slot(1, REAL)}

    function = lower(formula, np.array([2.0, -1.0]), leaves, parameters={})

    assert isinstance(function, Function)
    values = function.log_value(np.array([0, 1, 1]), [np.array([1, 1, 0]), np.zeros(3)])
    assert values.tolist() == [2.0, -1.0, 0.0]


@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_a_function_that_is_switched_off_needs_no_value(weight: float) -> None:
    formula = binary("*", A, Call("log", (X,)))
    function = alone(formula, {A: Slot(0, 2), X: Slot(1, REAL)}, weight)

    switched_off = function.log_value(np.array([0]), [np.array([0]), np.array([-1.0])])

    assert switched_off.tolist() == [0.0]


def test_equal_formulas_make_functions_that_stack() -> None:
    def potential(weight: float, parameter: float, state: int) -> Potential:
        formula = binary("*", binary("*", W, DOOR), Call("abs", (X,)))
        leaves: dict[Expr, Leaf] = {DOOR: Slot(0, 3, np.array([state])), X: Slot(1, REAL)}
        return lower(formula, np.array([weight]), leaves, parameters={"W": parameter})

    one, same, other = potential(1.0, 0.5, 0), potential(2.0, 0.5, 2), potential(1.0, 0.6, 0)

    assert one.signature == same.signature
    assert hash(one.signature) == hash(same.signature)
    assert one.signature != other.signature
    stacked = one.stack([same])
    values = stacked.log_value(np.array([0, 1, 1]), [np.array([0, 0, 2]), np.array([-2.0] * 3)])
    assert values.tolist() == [1.0, 0.0, 2.0]


def test_infinite_coefficients_are_left_to_a_function() -> None:
    formula = binary("*", Call("log", (A,)), X)

    function = alone(formula, {A: Slot(0, 2), X: Slot(1, REAL)})

    assert isinstance(function, Function)
    values = function.log_value(np.array([0]), [np.array([0, 1]), np.array([3.0])])
    assert values.tolist() == [-np.inf, 0.0]


def test_a_users_function_of_reals_stays_a_function() -> None:
    apply = Apply(np.hypot, (X, Y))

    function = alone(apply, {X: Slot(0, REAL), Y: Slot(1, REAL)}, weight=-1.0)

    assert isinstance(function, Function)
    assert function.log_value(np.array([0]), [np.array([3.0]), np.array([4.0])]).tolist() == [-5.0]


def test_a_users_function_of_truths_becomes_a_table() -> None:
    apply = Apply(lambda a, b: np.where(a & ~b, 2.0, 0.5), (A, B))

    table = alone(apply, {A: Slot(0, 2), B: Slot(1, 2)}, weight=2.0)

    assert isinstance(table, Table)
    assert table.log_table.tolist() == [[[1.0, 1.0], [4.0, 1.0]]]


# Errors


def undefined(a: np.ndarray) -> np.ndarray:
    return np.where(a, np.nan, 0.0)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (
            Call("log", (binary("-", A, Number(1.0)),)),
            "the formula 'log(A(p) - 1)' is nan where A(p) is false; a log-potential is a number, "
            "or -inf for what is impossible",
        ),
        (
            binary("+", binary("*", B, X), binary("/", Number(1.0), A)),
            "the formula 'B(p, q) * X(p) + 1 / A(p)' is inf where A(p) is false;",
        ),
        (Call("log", (Number(-1.0),)), "the formula 'log(-1)' is nan;"),
        (Apply(undefined, (A,)), "the formula 'undefined(A(p))' is nan where A(p) is true;"),
        (Apply(lambda a: np.zeros(5), (A,)), "returned the shape (5,) for arguments that"),
    ],
)
def test_a_formula_without_a_value_is_refused_in_its_own_words(formula: Expr, text: str) -> None:
    leaves: dict[Expr, Leaf] = {A: Slot(0, 2), B: Slot(1, 2), X: Slot(2, REAL)}

    with pytest.raises(ModelError) as caught:
        alone(formula, leaves)

    assert text in str(caught.value)


def test_a_function_without_a_value_is_named_by_its_formula() -> None:
    function = alone(Call("log", (X,)), {X: Slot(0, REAL)})

    with pytest.raises(ModelError) as caught:
        function.log_value(np.array([0]), [np.array([-1.0])])

    assert "the formula 'log(X(p))' is nan where X(p) is -1; " in str(caught.value)


def test_a_hidden_variance_of_zero_is_impossible() -> None:
    graph = hl.ground(hl.parse("x: real\nv: real[0, 5]\nnormal(x | 1, v)"))
    (function,) = [group.potential for group in graph.groups]

    found = function.log_value(
        np.array([0]), [np.array([1.5, 1.0, 1.5]), np.array([0.0, 0.0, 2.0])]
    )

    expected = -(0.5**2) / 4 - 0.5 * np.log(4 * np.pi)
    np.testing.assert_allclose(np.ravel(found), [-np.inf, -np.inf, expected])


def test_a_number_cannot_be_hard() -> None:
    with pytest.raises(ModelError) as caught:
        lower(X, np.ones(1), {X: Slot(0, REAL)}, parameters={}, hard=True)

    assert str(caught.value) == (
        "a hard formula is true or false, but 'X(p)' is a number: give it a weight in place of "
        "the period"
    )
