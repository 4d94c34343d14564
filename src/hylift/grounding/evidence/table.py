"""Evidence on one predicate as a table of the engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError
from hylift.grounding.engine import Engine
from hylift.grounding.evidence.observed import ObservedAtoms, fail_twice


@dataclass(frozen=True, slots=True)
class EvidenceTable:
    """A table of observed atoms, ordered by argument.

    Columns a0, a1, … (INTEGER) are the positions of the arguments among the constants of their
    types. `value` and `sd` (DOUBLE) follow: truth as 0 or 1, a probability strictly between them,
    or a real with the standard deviation of its error. A closed predicate has its true atoms only,
    without `value` and `sd`. Where an argument is unique, the others are a0, a1, …, and `value` is
    the position of the constant that holds for it.
    """

    table: str
    num_rows: int
    num_arguments: int
    is_closed: bool = False
    excluded: str | None = None
    """Where an argument is unique: a table of constants that do not hold, with the same columns."""

    def arrays(
        self, engine: Engine, *, excluded: bool = False
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """(row, argument): positions of constants; (row,): values; (row,): their errors."""
        table = self.excluded if excluded else self.table
        columns = engine.fetch(f"SELECT * FROM {table}")
        num_rows = len(next(iter(columns.values())))
        ids = np.empty((num_rows, self.num_arguments), dtype=np.int32)
        for place in range(self.num_arguments):
            ids[:, place] = columns[f"a{place}"]
        if self.is_closed:
            return ids, np.ones(num_rows), np.zeros(num_rows)
        return ids, np.asarray(columns["value"]), np.asarray(columns["sd"])


def store(
    found: ObservedAtoms | None,
    num_arguments: int,
    engine: Engine,
    name: str,
    *,
    closed: bool,
) -> EvidenceTable:
    """The table of what was observed of a predicate without a unique argument; None: nothing."""
    if found is None:
        ids, value, sd = np.zeros((0, num_arguments), np.int32), np.zeros(0), np.zeros(0)
    else:
        ids, value, sd = found.ids, found.value, found.sd
    if closed:
        is_true = value == 1
        ids = ids if is_true.all() else ids[is_true]
        # A table must have a column.
        further = {} if num_arguments else {"holds": np.ones(len(ids), dtype=bool)}
    else:
        further = {"value": value, "sd": sd}
    _create(engine, name, ids, further)
    return EvidenceTable(name, len(ids), num_arguments, closed)


def store_states(
    found: ObservedAtoms,
    unique: int,
    num_states: int,
    engine: Engine,
    name: str,
) -> EvidenceTable:
    """The table of what was observed of a predicate with a unique argument."""
    is_true = found.value == 1
    others = np.delete(found.ids, unique, axis=1)
    state = found.ids[:, unique].astype(np.float64)
    order = np.lexsort((state, *others.T[::-1]))  # each variable's states side by side
    true, false = order[is_true[order]], order[~is_true[order]]
    _check_states(found, others, true)
    _check_excluded(found, others, false, num_states)
    excluded = f"{name}_excluded" if len(false) else None
    tables = [(name, true)] if excluded is None else [(name, true), (excluded, false)]
    for table, rows in tables:
        _create(engine, table, others[rows], {"value": state[rows], "sd": found.sd[rows]})
    return EvidenceTable(name, len(true), others.shape[1], excluded=excluded)


def _check_states(found: ObservedAtoms, others: NDArray[np.int32], true: NDArray[np.int64]) -> None:
    """Raises if two states of one variable are true."""
    twice = np.flatnonzero((others[true][1:] == others[true][:-1]).all(axis=1))
    if len(twice):
        pair = true[twice[0] : twice[0] + 2]
        earlier, later = sorted(pair.tolist(), key=lambda row: int(found.fact[row]))
        fail_twice(found, later, earlier, len(twice) - 1)


def _check_excluded(
    found: ObservedAtoms, others: NDArray[np.int32], false: NDArray[np.int64], num_states: int
) -> None:
    """Raises if all states of one variable are false."""
    if not len(false):
        return
    starts = np.append(True, (others[false][1:] != others[false][:-1]).any(axis=1))
    counts = np.diff(np.append(np.flatnonzero(starts), len(false)))
    for at in np.flatnonzero(starts)[counts == num_states][:1].tolist():
        facts, fact = found.source(int(false[at]))
        raise EvidenceError(
            f"{facts.where(fact)}: {facts.atom(fact)}: all {num_states} constants of type "
            f"'{facts.predicate.arguments[facts.predicate.unique or 0]}' are said to be false"
        )


def _create(
    engine: Engine,
    name: str,
    ids: NDArray[np.int32],
    further: dict[str, NDArray[np.generic]],
) -> None:
    columns = {f"a{place}": pa.array(column) for place, column in enumerate(ids.T)}
    columns |= {key: pa.array(column) for key, column in further.items()}
    engine.load(name, pa.table(columns))
