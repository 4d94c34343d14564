"""The best joint state of table factors as a mixed-integer linear program.

A state of a variable has an indicator: a column that is 0 or 1, or for a variable of two states
x and 1 - x of one column. A table is written in the first of these forms that fits it. Each is
exact where the indicators are integers, and the first three are as tight as the last one between
integers, too (bounds of Fréchet on the probability of a joint state given those of its parts):

- One slot: costs of its indicators.
- One value with an exception: a column z for the exception. If that is worse, the cost drives z
  down to max(0, Σ indicators - (slots - 1)); if it is better, up to the least of its indicators.
- Two slots of two states: costs of indicators, and an exception where both are in state 1.
- Few exceptions in a large table: each as above.
- Any other: a column for each possible joint state; these sum to the indicators of each slot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from hylift.graph import FactorGroup
from hylift.inference.exact.elimination import Flags, FloatArray, Ids, Ids32

COMPACT = 8
"""A table with exceptions is written as these where that takes so many times fewer numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Indicators:
    """Each state's indicator: offset + sign * column; states of all variables in one row."""

    first: Ids  # (variable,): where its states start
    column: Ids  # (state,)
    sign: FloatArray  # (state,)
    offset: FloatArray  # (state,)
    num_columns: int

    def states(self, columns: FloatArray) -> Ids32:
        """(variable,): the state whose indicator is the largest."""
        value = self.offset + self.sign * columns[self.column]
        owner = np.repeat(np.arange(len(self.first)), np.diff([*self.first, len(value)]))
        order = np.lexsort((np.arange(len(value)), -value, owner))
        return (order[self.first] - self.first).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Constraints lower <= Σ value * column <= upper with columns of their own.

    Own columns are numbered from the number of indicator columns on.
    """

    cost: FloatArray  # (own column,)
    row: Ids  # (entry,)
    column: Ids  # (entry,)
    value: FloatArray  # (entry,)
    lower: FloatArray  # (row,)
    upper: FloatArray  # (row,)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Minimise constant + cost · columns, all in [0, 1], the first `num_integer` being integers."""

    indicators: Indicators
    cost: FloatArray  # (column,)
    constant: float
    matrix: csr_array  # (row, column)
    lower: FloatArray  # (row,)
    upper: FloatArray  # (row,)

    @property
    def num_integer(self) -> int:
        return self.indicators.num_columns


def make_indicators(num_states: Ids32) -> Indicators:
    """One column for two states, as many as states for more, none for a single state."""
    size = num_states.astype(np.int64)
    columns = np.where(size > 2, size, size - 1)
    first, column_first = np.cumsum(size) - size, np.cumsum(columns) - columns
    owner = np.repeat(np.arange(len(size)), size)
    state = np.arange(len(owner)) - first[owner]
    many, two = size[owner] > 2, size[owner] == 2
    sign = np.where(many, 1.0, np.where(two, 2.0 * state - 1.0, 0.0))
    offset = np.where(many, 0.0, np.where(two, 1.0 - state, 1.0))
    column = np.where(size[owner] > 1, column_first[owner] + np.where(many, state, 0), 0)
    return Indicators(first, column, sign, offset, int(columns.sum()))


def num_entries(groups: list[FactorGroup]) -> int:
    """Numbers that the program of these tables has in its matrix, at most."""
    total = 0
    for group in groups:
        form = _forms(group)
        slots, size = group.arity, group.potential.flat.shape[1]
        per_row = np.where(form.compact, 2 * slots * form.exceptions, 0)
        per_row[form.pair] = 4
        per_row[form.joint] = slots * (size + 1)
        total += int(per_row[group.row].sum())
    return total


def make_program(groups: list[FactorGroup], num_states: Ids32) -> Program:
    """The program whose solution is the joint state of the largest summed log-value."""
    at = make_indicators(num_states)
    state_cost = np.zeros(len(at.column))
    blocks = [_one_state_each(at, num_states)]
    constant = 0.0
    for group in groups:
        form = _forms(group)
        for part, write in (
            (form.linear, _linear),
            (form.compact, _exceptions),
            (form.pair, _pairs),
            (form.joint, _joint_states),
        ):
            factors = np.flatnonzero(part[group.row])
            if len(factors):
                block, shift = write(at, group.take(factors), state_cost)
                blocks.append(block)
                constant += shift
    own = _joined(blocks, at.num_columns)
    on_columns = np.bincount(at.column, at.sign * state_cost, minlength=at.num_columns)
    constant += float((at.offset * state_cost).sum())
    cost = np.concatenate([on_columns[: at.num_columns], own.cost])
    real = own.value != 0
    matrix = csr_array(
        (own.value[real], (own.row[real], own.column[real])), shape=(len(own.lower), len(cost))
    )
    return Program(at, cost, constant, matrix, own.lower, own.upper)


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """(row,) each: in which form a row of a table is written."""

    linear: Flags
    compact: Flags
    pair: Flags
    joint: Flags
    base: FloatArray  # the value that is not an exception
    exceptions: Ids  # how many differ from it


def _forms(group: FactorGroup) -> Forms:
    flat = group.potential.flat
    size, slots = flat.shape[1], group.arity
    # A value that more than half of the entries share is their median.
    base = np.partition(flat, size // 2, axis=1)[:, size // 2]
    exceptions = np.count_nonzero(flat != base[:, None], axis=1)
    few = (exceptions <= 1) | (COMPACT * (slots + 1) * exceptions <= slots * size)
    finite = np.isfinite(flat).all(axis=1)
    linear = np.full(len(flat), slots == 1)
    compact = few & np.isfinite(base) & ~linear
    pair = finite & (group.potential.slot_states == (2, 2)) & ~linear & ~compact
    return Forms(linear, compact, pair, ~(linear | compact | pair), base, exceptions)


def _one_state_each(at: Indicators, num_states: Ids32) -> Block:
    """Indicators of a variable of more than two states sum to 1."""
    owner = np.repeat(np.arange(len(num_states)), num_states)
    some = np.flatnonzero(num_states[owner] > 2)
    variables, row = np.unique(owner[some], return_inverse=True)
    ones = np.ones(len(variables))
    return Block(np.zeros(0), row, at.column[some], np.ones(len(some)), ones, ones)


def _linear(at: Indicators, group: FactorGroup, state_cost: FloatArray) -> tuple[Block, float]:
    """Tables of one slot: added to the costs of its states; impossible states are forbidden."""
    values = group.potential.flat[group.row] * group.multiplicity[:, None]
    state = at.first[group.scope] + np.arange(values.shape[1])
    possible = values > -np.inf
    np.add.at(state_cost, state[possible], -values[possible])
    forbidden = state[~possible][:, None]
    return _at_exceptions(at, forbidden, np.full(len(forbidden), -np.inf)), 0.0


def _exceptions(at: Indicators, group: FactorGroup, state_cost: FloatArray) -> tuple[Block, float]:
    """Tables of one value with exceptions."""
    flat, base = group.potential.flat, _forms(group).base
    factor, entry = _ragged(flat != base[:, None], group.row)
    row, times = group.row[factor], group.multiplicity[factor]
    change = times * (flat[row, entry] - base[row])
    shift = -float((group.multiplicity * base[group.row]).sum())
    return _at_exceptions(at, _states(at, group, factor, entry), change), shift


def _pairs(at: Indicators, group: FactorGroup, state_cost: FloatArray) -> tuple[Block, float]:
    """Tables of two slots of two states: a part for each slot alone, and one for both in state 1.

    θ(x, y) = θ00 + (θ10 - θ00) x + (θ01 - θ00) y + (θ11 - θ10 - θ01 + θ00) x y.
    """
    values = group.potential.flat[group.row] * group.multiplicity[:, None]
    none, second, first, both = values.T
    state = at.first[group.scope] + 1
    np.add.at(state_cost, state[:, 0], none - first)
    np.add.at(state_cost, state[:, 1], none - second)
    change = (both - first) - (second - none)
    some = change != 0
    return _at_exceptions(at, state[some], change[some]), -float(none.sum())


def _at_exceptions(at: Indicators, state: Ids, change: FloatArray) -> Block:
    """Columns for changes of the log-value where all states of a row (exception, slot) hold."""
    better = change > 0
    return _joined(
        [_worse(at, state[~better], change[~better]), _better(at, state[better], change[better])],
        at.num_columns,
    )


def _worse(at: Indicators, state: Ids, change: FloatArray) -> Block:
    """Σ indicators - z <= slots - 1; without z where the joint state is impossible."""
    num, slots = state.shape
    soft = np.flatnonzero(change > -np.inf)
    row = np.concatenate([np.repeat(np.arange(num), slots), soft])
    column = np.concatenate([at.column[state].reshape(-1), at.num_columns + np.arange(len(soft))])
    value = np.concatenate([at.sign[state].reshape(-1), np.full(len(soft), -1.0)])
    upper = slots - 1 - at.offset[state].sum(axis=1)
    return Block(-change[soft], row, column, value, np.full(num, -np.inf), upper)


def _better(at: Indicators, state: Ids, change: FloatArray) -> Block:
    """z - indicator <= 0, for each slot."""
    num, slots = state.shape
    row = np.arange(num * slots)
    column = np.concatenate([at.num_columns + row // slots, at.column[state].reshape(-1)])
    value = np.concatenate([np.ones(len(row)), -at.sign[state].reshape(-1)])
    upper = at.offset[state].reshape(-1)
    rows = np.concatenate([row, row])
    return Block(-change, rows, column, value, np.full(len(row), -np.inf), upper)


def _joint_states(
    at: Indicators, group: FactorGroup, state_cost: FloatArray
) -> tuple[Block, float]:
    """A column per possible joint state; those with a state sum to its indicator.

    The first state of every slot but the first is left out: it follows from the others.
    """
    flat, shape = group.potential.flat, group.potential.slot_states
    possible = flat > -np.inf
    top = np.where(possible.any(axis=1), flat.max(axis=1), 0.0)
    factor, entry = _ragged(possible, group.row)
    row_of = group.row[factor]
    cost = group.multiplicity[factor] * (top[row_of] - flat[row_of, entry])
    own = at.num_columns + np.arange(len(factor))
    digits = np.stack(np.unravel_index(entry, shape), axis=1)
    rows, columns, values, bounds = [], [], [], []
    start = 0
    for slot, size in enumerate(shape):
        left_out = 1 if slot else 0
        per_factor = size - left_out
        kept = digits[:, slot] >= left_out
        rows.append(start + factor[kept] * per_factor + digits[kept, slot] - left_out)
        columns.append(own[kept])
        values.append(np.ones(np.count_nonzero(kept)))
        state = (at.first[group.scope[:, slot]][:, None] + np.arange(left_out, size)).reshape(-1)
        rows.append(start + np.arange(len(state)))
        columns.append(at.column[state])
        values.append(-at.sign[state])
        bounds.append(at.offset[state])
        start += len(state)
    bound = np.concatenate(bounds)
    entries = (np.concatenate(rows), np.concatenate(columns), np.concatenate(values))
    shift = -float((group.multiplicity * top[group.row]).sum())
    return Block(cost, *entries, bound, bound), shift


def _joined(blocks: list[Block], num_indicators: int) -> Block:
    """The blocks beside each other, their own columns and rows numbered on."""
    rows = np.cumsum([0, *(len(block.lower) for block in blocks)])
    own = np.cumsum([0, *(len(block.cost) for block in blocks)])
    column = [
        np.where(block.column >= num_indicators, block.column + shift, block.column)
        for block, shift in zip(blocks, own, strict=False)
    ]
    return Block(
        np.concatenate([block.cost for block in blocks]),
        np.concatenate([block.row + at for block, at in zip(blocks, rows, strict=False)]),
        np.concatenate(column),
        np.concatenate([block.value for block in blocks]),
        np.concatenate([block.lower for block in blocks]),
        np.concatenate([block.upper for block in blocks]),
    )


def _ragged(chosen: Flags, row: Ids32) -> tuple[Ids, Ids]:
    """Factor and entry of all that is chosen (row, entry) in the row of each factor."""
    count = np.count_nonzero(chosen, axis=1)
    entry = np.nonzero(chosen)[1]
    times = count[row]
    factor = np.repeat(np.arange(len(row)), times)
    within = np.arange(len(factor)) - (np.cumsum(times) - times)[factor]
    return factor, entry[(np.cumsum(count) - count)[row][factor] + within]


def _states(at: Indicators, group: FactorGroup, factor: Ids, entry: Ids) -> Ids:
    """(entry, slot): the state of each slot at an entry of a factor's table."""
    digits = np.stack(np.unravel_index(entry, group.potential.slot_states), axis=1)
    return at.first[group.scope[factor]] + digits
