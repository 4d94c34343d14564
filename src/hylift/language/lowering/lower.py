"""Formulas -> potentials: a table, a conditional quadratic, or else a function."""

from __future__ import annotations

import math
from collections import Counter
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
from hylift.language.lowering.steps import Steps, steps_of
from hylift.language.syntax import (
    Atom,
    Comparison,
    Expr,
    Normal,
    Number,
    Operation,
    Parameter,
    Unary,
)
from hylift.language.text.formatter import shown
from hylift.language.walk import (
    atoms,
    conditioning_variables,
    logical_comparisons,
    nodes,
    rebuild,
)
from hylift.numerics.kernels.programs import COLUMN, EQUAL, NOT, NUMBER, SLOT, TIMES
from hylift.numerics.programs import Program
from hylift.potentials import REAL, ConditionalQuadratic, Function, Potential, Table
from hylift.potentials.about import FAR, QuadraticAbout
from hylift.potentials.base import FloatArray, IntArray
from hylift.potentials.counted import Counted
from hylift.words import Wording, worded

MAX_QUOTED = 200
"""Maximum number of characters of a formula in an error."""

MAX_ENTRIES = 2**22
"""Maximum number of entries per row of a table or quadratic."""

MOST_STATES = 2**12
"""Joint states up to which counts are tables like any other formula."""

MAX_NUMBERS = 2**26
"""Maximum number of entries of all rows together."""


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
    lowered, rows = Formula.of(formula, weight, leaves, parameters)
    grid = _Grid.of(lowered, rows, ())
    if grid.num_entries > MOST_STATES and (found := _counted(lowered, rows, hard)) is not None:
        return found
    _check_size(grid)
    try:
        return grid.potential(hard)
    except NotQuadratic:
        return Function(lowered, len(grid.states), grid.num_reals, rows)


@dataclass(frozen=True, slots=True)
class _Source:
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
    sources: tuple[tuple[Expr, _Source], ...]
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
        sources: list[tuple[Expr, _Source]] = []
        looked_up = conditioning_variables(formula)
        for node in [*atoms(formula), *logical_comparisons(formula), *looked_up]:
            leaf = leaves[node]
            slot, given = (leaf.index, leaf.state) if isinstance(leaf, Slot) else (None, leaf)
            is_real = isinstance(leaf, Slot) and leaf.num_states == REAL
            is_state = leaf.is_whole if isinstance(leaf, Slot) else node in looked_up
            column = None if given is None else len(sizes) + len(columns)
            sources.append((node, _Source(slot, is_real, column, is_state)))
            columns += [] if given is None else [given]
        used = {node.name for node in nodes(formula) if isinstance(node, Parameter)}
        constants = tuple((name, float(parameters[name])) for name in sorted(used))
        rows = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
        return cls(formula, tuple(sources), states, len(sizes), constants), rows

    def __call__(self, *arguments: NDArray[Any]) -> FloatArray:
        def value_of(source: _Source) -> NDArray[Any]:
            given = np.ones(()) if source.column is None else arguments[source.column]
            return source.value(given if source.slot is None else arguments[source.slot], given)

        values = {node: value_of(source) for node, source in self.sources}
        values |= {Parameter(name): np.asarray(value) for name, value in self.parameters}
        value = as_number(evaluate(self.formula, values.__getitem__))
        assert not isinstance(value, QuadraticPolynomial)  # none of its arguments is
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
        grid = _Grid.of(self, parameters, fixed)
        if grid.num_entries > MAX_ENTRIES or grid.num_rows * grid.num_entries > MAX_NUMBERS:
            return None
        try:
            return grid.potential(hard=False)
        except NotQuadratic:
            return None

    def __str__(self) -> str:
        return shown(self.formula)


# Counts of many slots.

COUNT = Atom("count")
"""Stands for the number of literals of a chain; its slot has that number as its state."""


def _counted(made: Formula, rows: FloatArray, hard: bool) -> Counted | None:
    """The potential of a formula in which many slots only matter by how many literals of them hold:
    those of `A(p) + A(q) + …`, of `A(p) v …` or of `A(p) ^ …`."""
    if made.num_slots > len(made.states):
        return None
    sources = dict(made.sources)
    chains = [
        (node, literals)
        for node in nodes(made.formula)
        if isinstance(node, Operation) and node.op in ("+", "v", "^")
        if len(literals := _literals(node, made, rows)) > 1
    ]
    if not chains:
        return None
    node, literals = max(chains, key=lambda chain: len(chain[1]))
    rest = tuple(part for part in node.operands if part not in literals)
    whole: Expr = COUNT
    if node.op != "+":
        least = Number(0.5 if node.op == "v" else len(literals) - 0.5)
        whole = Comparison(">", COUNT, least, is_exact=True)
    if rest:
        whole = Operation(node.op, (whole, *rest))
    formula = _replaced(made.formula, node, whole)
    slots = {sources[atoms(part)[0]].slot: part for part in literals}
    others = [slot for slot in range(made.num_slots) if slot not in slots]
    kept: set[Expr] = {*atoms(formula), *logical_comparisons(formula)}
    kept |= set(conditioning_variables(formula))
    moved = 1 + len(others) - made.num_slots
    shorter: list[tuple[Expr, _Source]] = [(COUNT, _Source(0, is_state=True))]
    for part, source in made.sources:
        if part in kept:
            slot = None if source.slot is None else 1 + others.index(source.slot)
            column = None if source.column is None else source.column + moved
            shorter.append((part, replace(source, slot=slot, column=column)))
    states = (len(literals) + 1, *(made.states[slot] for slot in others))
    small = Formula(formula, tuple(shorter), states, 1 + len(others), made.parameters)
    grid = _Grid.of(small, rows, ())
    if grid.num_entries > MAX_ENTRIES or grid.num_rows * grid.num_entries > MAX_NUMBERS:
        return None
    table = grid.potential(hard)
    assert isinstance(table, Table)  # there are no reals
    counted = sorted(slot for slot in slots if slot is not None)
    truth = tuple(literals[slots[slot]] for slot in counted)
    return Counted(table.log_table, made.states, tuple(counted), truth)


def _literals(chain: Operation, made: Formula, rows: FloatArray) -> dict[Expr, tuple[bool, ...]]:
    """The operands that are literals of a slot that the formula has nowhere else: whether each
    holds, per state."""
    sources = dict(made.sources)
    times = Counter(node for node in nodes(made.formula) if isinstance(node, Atom))
    used = Counter(source.slot for _, source in made.sources)
    found: dict[Expr, tuple[bool, ...]] = {}
    for part in chain.operands:
        is_negated = isinstance(part, Unary) and part.op == "!"
        atom = part.operand if isinstance(part, Unary) and is_negated else part
        if not isinstance(atom, Atom) or times[atom] > 1:
            continue
        source = sources[atom]
        if source.slot is None or used[source.slot] > 1 or source.is_state:
            continue
        given = np.ones(1)
        if source.column is not None:
            given = np.unique(rows[:, source.column - made.num_slots])
        if len(given) == 1:
            holds = np.arange(made.states[source.slot]) == given[0]
            found[part] = tuple((holds != is_negated).tolist())
    return found


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    if expr is old:
        return new
    return rebuild(expr, lambda part: _replaced(part, old, new))


def _check_size(grid: _Grid) -> None:
    """Raise if the potential would have too many entries."""
    entries = grid.num_entries
    if entries > MAX_ENTRIES:
        raise ModelError(
            f"the formula '{_shortened(shown(grid.formula))}' is a potential of "
            f"{_count(entries)} numbers over {len(grid.free)} variables, "
            f"more than the maximum of {MAX_ENTRIES:,}",
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
    free: tuple[int, ...]
    """The slots that are not known."""
    states: tuple[int, ...]
    """Of the free discrete slots."""
    weight: FloatArray
    columns: Mapping[int, FloatArray]
    """(row,) by position among the arguments: known slots and parameters."""
    sources: Mapping[Expr, _Source]
    constants: Mapping[str, float]
    origin: FloatArray | None = None
    """(row, states…, real slot): what reals are measured from; None for 0."""

    @classmethod
    def of(cls, made: Formula, parameters: FloatArray, fixed: tuple[int, ...]) -> _Grid:
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
        self._check_constant(form.coefficients.get(()))
        if not all(np.isfinite(array).all() for m, array in form.coefficients.items() if m):
            raise NotQuadratic
        return form

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

    def _check_constant(self, constant: FloatArray | None) -> None:
        """Raise if the formula is NaN or inf where it does not depend on reals."""
        if constant is None:
            return
        bad = np.isnan(constant) | (constant == np.inf)
        if not bad.any():
            return
        full = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, (1,) * (1 + len(self.states))))
        at = tuple(np.argwhere(full)[0])
        value = np.broadcast_to(constant, full.shape)[at]
        held = (self._held(node, at, full.shape) for node in self.sources)
        where = " and ".join(filter(None, held))
        if any(isinstance(node, Normal) for node in nodes(self.formula)):
            raise ModelError(
                f"the variance in '{shown(self.formula)}' is not positive"
                f"{f' where {where}' if where else ''}: a variance of 0, a deterministic relation, "
                "is no density; use a small one"
            )
        raise ModelError(
            f"the formula '{shown(self.formula)}' is {value}{f' where {where}' if where else ''}; "
            "a log-potential is a number, or -inf for what is impossible"
        )

    def _held(self, node: Expr, at: tuple[np.intp, ...], shape: tuple[int, ...]) -> str:
        """`In(p, t) is true`, `x(p) is 0.5` at a point of the grid; empty if it does not vary."""
        value = self.leaf(node)
        if isinstance(value, QuadraticPolynomial) or any(np.greater(value.shape, shape)):
            return ""
        # An axis of length 1 stands for all of its positions.
        point = tuple(i if size > 1 else 0 for i, size in zip(at, value.shape, strict=True))
        if value.dtype != np.bool_:
            return f"{shown(node)} is {value[point]:g}"
        return f"{shown(node)} is {'true' if value[point] else 'false'}"


def _count(number: int) -> str:
    """The number, or its order of magnitude if it is too long to read."""
    return f"{number:,}" if number < 10**15 else f"about 10^{math.log10(number):.0f}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
