"""Structure of the model: components of reals, and discrete variables that are tied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.inference.exact.elimination import eliminate_reals
from hylift.inference.local.terms import LocalTerms
from hylift.inference.sampling.kernels.sweep import tie
from hylift.inference.sampling.state import MOST_JOINT, RealBlocks
from hylift.numerics.segments import inverse, offsets, ranges
from hylift.numerics.sparse import connected
from hylift.words import counted

IntArray = NDArray[np.int64]

MOST_NUMBERS = 2**28
"""Of eight bytes, for the precisions of all reals and their factors, of all chains together."""

PER_EDGE = 3
"""Numbers that a chain keeps for each edge: the coupling, the factor, the inverse."""


def given_functions(terms: LocalTerms) -> LocalTerms:
    """The terms without links to reals of functions, which are given when others are drawn: all
    pairs with one of them get the number after the last."""
    movable = terms.variable["movable"] == 1
    source = terms.link_source()
    keep = movable[source] & movable[terms.link["other"]]
    link, variable = terms.link[keep], terms.variable.copy()
    used, link["pair"] = np.unique(link["pair"], return_inverse=True)
    number = np.full(len(terms.link) // 2, len(used), dtype=np.int64)
    number[used] = np.arange(len(used))
    ends = offsets(np.bincount(source[keep], minlength=len(variable)))
    variable["links"], variable["links_end"] = ends[:-1], ends[1:]
    return terms._replace(link=link, pair_of=number[terms.pair_of], variable=variable)


def real_blocks(terms: LocalTerms, num_chains: int) -> RealBlocks:
    """The components of the reals of no function, with an elimination order for all states."""
    record = terms.variable
    variables = np.flatnonzero((record["num_states"] == 0) & (record["movable"] == 1))
    number = inverse(variables, len(record))
    pairs = number[_pairs(terms)].astype(np.int32)
    elimination = eliminate_reals(len(variables), pairs)
    numbers = PER_EDGE * len(elimination.later) * num_chains
    if numbers > MOST_NUMBERS:
        raise IntractableError(
            f"block draws of these {len(variables):,} reals need {numbers:,} numbers for "
            f"{counted(num_chains, 'chain')}, more than {MOST_NUMBERS:,}: fewer chains, or "
            "evidence on some of the reals, would make it less"
        )
    component = connected(len(variables), pairs) if len(variables) else np.zeros(0, np.int32)
    count = int(component.max(initial=-1)) + 1
    of_step = component[elimination.order]
    of_term = np.full(len(terms.term), -1, dtype=np.int64)
    quadratics = terms.term[terms.num_tables :]
    sizes = quadratics["last"] - quadratics["middle"]
    place = number[terms.entry["variable"][ranges(quadratics["middle"], sizes)]]
    owner = np.repeat(np.arange(terms.num_tables, len(terms.term)), sizes)
    of_term[owner[place >= 0]] = component[place[place >= 0]]
    with_given = np.bincount(owner[place < 0], minlength=len(terms.term)) > 0
    changes = (terms.term["num_joint"] > 1) | with_given
    inside = np.flatnonzero(of_term >= 0)
    has_bound = np.isfinite(record["lower"][variables]) | np.isfinite(record["upper"][variables])
    return RealBlocks(
        variables[elimination.order],
        elimination.ptr,
        elimination.later,
        np.arange(len(variables) + 1),
        _edge_pairs(pairs, elimination.step, elimination.ptr, elimination.later),
        pointers(of_step, count),
        np.argsort(of_step, kind="stable"),
        pointers(of_term[inside], count),
        inside[np.argsort(of_term[inside], kind="stable")],
        of_term,
        (np.bincount(component, has_bound, count) > 0).astype(np.uint8),
        (np.bincount(of_term[inside], changes[inside], count) > 0).astype(np.uint8),
    )


def _pairs(terms: LocalTerms) -> NDArray[np.int64]:
    """(pair, 2): the variables of each pair of reals that share a term."""
    ends = np.stack([terms.link_source(), terms.link["other"]], axis=1)
    once = ends[:, 0] < ends[:, 1]
    pairs = np.empty((len(terms.link) // 2, 2), dtype=np.int64)
    pairs[terms.link["pair"][once]] = ends[once]
    return pairs


def _edge_pairs(
    pairs: NDArray[np.int32],
    step: NDArray[np.int32],
    ptr: NDArray[np.int64],
    later: NDArray[np.int32],
) -> NDArray[np.int64]:
    """(edge,): its pair, or -1 where elimination has added it; edges are sorted by their steps."""
    size = len(step)
    low, high = np.sort(step[pairs].astype(np.int64), axis=1).T
    owner = np.repeat(np.arange(size, dtype=np.int64), np.diff(ptr))
    return inverse(np.searchsorted(owner * size + later, low * size + high), len(later))


def pointers(owner: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """(owner + 1,): where the things of each begin, were they sorted by owner."""
    return offsets(np.bincount(owner, minlength=count))


BoolArray = NDArray[np.bool_]

STRONG = 5.0
"""Fall of a log-value beyond which a state counts as hard to reach."""

MOST_CELLS = 1 << 25
"""Joint states of all strong tables that are looked at."""

MOST_ROUNDS = 64
"""In which variables are set free."""

LEAST_WORK, MORE_WORK = 1 << 18, 4
"""Of drawing all groups: so much is no trouble, nor is so many times that of a plain sweep."""


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """Discrete variables that strong tables tie together."""

    group: IntArray  # (variable,): its group of two or more that are drawn together, or -1
    is_connected: bool
    """True if such draws, and those of one variable, are known to lead from every assignment that
    breaks no hard table to every other."""

    @classmethod
    def of(cls, terms: LocalTerms) -> Ties:
        num_variables = len(terms.variable)
        none = np.full(num_variables, -1, dtype=np.int64)
        hard, strong = _strong_tables(terms)
        if not len(strong):
            return cls(none, True)
        movable = terms.variable["movable"] == 1
        fast, fast_strong = _held(terms, hard, np.inf), _held(terms, strong, STRONG)
        is_moved = not (fast & ~movable).any()
        fast, fast_strong = fast & movable, fast_strong & movable
        ptr_hard, members_hard = _scopes(terms, hard, fast)
        ptr_strong, members_strong = _scopes(terms, strong, fast_strong)
        record = terms.variable
        log_states = np.log2(np.maximum(record["num_states"], 1).astype(np.float64))
        parent = np.arange(num_variables, dtype=np.int64)
        most = np.log2(_most_joint(terms, fast | fast_strong)) + 1e-9
        # Hard tables come first: who draws their variables together can reach everything.
        tie(ptr_hard, members_hard, log_states, most, parent)
        tie(ptr_strong, members_strong, log_states, most, parent)
        is_shared = np.bincount(parent, minlength=num_variables)[parent] > 1
        none[is_shared] = np.unique(parent[is_shared], return_inverse=True)[1]
        is_within = _is_within(ptr_hard, members_hard, parent, num_variables)
        return cls(none, is_within and is_moved)


def _strong_tables(terms: LocalTerms) -> tuple[IntArray, IntArray]:
    """The tables with a state that is impossible; and those with one that is hard to reach."""
    hard, strong = np.zeros((2, len(terms.term)), dtype=bool)
    for rows in terms.rows():
        if rows.num_reals:
            continue
        impossible = np.isneginf(rows.c)
        fall = rows.c.max(axis=1) - np.where(impossible, np.inf, rows.c).min(axis=1)
        hard[rows.terms] = np.asarray(impossible.any(axis=1))[rows.row]
        strong[rows.terms] = fall[rows.row] * terms.term["multiplicity"][rows.terms] > STRONG
    strong |= hard
    return np.flatnonzero(hard), np.flatnonzero(strong)


def _held(terms: LocalTerms, tables: IntArray, fall: float) -> BoolArray:
    """(variable,): True if tables fix it, as far as a quick look shows.

    A variable is free if it has a state into which it can go from wherever no table is at a value
    that is lower by so much than its largest, without bringing one there. It may then be thought
    to be in that state when others are looked at. If all are free, single flips lead from
    everywhere to one assignment, and so from everywhere to everywhere.
    """
    record, term = terms.variable, terms.term[tables]
    held = np.zeros(len(record), dtype=bool)
    blocks = list(_by_shape(terms, tables))
    for scope, _ in blocks:
        held[scope] = True
    if term["num_joint"].sum() > MOST_CELLS:
        return held
    allowed = [_allowed(terms, some, scope, fall) for scope, some in blocks]
    owner = np.repeat(np.arange(len(record)), record["num_states"])
    for _ in range(MOST_ROUNDS):
        is_safe = held[owner]
        for (scope, _), cells in zip(blocks, allowed, strict=True):
            _rule_out(is_safe, record["scores"], scope, cells)
        safe = np.flatnonzero(is_safe)
        free, first = np.unique(owner[safe], return_index=True)
        if not len(free):
            break
        held[free] = False
        state = np.full(len(record), -1)
        state[free] = safe[first] - record["scores"][free]
        for (scope, _), cells in zip(blocks, allowed, strict=True):
            _restrict(cells, state[scope])
    return held


def _by_shape(terms: LocalTerms, tables: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Scopes (table, slot) and tables, those together that have as many states in each slot."""
    found = []
    term, num_states = terms.term[tables], terms.variable["num_states"]
    arity = term["last"] - term["first"]
    for count in np.unique(arity):
        some = tables[arity == count]
        slots = terms.term["first"][some][:, None] + np.arange(count)
        scope = terms.entry["variable"][slots].astype(np.int64)
        _, which = np.unique(num_states[scope], axis=0, return_inverse=True)
        which = which.reshape(-1)
        found += [(scope[which == k], some[which == k]) for k in range(which.max(initial=-1) + 1)]
    return found


def _allowed(terms: LocalTerms, tables: IntArray, scope: IntArray, fall: float) -> BoolArray:
    """(table, *states): whether a joint state is not too low."""
    term = terms.term[tables]
    values = terms.theta[term["base"][:, None] + np.arange(term["num_joint"][0])]
    with np.errstate(invalid="ignore"):
        below = values.max(axis=1, keepdims=True) - values
        is_allowed = below * term["multiplicity"][:, None] <= fall
    is_allowed &= values > -np.inf
    return is_allowed.reshape(len(tables), *terms.variable["num_states"][scope[0]])


def _rule_out(is_safe: BoolArray, scores: IntArray, scope: IntArray, cells: BoolArray) -> None:
    """Marks the states of variables into which they cannot always go."""
    for slot in range(scope.shape[1]):
        axes = tuple(axis for axis in range(1, cells.ndim) if axis != slot + 1)
        blocked = (cells.any(axis=slot + 1, keepdims=True) & ~cells).any(axis=axes)
        at = scores[scope[:, slot]][:, None] + np.arange(cells.shape[slot + 1])
        is_safe[at[blocked]] = False


def _restrict(cells: BoolArray, states: IntArray) -> None:
    """Leaves those joint states in which slots are in these states: (table, slot), or -1."""
    for slot in range(states.shape[1]):
        size = cells.shape[slot + 1]
        fits = (states[:, slot, None] < 0) | (states[:, slot, None] == np.arange(size))
        shape = [len(cells)] + [1] * (cells.ndim - 1)
        shape[slot + 1] = size
        cells &= fits.reshape(shape)


def _scopes(terms: LocalTerms, tables: IntArray, held: BoolArray) -> tuple[IntArray, IntArray]:
    """Pointers and members: the variables of each table that are held fast."""
    term = terms.term[tables]
    size = term["last"] - term["first"]
    variable = terms.entry["variable"][ranges(term["first"], size)].astype(np.int64)
    kept = held[variable]
    counts = np.bincount(np.repeat(np.arange(len(tables)), size)[kept], minlength=len(tables))
    return offsets(counts), variable[kept]


def _most_joint(terms: LocalTerms, held: BoolArray) -> int:
    """Joint states up to which groups are drawn, so that drawing them all is not too much work."""
    record = terms.variable
    work = int((record["last"] - record["first"])[held].sum())
    most = max(LEAST_WORK, MORE_WORK * len(terms.entry))
    limit = MOST_JOINT
    while limit > 4 and limit * work > most:
        limit //= 2
    return limit


def _is_within(ptr: IntArray, members: IntArray, root: IntArray, num_variables: int) -> bool:
    """Return True if all that scopes connect is in one group."""
    size = np.diff(ptr)
    first = np.repeat(members[ptr[:-1][size > 0]], size[size > 0])
    component = connected(num_variables, np.stack([first, members], axis=1).astype(np.int32))
    held = np.unique(members)
    pairs = np.unique(np.stack([component[held], root[held]], axis=1), axis=0)
    return len(pairs) == len(np.unique(component[held]))
