"""The part of a lifted graph that is drawn, as labelled circles and squares."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.graph.names import Predicates
from hylift.numerics.segments import inverse

MAX_SQUARES = 80
"""Most squares drawn."""

MAX_ALIKE = 3
"""Most factor classes over the same variables that are drawn one by one."""

MAX_LABEL = 28
"""Letters of a label."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassGraph:
    """Circles for classes of variables, and squares for classes of factors among them."""

    labels: tuple[str, ...]  # (circle,)
    size: NDArray[np.float64]  # (circle,): ground variables
    predicate: NDArray[np.int64]  # (circle,): index into `predicates`
    predicates: tuple[str, ...]
    slots: tuple[NDArray[np.int64], ...]  # (square,): circle in each slot
    counts: tuple[str, ...]  # (square,): how many ground factors, or classes of them
    num_variables_left: int
    """Classes of variables that are not drawn."""
    num_factors_left: int

    @classmethod
    def of(cls, graph: FactorGraph, max_classes: int) -> ClassGraph:
        """Some classes of a lifted graph, and the factors that have no others."""
        size = graph.variables.multiplicity
        predicates = Predicates.of(graph.variables.names)
        shown = _sample(graph, predicates.of_variable, max_classes)
        num_classes = np.bincount(predicates.of_variable, minlength=len(predicates.names))
        present, predicate = np.unique(predicates.of_variable[shown], return_inverse=True)
        names = tuple(predicates.names[place] for place in present.tolist())
        squares = _squares(graph, shown)
        return cls(
            _labels(graph, shown, [names[p] for p in predicate], num_classes[present][predicate]),
            size[shown],
            predicate,
            names,
            tuple(np.array(scope) for scope, _, _ in squares),
            tuple(count for _, count, _ in squares),
            graph.num_variables - len(shown),
            graph.num_factors - sum(number for _, _, number in squares),
        )

    @property
    def num_circles(self) -> int:
        return len(self.labels)

    @property
    def joined(self) -> list[NDArray[np.int64]]:
        """Per square: the circles it is joined to, each once."""
        return [np.unique(slots) for slots in self.slots]


def _labels(
    graph: FactorGraph,
    shown: NDArray[np.int64],
    predicates: list[str],
    num_classes: NDArray[np.int64],
) -> tuple[str, ...]:
    """A class is named by its predicate if that has no other class, else by its first member.

    num_classes: (circle,), of its predicate.
    """
    atoms = graph.variables.names.render(shown).to_pylist()
    sizes = graph.variables.multiplicity[shown].tolist()
    labels = []
    for atom, predicate, count, size in zip(
        atoms, predicates, num_classes.tolist(), sizes, strict=True
    ):
        name = predicate if count == 1 and size > 1 else atom
        short = name if len(name) <= MAX_LABEL else name[: MAX_LABEL - 1] + "…"
        labels.append(f"{short}\n{_times(size)}" if size > 1 else short)
    return tuple(labels)


Square = tuple[tuple[int, ...], str, int]
"""Its circles, its label, and how many factor classes it is."""


def _squares(graph: FactorGraph, shown: NDArray[np.int64]) -> list[Square]:
    """The squares that are drawn.

    Many classes of factors over the same circles, which differ in parameters, are one square.
    """
    circle = inverse(shown, graph.num_variables)
    alike: dict[tuple[int, ...], list[float]] = {}
    count: Counter[tuple[int, ...]] = Counter()
    for group in graph.groups:
        factors = np.flatnonzero((circle[group.scope] >= 0).all(axis=1))
        scope = np.sort(circle[group.scope[factors]], axis=1)
        distinct, first, which = np.unique(scope, axis=0, return_index=True, return_inverse=True)
        which = which.ravel()
        order = np.lexsort([-group.multiplicity[factors], which])
        begin = np.searchsorted(which[order], np.arange(len(distinct) + 1))
        for place in np.argsort(first).tolist():
            circles = tuple(distinct[place].tolist())
            largest = order[begin[place] : begin[place + 1]][: MAX_ALIKE + 1]
            alike.setdefault(circles, []).extend(group.multiplicity[factors[largest]].tolist())
            count[circles] += int(begin[place + 1] - begin[place])
    found: list[tuple[float, Square]] = []
    for circles, sizes in alike.items():
        if count[circles] > MAX_ALIKE:
            square = (circles, f"{count[circles]:,} classes", count[circles])
            found.append((max(sizes), square))
        else:
            found += [(one, (circles, _count(one, circles), 1)) for one in sizes]
    return _first([square for _, square in found], [size for size, _ in found], len(shown))


def _first(squares: list[Square], size: list[float], num_circles: int) -> list[Square]:
    """The squares that are drawn: first those that keep circles connected, then others that join
    circles, large ones before small ones."""
    if len(squares) <= MAX_SQUARES:
        return squares
    order = sorted(range(len(squares)), key=lambda place: -size[place])
    component = np.arange(num_circles)
    rank = {}
    for place in order:
        circles = list(squares[place][0])
        joined = np.unique(component[circles])
        rank[place] = 0 if len(joined) > 1 else 1 if len(set(circles)) > 1 else 2
        component[np.isin(component, joined)] = joined[0]
    best = sorted(order, key=rank.__getitem__)[:MAX_SQUARES]
    return [squares[place] for place in sorted(best)]


def _count(size: float, circles: tuple[int, ...]) -> str:
    """The number of factors, and of slots of a class if it is in more than two."""
    most = max(map(circles.count, circles))
    words = [_times(size)] if size > 1 else []
    return ", ".join([*words, f"{most} slots"] if most > 2 else words)


def _times(size: float) -> str:
    return f"×{size:,.0f}" if size == round(size) else f"×{size:,.4g}"


def _sample(graph: FactorGraph, predicate: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """(circle,): connected classes that cover all predicates, if there is room.

    The largest class is the first. Then factors lead from what is chosen to what is not: those
    first that lead to a predicate of which there is nothing yet, then those that lead to the
    largest classes.
    """
    if graph.num_variables <= count:
        return np.arange(graph.num_variables)
    num_slots = np.zeros(graph.num_variables)
    for group in graph.groups:
        num_slots += np.bincount(group.scope.ravel(), minlength=graph.num_variables)
    largest_first = np.lexsort([-num_slots, -graph.variables.multiplicity])
    rank = inverse(largest_first, graph.num_variables)
    chosen = np.zeros(graph.num_variables, dtype=bool)
    while (room := count - int(chosen.sum())) > 0:
        is_absent = ~np.isin(predicate, predicate[chosen])
        # One place is reserved for each absent predicate, which factors may never reach.
        spare = room - len(np.unique(predicate[is_absent]))
        more = _reached(graph, chosen, is_absent, rank, spare)
        if not len(more):  # the largest class, of an absent predicate if there is one
            free = np.flatnonzero(is_absent if is_absent.any() else ~chosen)
            more = free[[np.argmin(rank[free])]]
        chosen[more] = True
    return np.flatnonzero(chosen)


def _reached(
    graph: FactorGraph,
    chosen: NDArray[np.bool_],
    is_absent: NDArray[np.bool_],
    rank: NDArray[np.int64],
    spare: int,
) -> NDArray[Any]:
    """The unchosen classes of the best factor that touches a chosen one, if there is any.

    is_absent: (class,), whether no class of its predicate is chosen; spare: classes that may be
    added, besides one of an absent predicate.
    """
    best, least = np.zeros(0, dtype=np.int32), (2, 0)
    for group in graph.groups:
        inside = chosen[group.scope]
        missing = (~inside).sum(axis=1)
        leads_on = np.asarray(is_absent[group.scope].any(axis=1))
        fits = inside.any(axis=1) & (missing > 0) & (missing <= spare + leads_on)
        factors = np.flatnonzero(fits)
        if len(factors):
            ranks = np.where(inside, len(rank), rank[group.scope])[factors].min(axis=1)
            first = np.lexsort([ranks, ~leads_on[factors]])[0]
            key = (int(not leads_on[factors[first]]), int(ranks[first]))
            if key < least:
                slots = group.scope[factors[first]]
                best, least = slots[~chosen[slots]], key
    return best
