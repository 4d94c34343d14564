"""What is drawn of a lifted graph: circles, squares, and the labels of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.lifting.predicates import Predicates

MAX_SQUARES = 120
"""Factor classes that are drawn."""

MAX_ALIKE = 3
"""Factor classes of the same variables that are drawn one by one."""

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
        """The largest classes of a lifted graph, and the factors that have no others."""
        size = graph.variables.multiplicity
        shown = _largest(graph, max_classes)
        predicates = Predicates.of(graph.variables.names)
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


def _largest(graph: FactorGraph, count: int) -> NDArray[np.int64]:
    """The largest classes; of those of one size, the ones with most factors."""
    num_slots = np.zeros(graph.num_variables)
    for group in graph.groups:
        num_slots += np.bincount(group.scope.ravel(), minlength=graph.num_variables)
    order = np.lexsort([-num_slots, -graph.variables.multiplicity])
    return np.sort(order[:count])


def _labels(
    graph: FactorGraph,
    shown: NDArray[np.int64],
    predicates: list[str],
    num_classes: NDArray[np.int64],
) -> tuple[str, ...]:
    """A class is called by its predicate if it is the only one, and by its first member if not.

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


def _squares(
    graph: FactorGraph, shown: NDArray[np.int64]
) -> list[tuple[tuple[int, ...], str, int]]:
    """What is drawn as a square: its circles, its label, and how many factor classes it is.

    Many classes of factors over the same circles, which differ in parameters, are one square.
    """
    circle = np.full(graph.num_variables, -1, dtype=np.int64)
    circle[shown] = np.arange(len(shown))
    inside: list[tuple[float, list[int]]] = []
    for group in graph.groups:
        factors = np.flatnonzero((circle[group.scope] >= 0).all(axis=1))
        size = group.multiplicity[factors]
        largest = np.sort(np.argsort(-size, kind="stable")[:MAX_SQUARES])
        scopes = circle[group.scope[factors[largest]]]
        inside += zip(size[largest].tolist(), scopes.tolist(), strict=True)
    order = sorted(range(len(inside)), key=lambda place: -inside[place][0])
    alike: dict[tuple[int, ...], list[float]] = {}
    for place in sorted(order[:MAX_SQUARES]):
        size_of_class, scope = inside[place]
        alike.setdefault(tuple(sorted(scope)), []).append(size_of_class)
    found = []
    for circles, sizes in alike.items():
        if len(sizes) > MAX_ALIKE:
            found.append((circles, f"{len(sizes)} classes", len(sizes)))
        else:
            found += [(circles, _count(one, circles), 1) for one in sizes]
    return found


def _count(size: float, circles: tuple[int, ...]) -> str:
    """How many factors, and in how many slots a class stands if that is more than two."""
    most = max(map(circles.count, circles))
    words = [_times(size)] if size > 1 else []
    return ", ".join([*words, f"{most} slots"] if most > 2 else words)


def _times(size: float) -> str:
    return f"×{size:,.0f}"
