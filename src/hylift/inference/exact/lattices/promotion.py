"""The choice of reals to sum over lattices, where closed forms have too many joint states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.errors import IntractableError
from hylift.inference.exact.elimination import (
    Flags,
    FloatArray,
    Ids,
    Ids32,
    eliminate_tables,
    number_axes,
    scope_edges,
    scopes_by_arity,
)
from hylift.inference.exact.gaussian import Components, find_components
from hylift.inference.terms import Terms
from hylift.numerics.segments import offsets, ranges

CHEAP = float(np.log(2.0**18))
"""Log of the numbers of a component, in all its states, up to which closed forms are taken."""

NUM_NODES = 128
"""Nodes that a promoted real is expected to have."""
LOG_NODES = float(np.log(NUM_NODES))

MOST_BESIDE = 1, 2
"""Promoted reals that a component of free reals may couple: both are tried. Free reals between two
lattices have as many Gaussians as these have pairs of nodes, but may be too precise for a third."""

EFFORT = 0.02
"""Share of the time of its tables that is spent on an order, which is good enough for a choice."""

MAX_ROUNDS = 64


def to_promote(
    terms: Terms, components: Components, scopes: list[Ids32], max_entries: int
) -> list[Ids]:
    """Choices of reals to promote, increasing; none where closed forms are cheaper.

    In a component that is dear all reals with discrete neighbours are promoted at first, and those
    that would couple many lattices. Then those go back for which a closed form is cheaper given
    the others. terms: quadratics of free reals, in these components; scopes: of tables.
    """
    log_work = components.log_work()
    dear = log_work > min(CHEAP, np.log(max_entries))
    if not dear.any():
        return []
    of_term = components.of_step[components.term_step(terms)]
    links = Links.of(terms.take(np.flatnonzero(dear[of_term])))
    closed = float(np.logaddexp.reduce(log_work))
    log_limit = min(closed, float(np.log(max_entries)))
    choices: list[Ids] = []
    for most in reversed(MOST_BESIDE):
        first = links.without_cheaper(links.with_hubs(links.touched, most))
        chosen = links.with_hubs(first, most)
        number = np.count_nonzero(chosen)
        is_new = number > 0 and (not choices or number != len(choices[0]))
        if is_new and links.log_cost(chosen, scopes, log_limit) < closed:
            choices.append(np.flatnonzero(chosen))
    return choices


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Terms of reals in dear components, and pairs of variables that they link."""

    terms: Terms
    log_states: FloatArray  # (term,): of its discrete slots
    states: Ids  # (pair, 2): a real and a discrete variable in one term, each pair once
    reals: Ids  # (pair, 2): two reals in one term, each pair in both orders

    @classmethod
    def of(cls, terms: Terms) -> Links:
        size = len(terms.num_states)
        count = np.diff(terms.slot_ptr)[terms.term]
        one = np.repeat(terms.slots, count).astype(np.int64)
        other = terms.slots[ranges(terms.slot_ptr[:-1][terms.term], count)]
        is_real = terms.num_states[one] == 0
        of_reals = is_real & (terms.num_states[other] == 0) & (one != other)
        of_states = is_real & (terms.num_states[other] > 0)
        pairs = [
            np.stack(np.divmod(np.unique(one[at] * size + other[at]), size), axis=1)
            for at in (of_states, of_reals)
        ]
        return cls(terms, np.log(terms.num_joint.astype(np.float64)), *pairs)

    @property
    def touched(self) -> Flags:
        """(variable,): True for a real that has discrete neighbours."""
        found = np.zeros(len(self.terms.num_states), dtype=bool)
        found[self.states[:, 0]] = True
        return found

    def without_cheaper(self, chosen: Flags) -> Flags:
        """(variable,): without reals for which a closed form, given the others, is cheaper."""
        chosen = chosen.copy()
        terms, size = self.terms, len(chosen)
        alone = np.bincount(
            self.states[:, 0], np.log(terms.num_states[self.states[:, 1]]), minlength=size
        )
        for _ in range(MAX_ROUNDS):
            beside = chosen[self.reals[:, 1]]
            number = np.bincount(self.reals[beside, 0], minlength=size)
            is_real = terms.num_states[terms.slots] == 0
            on = np.bincount(terms.term[is_real & chosen[terms.slots]], minlength=len(terms))
            table = np.exp(np.minimum(self.log_states + LOG_NODES * on, 700.0))
            kept = np.bincount(terms.slots, table[terms.term], minlength=size)
            closed = alone + LOG_NODES * number
            cheaper = chosen & (number <= 1) & (closed < np.log(np.maximum(kept, 1.0)))
            cheaper[self.reals[~beside, 0]] = False  # beside a free real
            # Of two neighbours the cheaper one goes, or the first.
            both = self.reals[cheaper[self.reals].all(axis=1)]
            key = closed[both], both
            later = (key[0][:, 0] > key[0][:, 1]) | (
                (key[0][:, 0] == key[0][:, 1]) & (both[:, 0] > both[:, 1])
            )
            cheaper[both[later, 0]] = False
            if not cheaper.any():
                break
            chosen &= ~cheaper
        return chosen

    def with_hubs(self, chosen: Flags, most: int) -> Flags:
        """(variable,): with free reals, where components would couple more promoted ones."""
        chosen = chosen.copy()
        for _ in range(MAX_ROUNDS):
            components = self.components(chosen)
            crowded = np.diff(components.promoted_ptr) > most
            if not crowded.any():
                break
            beside = chosen[self.reals[:, 1]] & ~chosen[self.reals[:, 0]]
            number = np.bincount(self.reals[beside, 0], minlength=len(chosen))
            inside = crowded[components.of_step]
            order = np.lexsort((number[components.real], components.of_step))
            last = np.append(np.diff(components.of_step[order]) > 0, True)
            hubs = order[last & inside[order]]
            chosen[components.real[hubs]] = True
        return chosen

    def components(self, chosen: Flags) -> Components:
        """Components of the free reals, given the promoted ones."""
        terms = self.terms
        is_real = terms.num_states[terms.slots] == 0
        is_free = is_real & ~chosen[terms.slots]
        free = np.unique(terms.slots[is_free]).astype(np.int64)
        coupled = np.unique(terms.term[is_free])
        return find_components(terms.take(coupled), free, np.flatnonzero(chosen))

    def log_cost(self, chosen: Flags, scopes: list[Ids32], log_limit: float) -> float:
        """Log of the entries of all tables, if these reals are promoted; inf beyond the limit."""
        terms = self.terms
        num_states = terms.num_states.copy()
        num_states[chosen] = NUM_NODES
        components = self.components(chosen)
        num_free, promoted = len(components.real), np.flatnonzero(chosen)
        owner = np.repeat(np.arange(components.num_components), np.diff(components.promoted_ptr))
        slots = np.concatenate([components.discrete, promoted[components.promoted - num_free]])
        every = np.concatenate([components.owner, owner])
        order, arity = np.argsort(every, kind="stable"), np.bincount(every)
        left = scopes_by_arity(offsets(arity)[:-1], arity, slots[order].astype(np.int32))
        on_axes = num_states[terms.slots] > 0
        arity = np.bincount(terms.term[on_axes], minlength=len(terms))
        left += scopes_by_arity(offsets(arity)[:-1], arity, terms.slots[on_axes])
        number, states = number_axes(num_states)
        edges = scope_edges([number[scope] for scope in (*scopes, *left)], len(states))
        log_states = np.log(states.astype(np.float64))
        try:
            found = eliminate_tables(log_states, edges, log_limit=log_limit, effort=EFFORT)
        except IntractableError:
            return np.inf
        by_step = log_states[found.order]
        return float(np.logaddexp.reduce(by_step + found.separator_sums(by_step)))
