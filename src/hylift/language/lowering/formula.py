"""Formulas over the slots of factors, and their values over all joint states of these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.language.lowering.evaluate import (
    NotQuadratic,
    QuadraticPolynomial,
    TruthArray,
    Value,
    as_form,
    as_number,
    evaluate,
    product,
)
from hylift.language.lowering.faults import MAX_ENTRIES, MAX_NUMBERS, check_constant, quoted
from hylift.language.lowering.steps import Steps, steps_of
from hylift.language.syntax import Expr, Parameter
from hylift.language.text.formatter import shown
from hylift.language.walk import atoms, conditioning_variables, logical_comparisons, nodes
from hylift.numerics.kernels.programs import COLUMN, EQUAL, NOT, NUMBER, SLOT, TIMES
from hylift.numerics.programs import Program
from hylift.potentials import REAL, ConditionalQuadratic, Potential, Table
from hylift.potentials.about import FAR, QuadraticAbout
from hylift.potentials.base import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The slot of an atom in the factor; atoms of one variable share the slot."""

    index: int
    num_states: int  # REAL for a real
    state: IntArray | None = None
    """(row,): the state of a categorical variable that makes the atom true; None for others."""
    is_whole: bool = False
    """True for the state of a categorical variable itself."""


Leaf = Slot | TruthArray | IntArray
"""The slot of an atom, or (row,): per parameter row a truth value, or the constant of a variable
that is looked up in a table."""


@dataclass(frozen=True, slots=True)
class Source:
    """The positions of a leaf's values among the arguments of a `Formula`."""

    slot: int | None = None  # None: a truth value of the parameter row
    is_real: bool = False
    column: int | None = None
    """The truth value, or the state that makes a categorical atom true; None for others."""
    is_state: bool = False
    """True for a state by its number, or a constant by its position."""

    def value(self, stated: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
        """The value of the leaf; stated: of its slot, given: in its column."""
        if self.slot is None:
            return given if self.is_state else np.not_equal(given, 0)
        return stated if self.is_real or self.is_state else np.equal(stated, given)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula times its weight as a function of slots and parameters, for `Function`.

    Call it with the slots, the weight, then the states and truth values of each row.
    """

    formula: Expr
    sources: tuple[tuple[Expr, Source], ...]
    states: tuple[int, ...]
    """Of the discrete slots."""
    num_slots: int
    parameters: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(
        cls,
        formula: Expr,
        weight: FloatArray,
        leaves: Mapping[Expr, Leaf],
        parameters: Mapping[str, float],
    ) -> tuple[Formula, FloatArray]:
        """With its parameters (row, column): the weight, then states and truth values."""
        sizes = {leaf.index: leaf.num_states for leaf in leaves.values() if isinstance(leaf, Slot)}
        states = tuple(sizes[index] for index in sorted(sizes) if sizes[index] != REAL)
        discrete_first = all((sizes[i] == REAL) == (i >= len(states)) for i in sizes)
        if sorted(sizes) != list(range(len(sizes))) or not discrete_first:
            raise ValueError(f"slots must count from 0, discrete ones first: {sizes}")
        columns: list[NDArray[Any]] = [weight]
        sources: list[tuple[Expr, Source]] = []
        looked_up = conditioning_variables(formula)
        for node in [*atoms(formula), *logical_comparisons(formula), *looked_up]:
            leaf = leaves[node]
            slot, given = (leaf.index, leaf.state) if isinstance(leaf, Slot) else (None, leaf)
            is_real = isinstance(leaf, Slot) and leaf.num_states == REAL
            is_state = leaf.is_whole if isinstance(leaf, Slot) else node in looked_up
            column = None if given is None else len(sizes) + len(columns)
            sources.append((node, Source(slot, is_real, column, is_state)))
            columns += [] if given is None else [given]
        used = {node.name for node in nodes(formula) if isinstance(node, Parameter)}
        constants = tuple((name, float(parameters[name])) for name in sorted(used))
        rows = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
        return cls(formula, tuple(sources), states, len(sizes), constants), rows

    def __call__(self, *arguments: NDArray[Any]) -> FloatArray:
        def value_of(source: Source) -> NDArray[Any]:
            given = np.ones(()) if source.column is None else arguments[source.column]
            return source.value(given if source.slot is None else arguments[source.slot], given)

        values = {node: value_of(source) for node, source in self.sources}
        values |= {Parameter(name): np.asarray(value) for name, value in self.parameters}
        value = as_number(evaluate(self.formula, values.__getitem__))
        assert not isinstance(value, QuadraticPolynomial)  # none of its arguments is
        if np.isnan(value).any():
            arrays = np.broadcast_arrays(value, *values.values())
            check_constant(self.formula, arrays[0], dict(zip(values, arrays[1:], strict=True)))
        with np.errstate(all="ignore"):
            return product(arguments[self.num_slots], value)

    def program(self) -> Program | None:
        """The same for compiled code, or None; columns are the parameters of a row."""
        constants = dict(self.parameters)
        sources = dict(self.sources)

        def leaf(node: Expr) -> Steps:
            if isinstance(node, Parameter):
                return [(NUMBER, constants[node.name])]
            source = sources[node]
            is_true: Steps = [(NUMBER, 1.0)]
            if source.column is not None:
                is_true = [(COLUMN, source.column - self.num_slots)]
            if source.slot is None:
                return [*is_true, (NUMBER, 0.0), (EQUAL, 0), (NOT, 0)]
            value: Steps = [(SLOT, source.slot)]
            return value if source.is_real else [*value, *is_true, (EQUAL, 0)]

        steps = steps_of(self.formula, leaf)
        return None if steps is None else Program.of([(COLUMN, 0), *steps, (TIMES, 0)])

    def given(self, parameters: FloatArray, fixed: tuple[int, ...]) -> Potential | None:
        """The table or quadratic that remains if some slots are known; None if it is neither.

        So `normal(y(r) | a + b * x(r), 1)` is quadratic in a and b if x is observed. parameters:
        with a column for each known slot behind the others.
        """
        grid = Grid.of(self, parameters, fixed)
        if grid.num_entries > MAX_ENTRIES or grid.num_rows * grid.num_entries > MAX_NUMBERS:
            return None
        try:
            return grid.potential(hard=False)
        except NotQuadratic:
            return None

    def __str__(self) -> str:
        return shown(self.formula)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A formula over all rows and joint states: its arrays are (row, states of slot 0, ...)."""

    formula: Expr
    num_rows: int
    free: tuple[int, ...]
    """The slots that are not known."""
    states: tuple[int, ...]
    """Of the free discrete slots."""
    weight: FloatArray
    columns: Mapping[int, FloatArray]
    """(row,) by position among the arguments: known slots and parameters."""
    sources: Mapping[Expr, Source]
    constants: Mapping[str, float]
    origin: FloatArray | None = None
    """(row, states…, real slot): what reals are measured from; None for 0."""

    @classmethod
    def of(cls, made: Formula, parameters: FloatArray, fixed: tuple[int, ...]) -> Grid:
        free = tuple(slot for slot in range(made.num_slots) if slot not in fixed)
        places = [*range(made.num_slots, made.num_slots + parameters.shape[1] - len(fixed)), *fixed]
        return cls(
            made.formula,
            len(parameters),
            free,
            tuple(made.states[slot] for slot in free if slot < len(made.states)),
            parameters[:, 0],
            dict(zip(places, parameters.T, strict=True)),
            dict(made.sources),
            dict(made.parameters),
        )

    @property
    def num_reals(self) -> int:
        return len(self.free) - len(self.states)

    @property
    def num_entries(self) -> int:
        """Numbers per row of the potential."""
        return math.prod(self.states) * (1 + self.num_reals + self.num_reals**2)

    def potential(self, hard: bool) -> Table | ConditionalQuadratic | QuadraticAbout:
        """weight * formula, or `NotQuadratic`."""
        form = self.weighted(hard)
        constant = self.spread(form, ())
        if not self.num_reals:
            return Table(constant)
        reals = range(self.num_reals)
        b = np.stack([self.spread(form, (i,)) for i in reals], axis=-1)
        A = np.zeros((*b.shape, self.num_reals))
        for i in reals:
            A[..., i, i] = self.spread(form, (i, i))
            for j in range(i):
                A[..., i, j] = A[..., j, i] = self.spread(form, (j, i)) / 2
        if self.origin is not None:
            return QuadraticAbout(self.origin, A, b, constant)
        found = ConditionalQuadratic(A, b, constant)
        is_far = np.isfinite(constant) & (np.abs(constant) > FAR)
        if not is_far.any():
            return found
        origin = np.zeros(b.shape)
        origin[is_far] = (np.linalg.pinv(-2 * A[is_far]) @ b[is_far][..., None])[..., 0]
        return replace(self, origin=origin).potential(hard) if origin.any() else found

    def weighted(self, hard: bool) -> QuadraticPolynomial:
        """weight * formula as a quadratic form, or `NotQuadratic`."""
        value = evaluate(self.formula, self.leaf)
        if hard:
            if isinstance(value, QuadraticPolynomial) or value.dtype != np.bool_:
                raise ModelError(
                    f"a hard formula is true or false, but '{shown(self.formula)}' is a number: "
                    "give it a weight in place of the period"
                )
            form = as_form(np.where(value, 0.0, -np.inf))
        else:
            with np.errstate(all="ignore"):
                form = as_form(as_number(value)) * self._rows(self.weight)
        check_constant(self.formula, form.coefficients.get(()), self._leaves())
        if not all(np.isfinite(array).all() for m, array in form.coefficients.items() if m):
            self._check_overflow()
            raise NotQuadratic
        return form

    def _check_overflow(self) -> None:
        """Raise if coefficients of reals are too large for floating-point numbers."""
        try:
            form = as_form(as_number(evaluate(self.formula, self.leaf, overflow="raise")))
            is_too_large = all(np.isfinite(array).all() for array in form.coefficients.values())
        except FloatingPointError:
            is_too_large = True
        if is_too_large:
            raise ModelError(
                f"{quoted(self.formula)} has coefficients that are too large to compute with: "
                "give its reals another unit"
            )

    def leaf(self, node: Expr) -> Value:
        """The values of an atom, comparison or parameter, broadcast over the grid."""
        if isinstance(node, Parameter):
            return np.asarray(self.constants[node.name], dtype=np.float64)
        source = self.sources[node]
        given = np.ones(()) if source.column is None else self._rows(self.columns[source.column])
        if source.slot is None:
            return source.value(given, given)
        if source.slot in self.columns:
            return source.value(self._rows(self.columns[source.slot]), given)
        index = self.free.index(source.slot)
        if source.is_real:
            real = index - len(self.states)
            own = QuadraticPolynomial.slot(real)
            return own if self.origin is None else own + self.origin[..., real]
        shape = [1] * (1 + len(self.states))
        shape[1 + index] = self.states[index]
        return source.value(np.arange(self.states[index]).reshape(shape), given)

    def spread(self, form: QuadraticPolynomial, monomial: tuple[int, ...]) -> FloatArray:
        """(row, states...): one coefficient of a form over the whole grid."""
        coefficient = form.coefficients.get(monomial, np.zeros(()))
        return np.broadcast_to(coefficient, (self.num_rows, *self.states)).copy()

    def _rows(self, per_row: NDArray[Any]) -> NDArray[Any]:
        """Values (row,) along the first axis; a single one if all rows are equal."""
        values = np.asarray(per_row)
        if len(values) > 1 and (values == values[0]).all():
            values = values[:1]
        return values.reshape((-1,) + (1,) * len(self.states))

    def _leaves(self) -> dict[Expr, Value]:
        """The values of all atoms, comparisons and parameters."""
        named = map(Parameter, self.constants)
        return {node: self.leaf(node) for node in (*self.sources, *named)}
