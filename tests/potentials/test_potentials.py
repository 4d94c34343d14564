"""What the constructors of potentials claim, their values at points, and their errors."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from hylift.errors import HyliftError, ModelError
from hylift.potentials import REAL, ConditionalQuadratic, Function, Table
from hylift.potentials.about import QuadraticAbout
from hylift.potentials.quadratic import as_quadratic, as_table

ROW = np.array([0])


def at(potential: ConditionalQuadratic | Table | Function, *slots: float) -> float:
    """The log-value of the first row at one point."""
    return float(potential.log_value(ROW, [np.array([slot]) for slot in slots])[0])


# Tables


def test_a_shared_table_is_indexed_by_its_slots() -> None:
    log_values = np.arange(24.0).reshape(2, 3, 4)
    table = Table.shared(log_values)

    assert table.slot_states == (2, 3, 4)
    assert table.num_rows == 1
    for state in itertools.product(range(2), range(3), range(4)):
        assert at(table, *state) == log_values[state]


def test_a_table_has_a_row_per_factor() -> None:
    table = Table([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])

    values = table.log_value(np.array([2, 0, 1]), [np.array([0, 1, 1])])

    assert values.tolist() == [4.0, 1.0, 3.0]


def test_a_table_from_values_is_their_logarithm() -> None:
    table = Table.from_values([[0.0, 0.25], [1.0, 3.0]])

    expected = [[-np.inf, np.log(0.25)], [0.0, np.log(3.0)]]
    assert table.log_table[0].tolist() == pytest.approx(np.array(expected))


def test_a_weighted_formula_has_its_weight_where_it_holds() -> None:
    assert Table.weighted(1.5, [True, False]).log_table.tolist() == [[1.5, 0.0]]
    assert Table.weighted(np.inf, [1, 0]).log_table.tolist() == [[0.0, -np.inf]]
    assert Table.weighted(-np.inf, [1, 0]).log_table.tolist() == [[-np.inf, 0.0]]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Table([[0.0, np.nan]]), r"a log-table must not contain nan (at index (0, 1))"),
        (lambda: Table([[np.inf, 0.0]]), r"a log-table must not contain inf (at index (0, 0))"),
        (lambda: Table(1.0), "a log-table has a row axis and then one axis of states per slot"),
        (lambda: Table(np.zeros((1, 2, 0))), "not the shape (1, 2, 0)"),
        (lambda: Table.from_values([-0.1]), "values must not be negative or NaN; for logs use sha"),
        (lambda: Table.from_values([np.nan]), "values must not be negative or NaN"),
        (lambda: Table.from_values([np.inf]), "must not contain inf"),
        (lambda: Table.weighted(np.nan, [0, 1]), "must not contain nan"),
        (lambda: Function(np.sin, -1, 2), "a function takes at least one slot, not -1 discrete"),
        (lambda: Function(np.sin), "at least one slot, not 0 discrete and 0 real ones: say num_di"),
        (lambda: Function(np.sin, 0, 1, [1.0]), "a function's parameters must have 2 axes, not 1"),
        (
            lambda: Function(np.sin, 0, 1, [[np.nan]]),
            "a function's parameters must not contain nan",
        ),
    ],
)
def test_a_table_or_function_that_does_not_hold_together_is_refused(make, text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        make()

    assert text in str(refusal.value)


# Conditional quadratics


def test_a_quadratic_is_its_formula_in_every_state() -> None:
    rng = np.random.default_rng(0)
    A, b, c = rng.normal(size=(2, 3, 2, 2)), rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3))
    potential = ConditionalQuadratic(A, b, c)

    assert potential.slot_states == (3, REAL, REAL)
    for row, state in itertools.product(range(2), range(3)):
        x = rng.normal(size=2)
        value = potential.log_value(np.array([row]), [np.array([state]), *x[:, None]])
        expected = x @ A[row, state] @ x + b[row, state] @ x + c[row, state]
        assert value[0] == pytest.approx(expected, abs=1e-12)


def test_an_asymmetric_matrix_is_made_symmetric() -> None:
    potential = ConditionalQuadratic.shared([[1.0, 4.0], [0.0, 2.0]], [0.0, 0.0])

    assert potential.A[0].tolist() == [[1.0, 2.0], [2.0, 2.0]]
    assert at(potential, 3.0, 5.0) == pytest.approx(9 + 4 * 15 + 2 * 25)


def test_squares_products_and_distances_are_what_they_say() -> None:
    assert at(ConditionalQuadratic.square(-0.3), 2.0) == pytest.approx(-1.2)
    assert at(ConditionalQuadratic.product(0.7), 2.0, -3.0) == pytest.approx(-4.2)
    distance = ConditionalQuadratic.squared_distance(0.2, [2.0, -1.0], 3.0)
    assert at(distance, 1.5, -0.5) == pytest.approx(-0.2 * (2 * 1.5 + 0.5 - 3.0) ** 2)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_gaussian_is_its_log_density(size: int) -> None:
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    mean, cov = rng.normal(size=size), root @ root.T + 0.1 * np.eye(size)
    x = rng.normal(size=size)

    normalised = at(ConditionalQuadratic.gaussian(mean, cov), *x)
    bare = at(ConditionalQuadratic.gaussian(mean, cov, normalised=False), *x)

    assert normalised == pytest.approx(stats.multivariate_normal(mean, cov).logpdf(x), abs=1e-10)
    assert bare == pytest.approx(-0.5 * (x - mean) @ np.linalg.inv(cov) @ (x - mean), abs=1e-10)


def test_a_normalised_gaussian_integrates_to_one() -> None:
    potential = ConditionalQuadratic.gaussian([[1.0], [-2.0]], [[[0.5]], [[3.0]]])

    for state in (0, 1):
        total, _ = integrate.quad(lambda x, s=state: np.exp(at(potential, s, x)), -30, 30)
        assert total == pytest.approx(1.0, abs=1e-10)


def test_a_gaussian_may_be_given_by_scalars() -> None:
    assert at(ConditionalQuadratic.gaussian(2.0, 0.5), 1.0) == pytest.approx(
        stats.norm(2.0, np.sqrt(0.5)).logpdf(1.0)
    )


def test_a_linear_gaussian_is_the_log_density_of_its_first_slot() -> None:
    potential = ConditionalQuadratic.linear_gaussian([2.0, -1.0], 0.3, offset=0.7)

    expected = stats.norm(2.0 * 0.4 - 1.0 * 1.1 + 0.7, np.sqrt(0.3)).logpdf(0.9)
    assert at(potential, 0.9, 0.4, 1.1) == pytest.approx(expected)


def test_a_switch_selects_a_case() -> None:
    cases = [
        ConditionalQuadratic.square(-1.0),
        ConditionalQuadratic.squared_distance(2.0, [1.0], 3),
    ]

    potential = ConditionalQuadratic.switch(cases)

    assert potential.slot_states == (2, REAL)
    for state, case in enumerate(cases):
        assert at(potential, state, 1.7) == pytest.approx(at(case, 1.7))


def test_a_switch_of_switches_has_the_new_slot_first() -> None:
    inner = ConditionalQuadratic.gaussian([[0.0], [1.0], [2.0]], [[[1.0]]] * 3)
    outer = ConditionalQuadratic.switch([inner, inner])

    assert outer.slot_states == (2, 3, REAL)
    assert at(outer, 1, 2, 0.4) == pytest.approx(at(inner, 2, 0.4))


def test_a_gate_multiplies_by_a_number_per_joint_state() -> None:
    whole = ConditionalQuadratic.gaussian([[1.0], [2.0]], [[[1.0]], [[2.0]]])
    gate = np.array([[0.0, 0.5, 1.0], [2.0, -1.0, 3.0]])

    potential = whole.times(gate)

    assert potential.slot_states == (2, 3, 2, REAL)
    for i, j, state in itertools.product(range(2), range(3), range(2)):
        assert at(potential, i, j, state, 0.3) == pytest.approx(gate[i, j] * at(whole, state, 0.3))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: ConditionalQuadratic([[[np.nan]]], [[0.0]], [0.0]),
            "A of a quadratic must not contain nan (at index (0, 0, 0))",
        ),
        (
            lambda: ConditionalQuadratic([[[1.0]]], [[np.inf]], [0.0]),
            "b of a quadratic must not contain inf",
        ),
        (
            lambda: ConditionalQuadratic([[[1.0]]], [[0.0]], [np.inf]),
            "c of a quadratic must not contain inf",
        ),
        (
            lambda: ConditionalQuadratic(np.zeros((1, 2, 2)), np.zeros((1, 3)), np.zeros(1)),
            "A, b and c of a quadratic disagree: shapes (1, 2, 2), (1, 3), (1,)",
        ),
        (
            lambda: ConditionalQuadratic(np.zeros((1, 0, 0)), np.zeros((1, 0)), np.zeros(1)),
            "at least one real slot, not the shapes (1, 0, 0), (1, 0), (1,) of A, b, c",
        ),
        (
            lambda: ConditionalQuadratic.gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]),
            "a covariance must be positive definite, which [[1.0, 2.0], [2.0, 1.0]] is not",
        ),
        (lambda: ConditionalQuadratic.gaussian(0.0, 0.0), "must be positive definite"),
        (
            lambda: ConditionalQuadratic.gaussian([0.0, 0.0], [[1.0, 0.3], [0.0, 1.0]]),
            "a covariance for 2 slots is a finite symmetric matrix of that size",
        ),
        (
            lambda: ConditionalQuadratic.gaussian([0.0, 0.0], [[1.0]]),
            "a covariance for 2 slots is a finite symmetric matrix of that size, not [[1.0]]",
        ),
        (lambda: ConditionalQuadratic.gaussian([0.0], [[np.nan]]), "a covariance for 1 slots"),
        (lambda: ConditionalQuadratic.gaussian([np.nan], [[1.0]]), "must not contain nan"),
        (
            lambda: ConditionalQuadratic.linear_gaussian([1.0], 0.0),
            "a linear Gaussian link needs a finite positive variance, not 0.0",
        ),
        (lambda: ConditionalQuadratic.linear_gaussian([1.0], np.nan), "positive variance, not nan"),
        (lambda: ConditionalQuadratic.switch([]), "the cases of a switch must have the same slots"),
        (
            lambda: ConditionalQuadratic.switch(
                [ConditionalQuadratic.square(1.0), ConditionalQuadratic.product(1.0)]
            ),
            "the same slots, not [(1, 1, 1), (1, 2, 2)] of A",
        ),
    ],
)
def test_a_quadratic_that_does_not_hold_together_is_refused(make, text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        make()

    assert text in str(refusal.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConditionalQuadratic.gaussian(np.zeros(3), np.ones((2, 3))),
        lambda: ConditionalQuadratic.shared([[1.0]], [1.0], [0.0, 0.0]),
    ],
    ids=["rectangular covariance", "a constant per state without states"],
)
def test_shapes_that_do_not_fit_are_an_error_of_the_model(make) -> None:
    with pytest.raises(HyliftError):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConditionalQuadratic.linear_gaussian([1.0], np.inf),
        lambda: ConditionalQuadratic.gaussian([0.0], [[np.inf]]),
    ],
    ids=["linear", "joint"],
)
def test_an_infinite_variance_is_refused(make) -> None:
    with pytest.raises(ModelError):
        make()


def test_a_gate_of_zero_switches_off_an_impossible_state() -> None:
    impossible = ConditionalQuadratic.shared([[-1.0]], [0.0], -np.inf)

    potential = impossible.times([0, 1])

    assert potential.c.tolist() == [[0.0, -np.inf]]


def test_a_mean_per_state_may_share_one_covariance() -> None:
    potential = ConditionalQuadratic.gaussian([[0.0], [2.0]], [[0.5]])

    assert at(potential, 1, 1.7) == pytest.approx(stats.norm(2.0, np.sqrt(0.5)).logpdf(1.7))


# Functions


def test_a_function_gets_its_slots_and_then_its_parameters() -> None:
    potential = Function(lambda x, y, height: height * (x - y), 0, 2, np.array([[2.0], [3.0]]))

    values = potential.log_value(np.array([1, 0]), [np.array([5.0, 7.0]), np.array([1.0, 1.0])])

    assert potential.slot_states == (REAL, REAL)
    assert values.tolist() == [12.0, 12.0]


def test_a_function_may_return_less_than_it_was_asked_for() -> None:
    constant = Function(lambda x: np.float64(0.5), num_reals=1)

    assert constant.log_value(np.zeros(3, dtype=int), [np.zeros(3)]).tolist() == [0.5] * 3


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (np.nan, "the potential 'answer' returned nan at [1.5]"),
        (np.inf, "the potential 'answer' returned inf at [1.5]"),
        (
            np.zeros(4),
            "the potential 'answer' returned the shape (4,) for arguments that broadcast",
        ),
    ],
)
def test_a_function_that_returns_what_it_may_not_is_quoted(result: object, text: str) -> None:
    def answer(x: np.ndarray) -> object:
        return result

    with pytest.raises(ModelError) as refusal:
        at(Function(answer, num_reals=1), 1.5)

    assert text in str(refusal.value)


# All kinds


def test_parameters_cannot_be_written() -> None:
    table = Table.shared(np.zeros(2))
    quadratic = ConditionalQuadratic.square(-1.0)
    function = Function(np.sin, 0, 1, np.zeros((1, 1)))

    arrays = [table.log_table, quadratic.A, quadratic.b, quadratic.c, function.parameters]

    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_making_a_potential_leaves_the_given_array_writable() -> None:
    given = np.zeros((1, 2))

    Table(given)

    given[0, 0] = 1.0


@pytest.mark.parametrize(
    "potential",
    [
        Table(np.arange(6.0).reshape(3, 2)),
        ConditionalQuadratic(np.arange(3.0).reshape(3, 1, 1), np.ones((3, 1)), np.arange(3.0)),
        Function(lambda x, p: x + p, 0, 1, np.arange(3.0).reshape(3, 1)),
    ],
    ids=["table", "quadratic", "function"],
)
def test_stack_and_take_move_rows(potential: Table | ConditionalQuadratic | Function) -> None:
    slots = [np.array([1, 1, 1, 1])]

    stacked = potential.stack([potential.take(np.array([2, 0]))])

    assert stacked.num_rows == 5
    assert stacked.signature == potential.signature
    values = stacked.log_value(np.array([0, 2, 3, 4]), slots)
    expected = potential.log_value(np.array([0, 2, 2, 0]), slots)
    assert values.tolist() == expected.tolist()


def test_signatures_tell_potentials_apart_that_cannot_be_stacked() -> None:
    potentials = [
        Table.shared([0.0, 0.0]),
        Table.shared([0.0, 0.0, 0.0]),
        ConditionalQuadratic.square(1.0),
        ConditionalQuadratic.product(1.0),
        ConditionalQuadratic.square(1.0).times([0, 1]),
        Function(np.sin, 1),
        Function(np.sin, 0, 1),
        Function(np.cos, 0, 1),
        Function(np.sin, 0, 1, np.zeros((1, 1))),
    ]

    assert len({potential.signature for potential in potentials}) == len(potentials)


# Parameters per factor


def test_links_and_weights_may_differ_from_factor_to_factor() -> None:
    link = ConditionalQuadratic.linear_gaussian([[1.0], [2.0]], [0.5, 0.1], [0.0, 3.0])
    table = Table.weighted([1.5, np.inf], [False, True])

    y, x = np.array([1.0, 4.0]), np.array([0.3, 0.7])

    expected = stats.norm([0.3, 2 * 0.7 + 3.0], np.sqrt([0.5, 0.1])).logpdf(y)
    assert link.log_value(np.array([0, 1]), [y, x]) == pytest.approx(expected, abs=1e-12)
    assert table.log_table.tolist() == [[0.0, 1.5], [-np.inf, 0.0]]


def test_parameters_of_different_lengths_are_refused() -> None:
    with pytest.raises(ModelError, match="2 weights, 1 rows of coefficients and 3 targets"):
        ConditionalQuadratic.squared_distance([1.0, 2.0], [1.0], [1.0, 2.0, 3.0])


def test_closed_forms_depend_on_what_a_potential_says_not_on_its_class() -> None:
    table = Table(np.array([[[0.0, -np.inf], [1.0, 2.0]]]))
    quadratic = ConditionalQuadratic.square(-1.0).times([0.0, 1.0])
    one = np.ones((1, 1))
    far = QuadraticAbout(2 * one, -one[..., None], 0 * one, np.zeros(1))
    wave = Function(np.sin, num_reals=1)

    assert as_table(table) is table
    assert as_quadratic(quadratic) is quadratic
    assert [as_table(other) for other in (quadratic, far, wave)] == [None] * 3
    assert [as_quadratic(other) for other in (table, wave)] == [None] * 2
    found = as_quadratic(far)
    assert found is not None
    x = np.linspace(-3.0, 3.0, 7)
    row = np.zeros(7, dtype=np.int32)
    np.testing.assert_allclose(found.log_value(row, [x]), far.log_value(row, [x]), atol=1e-10)
