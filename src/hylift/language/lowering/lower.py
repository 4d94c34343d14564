"""Formulas -> potentials: a table, a conditional quadratic, or else a function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.language.lowering.evaluate import (
    NotQuadratic,
    QuadraticForm,
    TruthArray,
    Value,
    as_form,
    as_number,
    evaluate,
    product,
)
from hylift.language.syntax import Atom, Comparison, Expr, Parameter
from hylift.language.text.formatter import shown
from hylift.language.walk import atoms, logical_comparisons, nodes
from hylift.potentials import REAL, ConditionalQuadratic, Function, Potential, Table
from hylift.potentials.base import FloatArray, IntArray
from hylift.words import Wording, worded

MAX_QUOTED = 200
"""Maximum number of characters of a formula in an error."""

MAX_ENTRIES = 2**22
"""Maximum number of entries per row of a table or quadratic."""

MAX_NUMBERS = 2**26
"""Maximum number of entries of all rows together."""


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The slot of an atom in the factor; atoms of one variable share the slot."""

    index: int
    num_states: int  # REAL for a real
    state: IntArray | None = None
    """(row,): the state of a categorical variable that makes the atom true; None for others."""


Leaf = Slot | TruthArray | FloatArray
"""The slot of an atom, or (row,): a truth value or a known real per parameter row."""


def lower(
    formula: Expr,
    weight: FloatArray,
    leaves: Mapping[Expr, Leaf],
    *,
    parameters: Mapping[str, float],
    hard: bool = False,
) -> Potential:
    """The potential weight * formula, with a row per weight; hard: 0 where it holds, else -inf.

    formula: without quantifiers. leaves: all its atoms and comparisons of logical terms; slots
    count from 0, discrete ones before reals. The potential is of the most specific kind: a
    function only if the formula is not quadratic in its reals.
    """
    grid = _Grid.of(formula, len(weight), leaves, parameters)
    _check_size(grid)
    try:
        return grid.potential(weight, hard)
    except NotQuadratic:
        return _function(formula, weight, leaves, parameters, grid)


def _check_size(grid: _Grid) -> None:
    """Raises if the potential would have too many entries."""
    entries = grid.num_entries
    if entries > MAX_ENTRIES:
        raise ModelError(
            f"the formula '{_shortened(shown(grid.formula))}' is a potential of "
            f"{_count(entries)} numbers over {len(grid.states) + grid.num_reals} variables, "
            f"more than the {MAX_ENTRIES:,} that are possible",
            worded(
                "close some of its predicates (",
                Wording("closed=…", "--closed"),
                "), quantify over fewer constants, or split it into smaller formulas",
            ),
        )
    if grid.num_rows * entries > MAX_NUMBERS:
        raise ModelError(
            f"the formula '{_shortened(shown(grid.formula))}' is {grid.num_rows:,} potentials of "
            f"{entries:,} numbers each, more than the {MAX_NUMBERS:,} numbers that are possible in "
            "all: restrict its groundings with constants or 'where', or list fewer constants"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """A formula over all rows and joint states: its arrays are (row, states of slot 0, ...)."""

    formula: Expr
    num_rows: int
    states: tuple[int, ...]
    num_reals: int
    leaves: Mapping[Expr, Leaf]
    parameters: Mapping[str, float]

    @classmethod
    def of(
        cls,
        formula: Expr,
        num_rows: int,
        leaves: Mapping[Expr, Leaf],
        parameters: Mapping[str, float],
    ) -> _Grid:
        sizes = {leaf.index: leaf.num_states for leaf in leaves.values() if isinstance(leaf, Slot)}
        states = tuple(sizes[index] for index in sorted(sizes) if sizes[index] != REAL)
        discrete_first = all((sizes[i] == REAL) == (i >= len(states)) for i in sizes)
        if sorted(sizes) != list(range(len(sizes))) or not discrete_first:
            raise ValueError(f"slots must count from 0, discrete ones first: {sizes}")
        return cls(formula, num_rows, states, len(sizes) - len(states), leaves, parameters)

    @property
    def num_entries(self) -> int:
        """Numbers per row of the potential."""
        return math.prod(self.states) * (1 + self.num_reals + self.num_reals**2)

    def potential(self, weight: FloatArray, hard: bool) -> Table | ConditionalQuadratic:
        """weight * formula, or `NotQuadratic`."""
        form = self.weighted(weight, hard)
        if not self.num_reals:
            return Table(self.spread(form, ()))
        return _quadratic(form, self)

    def weighted(self, weight: FloatArray, hard: bool) -> QuadraticForm:
        """weight * formula as a quadratic form, or `NotQuadratic`."""
        value = evaluate(self.formula, self.leaf)
        if hard:
            if isinstance(value, QuadraticForm) or value.dtype != np.bool_:
                raise ModelError(
                    f"a hard formula is true or false, but '{shown(self.formula)}' is a number: "
                    "give it a weight in place of the period"
                )
            form = as_form(np.where(value, 0.0, -np.inf))
        else:
            with np.errstate(all="ignore"):
                form = as_form(as_number(value)) * self._rows(weight).astype(np.float64)
        self._check_constant(form.coefficients.get(()))
        if not all(np.isfinite(array).all() for m, array in form.coefficients.items() if m):
            raise NotQuadratic
        return form

    def leaf(self, node: Expr) -> Value:
        """The values of an atom, comparison or parameter, broadcast over the grid."""
        if isinstance(node, Parameter):
            return np.asarray(self.parameters[node.name], dtype=np.float64)
        leaf = self.leaves[node]
        if not isinstance(leaf, Slot):
            return self._rows(leaf)
        if leaf.num_states == REAL:
            return QuadraticForm.slot(leaf.index - len(self.states))
        shape = [1] * (1 + len(self.states))
        shape[1 + leaf.index] = leaf.num_states
        states = np.arange(leaf.num_states).reshape(shape)
        return np.asarray(states == (1 if leaf.state is None else self._rows(leaf.state)))

    def spread(self, form: QuadraticForm, monomial: tuple[int, ...]) -> FloatArray:
        """(row, states...): one coefficient of a form over the whole grid."""
        coefficient = form.coefficients.get(monomial, np.zeros(()))
        return np.broadcast_to(coefficient, (self.num_rows, *self.states)).copy()

    def _rows(self, per_row: NDArray[Any]) -> NDArray[Any]:
        """Values (row,) along the first axis; a single one if all rows are equal."""
        values = np.asarray(per_row)
        if len(values) > 1 and (values == values[0]).all():
            values = values[:1]
        return values.reshape((-1,) + (1,) * len(self.states))

    def _check_constant(self, constant: FloatArray | None) -> None:
        """Raises if the formula is NaN or inf where it does not depend on reals."""
        if constant is None:
            return
        bad = np.isnan(constant) | (constant == np.inf)
        if not bad.any():
            return
        full = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, (1,) * (1 + len(self.states))))
        at = tuple(np.argwhere(full)[0])
        value = np.broadcast_to(constant, full.shape)[at]
        held = (self._held(node, at, full.shape) for node in _leaf_nodes(self.formula))
        where = " and ".join(filter(None, held))
        raise ModelError(
            f"the formula '{shown(self.formula)}' is {value}{f' where {where}' if where else ''}; "
            "a log-potential is a number, or -inf for what is impossible"
        )

    def _held(self, node: Expr, at: tuple[np.intp, ...], shape: tuple[int, ...]) -> str:
        """`In(p, t) is true`, `x(p) is 0.5` at a point of the grid; empty if it does not vary."""
        value = self.leaf(node)
        if isinstance(value, QuadraticForm) or any(np.greater(value.shape, shape)):
            return ""
        # An axis of length 1 stands for all of its positions.
        point = tuple(i if size > 1 else 0 for i, size in zip(at, value.shape, strict=True))
        if value.dtype != np.bool_:
            return f"{shown(node)} is {value[point]:g}"
        return f"{shown(node)} is {'true' if value[point] else 'false'}"


def _quadratic(form: QuadraticForm, grid: _Grid) -> ConditionalQuadratic:
    reals = range(grid.num_reals)
    b = np.stack([grid.spread(form, (i,)) for i in reals], axis=-1)
    A = np.zeros((*b.shape, grid.num_reals))
    for i in reals:
        A[..., i, i] = grid.spread(form, (i, i))
        for j in range(i):
            A[..., i, j] = A[..., j, i] = grid.spread(form, (j, i)) / 2
    return ConditionalQuadratic(A, b, grid.spread(form, ()))


@dataclass(frozen=True, slots=True)
class _Source:
    """The positions of a leaf's values among the arguments of a `Formula`."""

    slot: int | None = None  # None: a truth value of the parameter row
    is_real: bool = False
    column: int | None = None
    """The truth value, or the state that makes a categorical atom true; None for others."""

    def value(self, arguments: tuple[NDArray[Any], ...]) -> NDArray[Any]:
        if self.slot is None:
            assert self.column is not None  # a leaf has a slot, a column or both
            return arguments[self.column] != 0
        if self.is_real:
            return arguments[self.slot]
        return arguments[self.slot] == (1 if self.column is None else arguments[self.column])


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula times its weight as a function of slots and parameters, for `Function`.

    Call it with the slots, the weight, then the states and truth values of each row.
    """

    formula: Expr
    sources: tuple[tuple[Expr, _Source], ...]
    states: tuple[int, ...]
    """Of the discrete slots."""
    num_slots: int
    parameters: tuple[tuple[str, float], ...] = ()

    def __call__(self, *arguments: NDArray[Any]) -> FloatArray:
        values = {node: source.value(arguments) for node, source in self.sources}
        values |= {Parameter(name): np.asarray(value) for name, value in self.parameters}
        value = as_number(evaluate(self.formula, values.__getitem__))
        assert not isinstance(value, QuadraticForm)  # none of its arguments is
        with np.errstate(all="ignore"):
            return product(arguments[self.num_slots], value)

    def given(self, parameters: FloatArray, fixed: tuple[int, ...]) -> Potential | None:
        """The table or quadratic that remains if some slots are known; None if it is neither.

        So `normal(y(r) | a + b * x(r), 1)` is quadratic in a and b if x is observed.
        """
        free = [slot for slot in range(self.num_slots) if slot not in fixed]
        num_own = parameters.shape[1] - len(fixed)
        column = {self.num_slots + place: parameters[:, place] for place in range(num_own)}
        column |= {slot: parameters[:, num_own + place] for place, slot in enumerate(fixed)}
        leaves = {node: self._leaf(source, column, free) for node, source in self.sources}
        states = tuple(self.states[slot] for slot in free if slot < len(self.states))
        num_reals = len(free) - len(states)
        grid = _Grid(
            self.formula, len(parameters), states, num_reals, leaves, dict(self.parameters)
        )
        if grid.num_entries > MAX_ENTRIES or grid.num_rows * grid.num_entries > MAX_NUMBERS:
            return None
        try:
            return grid.potential(parameters[:, 0], hard=False)
        except NotQuadratic:
            return None

    def _leaf(self, source: _Source, column: Mapping[int, FloatArray], free: list[int]) -> Leaf:
        """The leaf of an atom if the slots in `column` are known."""
        given = None if source.column is None else column[source.column]
        if source.slot is None:
            assert given is not None  # a leaf has a slot, a column or both
            return given != 0
        if source.slot in free:
            num_states = REAL if source.is_real else self.states[source.slot]
            state = None if given is None else given.astype(np.int64)
            return Slot(free.index(source.slot), num_states, state)
        known = column[source.slot]
        return known if source.is_real else known == (1 if given is None else given)

    def __str__(self) -> str:
        return shown(self.formula)


def _function(
    formula: Expr,
    weight: FloatArray,
    leaves: Mapping[Expr, Leaf],
    parameters: Mapping[str, float],
    grid: _Grid,
) -> Function:
    num_slots = len(grid.states) + grid.num_reals
    columns = [np.asarray(weight, dtype=np.float64)]
    sources: list[tuple[Expr, _Source]] = []
    for node in _leaf_nodes(formula):
        leaf = leaves[node]
        slot, given = (leaf.index, leaf.state) if isinstance(leaf, Slot) else (None, leaf)
        is_real = isinstance(leaf, Slot) and leaf.num_states == REAL
        column = None if given is None else num_slots + len(columns)
        sources.append((node, _Source(slot, is_real, column)))
        if given is not None:
            columns.append(np.asarray(given, dtype=np.float64))
    used = {node.name for node in nodes(formula) if isinstance(node, Parameter)}
    called = Formula(
        formula,
        tuple(sources),
        grid.states,
        num_slots,
        tuple((name, float(parameters[name])) for name in sorted(used)),
    )
    return Function(called, len(grid.states), grid.num_reals, np.stack(columns, axis=1))


def _leaf_nodes(formula: Expr) -> list[Atom | Comparison]:
    return [*atoms(formula), *logical_comparisons(formula)]


def _count(number: int) -> str:
    """The number, or its order of magnitude if it is too long to read."""
    return f"{number:,}" if number < 10**15 else f"about 10^{math.log10(number):.0f}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
