"""Potentials of too many numbers are refused before they fill the memory."""

import numpy as np
import pytest

from hylift.errors import ModelError
from hylift.language.lowering.formula import Slot
from hylift.language.lowering.lower import lower
from hylift.language.syntax import Atom, Expr, Variable, binary


def test_a_formula_over_too_many_variables_is_refused() -> None:
    many = [Atom(f"P{i}") for i in range(23)]
    formula: Expr = many[0]
    for atom in many[1:]:
        formula = binary("<=>", formula, atom)

    with pytest.raises(ModelError) as caught:
        lower(formula, np.ones(1), {atom: Slot(i, 2) for i, atom in enumerate(many)}, parameters={})

    assert (
        "is a potential of 8,388,608 numbers over 23 variables, more than the maximum of 4,194,304"
        in str(caught.value)
    )
    assert "the formula 'P0 <=> P1 <=>" in str(caught.value)


def test_rows_and_states_together_are_refused() -> None:
    num_states = 10_000
    kind = Atom("Kind", (Variable("s"), Variable("k")))
    slot = Slot(0, num_states, np.arange(num_states))

    with pytest.raises(ModelError) as caught:
        lower(kind, np.ones(num_states), {kind: slot}, parameters={})

    assert str(caught.value) == (
        "the formula 'Kind(s, k)' is 10,000 potentials of 10,000 numbers each, more than the "
        "67,108,864 numbers that are possible in all: restrict its groundings with constants or "
        "'where', or list fewer constants"
    )


def test_a_size_that_is_too_long_to_read_is_rounded() -> None:
    many = [Atom(f"P{i}") for i in range(60)]
    formula: Expr = many[0]
    for atom in many[1:]:
        formula = binary("<=>", formula, atom)

    with pytest.raises(ModelError, match=r"is a potential of about 10\^18 numbers over 60"):
        lower(formula, np.ones(1), {atom: Slot(i, 2) for i, atom in enumerate(many)}, parameters={})
