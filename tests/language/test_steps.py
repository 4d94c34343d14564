"""Programs of formulas have the values of the formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as stats

from hylift.graph import FactorGroup
from hylift.inference.local.functions import Part
from hylift.language.lowering.formula import Formula, Slot
from hylift.language.syntax import (
    Apply,
    Call,
    Comparison,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    binary,
)
from hylift.language.walk import atoms, logical_comparisons, nodes
from hylift.potentials import REAL, Function
from hylift.potentials.reduced import Reduced
from language.formulas import DOOR, UNLIKE, WALL, A, B, Formulas, X, Y

SIZE = 300
"""Factors, more than a program takes at a time."""


def function_of(formula: Expr, rng: np.random.Generator) -> Function:
    """A potential with a row per factor, of which some have no weight."""
    found = {*atoms(formula), *logical_comparisons(formula)}
    leaves: dict[Expr, Slot | np.ndarray] = {UNLIKE: rng.random(SIZE) < 0.5}
    slot = 0
    for members, states in (([A], 2), ([B], 2), ([DOOR, WALL], 3), ([X], REAL), ([Y], REAL)):
        for number, atom in enumerate(members):
            state = np.full(SIZE, number) if states == 3 else None
            leaves[atom] = Slot(slot, states, state)
        slot += bool(found & set(members))
    weight = rng.normal(size=SIZE) * (rng.random(SIZE) < 0.8)
    made, rows = Formula.of(formula, weight, {n: leaves[n] for n in found}, {"W": 0.7})
    return Function(made, len(made.states), slot - len(made.states), rows)


def values_of(group: FactorGroup, x: np.ndarray, *, compiled: bool) -> np.ndarray:
    """(factor,): each as a block of its own."""
    (part,) = Part.each([group], np.arange(x.shape[1]) // group.arity)
    assert part.program is not None
    if not compiled:
        part = Part(part.group, part.owner, part.ptr, None, part.parameters)
    return part.sums(x, np.ones((len(x), len(group)), dtype=bool), breaks=False)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", ["truth", "linear", "quadratic", "wild"])
def test_compiled_values_are_those_of_arrays(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    potential = function_of(binary("+", getattr(Formulas(seed), kind)(2), X), rng)
    if potential.program() is None:  # a function of a constant covariance is never one of these
        assert any(isinstance(node, Gaussian) for node in nodes(potential.log_potential.formula))
        return
    arity = len(potential.slot_states)
    group = FactorGroup(potential, np.arange(SIZE * arity, dtype=np.int32).reshape(SIZE, arity))
    x = rng.normal(size=(2, SIZE, arity))
    x[..., : potential.num_discrete] = rng.integers(2, size=(2, SIZE, potential.num_discrete))
    x = x.reshape(2, -1)

    np.testing.assert_allclose(
        values_of(group, x, compiled=True), values_of(group, x, compiled=False), rtol=1e-12
    )


def test_item_response_by_name_is_compiled() -> None:
    rng = np.random.default_rng(0)
    reach = binary("*", X, binary("-", Y, Number(0.3)))
    potential = function_of(Density("bernoulli_logit", A, (reach,)), rng)
    group = FactorGroup(potential, np.arange(3 * SIZE, dtype=np.int32).reshape(SIZE, 3))
    x = rng.normal(size=(1, SIZE, 3))
    x[..., 0] = rng.integers(2, size=SIZE)

    actual = values_of(group, x.reshape(1, -1), compiled=True)[0]

    log_odds = x[0, :, 1] * (x[0, :, 2] - 0.3)
    expected = stats.bernoulli(1 / (1 + np.exp(-log_odds))).logpmf(x[0, :, 0])
    np.testing.assert_allclose(actual, potential.flat[:, 0] * expected, rtol=1e-9)


def test_known_slots_are_columns() -> None:
    rng = np.random.default_rng(0)
    whole = function_of(binary("*", A, Comparison(">", binary("*", X, Y), Number(0.3))), rng)
    known = rng.normal(size=SIZE)
    potential = Reduced(whole, (0, 2), (1,), known[:, None])
    group = FactorGroup(potential, np.arange(2 * SIZE, dtype=np.int32).reshape(SIZE, 2))
    x = rng.normal(size=(1, SIZE, 2))
    x[..., 0] = rng.integers(2, size=SIZE)

    actual = values_of(group, x.reshape(1, -1), compiled=True)[0]

    reach = known * x[0, :, 1] - 0.3
    weight = whole.flat[:, 0] * x[0, :, 0]
    np.testing.assert_allclose(actual, -weight * np.logaddexp(0, -reach), rtol=1e-12)


def test_impossible_values_are_counted_or_stay() -> None:
    rng = np.random.default_rng(0)
    potential = function_of(Normal(X, Number(0.0), binary("*", Y, Y)), rng).with_flat(
        np.ones((1, 1))
    )
    group = FactorGroup(potential, np.array([[0, 1], [2, 3]], dtype=np.int32))
    (part,) = Part.each([group], np.array([0, 0, 1, 1]))
    x, everything = np.array([[1.0, 0.0, 1.0, 2.0]]), np.ones((1, 2), dtype=bool)

    log_density = -1 / 8 - 0.5 * np.log(8 * np.pi)
    np.testing.assert_allclose(part.sums(x, everything, breaks=False), [[-np.inf, log_density]])
    np.testing.assert_array_equal(part.sums(x, everything, breaks=True), [[-1.0, 0.0]])


def test_undefined_values_are_errors_with_the_words_of_the_formula() -> None:
    potential = function_of(Call("log", (X,)), np.random.default_rng(0)).with_flat(np.ones((1, 1)))
    (part,) = Part.each([FactorGroup(potential, np.array([[0]]))], np.array([0]))

    with pytest.raises(ValueError, match=r"log\(X\(p\)\).* is nan"):
        part.sums(np.array([[-1.0]]), np.ones((1, 1), dtype=bool), breaks=False)


def test_a_function_in_python_has_no_program() -> None:
    rng = np.random.default_rng(0)

    assert function_of(binary("+", Apply(np.sin, (X,)), Y), rng).program() is None
