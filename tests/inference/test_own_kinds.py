"""Potentials of a class of the user's own, which solvers get as functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hylift.errors import ModelError, UnsupportedError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import (
    BVI,
    EPBP,
    NPVI,
    Exact,
    GaBP,
    Lift,
    MaxWalkSAT,
    MeanField,
    Method,
    infer,
)
from hylift.potentials import REAL, ConditionalQuadratic, Function, Potential, Table
from hylift.potentials.base import QuadraticForm


@dataclass(frozen=True, slots=True, eq=False)
class Switched(Potential):
    """-weight |x - y| of two reals if a Boolean between them is true."""

    weight: NDArray[np.float64]  # (row, 1)

    @property
    def num_rows(self) -> int:
        return len(self.weight)

    @property
    def slot_states(self) -> tuple[int, ...]:
        return (REAL, 2, REAL)

    @property
    def signature(self) -> str:
        return "switched"

    @property
    def flat(self) -> NDArray[np.float64]:
        return self.weight

    def with_flat(self, flat: NDArray[np.float64]) -> Switched:
        return Switched(flat)

    @property
    def averages(self) -> bool:
        return True

    def exchange(self, first: int, second: int) -> NDArray[np.intp] | None:
        return np.arange(1) if {first, second} <= {0, 2} or first == second else None

    def log_value(self, row: Any, slots: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        return apart(slots[1], slots[0], slots[2], self.weight[row, 0])

    def reduce(self, row: Any, slots: Any, values: Any) -> tuple[Potential, Any]:
        raise NotImplementedError

    def stack(self, others: Sequence[Switched]) -> Switched:
        return Switched(np.concatenate([self.weight, *(other.weight for other in others)]))

    def take(self, rows: Any) -> Switched:
        return Switched(self.weight[rows])


def apart(on: Any, x: Any, y: Any, weight: Any) -> Any:
    return -weight * on * np.abs(x - y)


DOMAINS = {"x": interval(0, 10), "on": boolean, "y": interval(0, 10), "z": interval(0, 10)}
REST = [
    (ConditionalQuadratic.squared_distance(0.5, [1.0], 3.0), ["x"]),
    (Table.shared([0.0, 0.7]), ["on"]),
]
OWN = FactorGraph.build(
    DOMAINS,
    [
        (Switched(np.array([[1.0], [1.0]])), [["x", "on", "y"], ["y", "on", "z"]]),
        *REST,
    ],
)
FUNCTION = FactorGraph.build(
    DOMAINS,
    [
        (
            Function(apart, 1, 2, np.array([[1.0]]), symmetric=((1, 2),)),
            [["on", "x", "y"], ["on", "y", "z"]],
        ),
        *REST,
    ],
)


@pytest.mark.parametrize(
    ("method", "lift"),
    [
        (Exact(), "exact"),
        (BVI(2), "exact"),
        (BVI(2), "coarse-to-fine"),
        (NPVI(2), "exact"),
        (MeanField(), "none"),
        (EPBP(20), "exact"),
    ],
    ids=str,
)
def test_a_kind_of_ones_own_has_the_answers_of_the_function_that_it_is(
    method: Method, lift: Lift
) -> None:
    own, function = (
        infer(graph.observe({"z": 6.0}), method, lift=lift) for graph in (OWN, FUNCTION)
    )

    assert own.log_partition is not None
    assert function.log_partition is not None
    assert own.log_partition.value == pytest.approx(function.log_partition.value, abs=1e-6)
    assert own.marginal("y").mean == pytest.approx(function.marginal("y").mean, abs=1e-6)


class Mixed(Switched):
    """-weight (x - y)² of two reals if a Boolean between them is true, without its own `reduce`."""

    __slots__ = ()

    def log_value(self, row: Any, slots: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        return -self.weight[row, 0] * slots[1] * (slots[0] - slots[2]) ** 2

    def with_flat(self, flat: NDArray[np.float64]) -> Mixed:
        return type(self)(flat)

    def take(self, rows: Any) -> Mixed:
        return type(self)(self.weight[rows])

    def reduce(self, row: Any, slots: Any, values: Any) -> tuple[Potential, Any]:
        return Potential.reduce(self, row, slots, values)


class MixedQuadratic(Mixed):
    """The same with its quadratic form."""

    __slots__ = ()

    def quadratic(self) -> QuadraticForm:
        A = np.zeros((self.num_rows, 2, 2, 2))
        A[:, 1] = -self.weight[:, :, None] * np.array([[1, -1], [-1, 1]])
        return QuadraticForm(A, np.zeros((self.num_rows, 2, 2)), np.zeros((self.num_rows, 2)))


@pytest.mark.parametrize("kind", [Mixed, MixedQuadratic])
@pytest.mark.parametrize("seen", [{"x": 4.0}, {"on": True}, {"on": True, "y": 1.0}], ids=str)
def test_a_graph_that_was_conditioned_by_hand_has_the_same_answers(
    kind: type[Mixed], seen: dict[str, Any]
) -> None:
    graph = FactorGraph.build(DOMAINS, [(kind(np.array([[0.3]])), ["x", "on", "y"]), *REST])
    graph = graph.observe({**seen, "z": 1.0})

    whole, hidden = (infer(one, Exact()) for one in (graph, graph.condition()))

    assert whole.log_partition is not None
    assert hidden.log_partition is not None
    assert hidden.log_partition.value == pytest.approx(whole.log_partition.value, abs=1e-10)


def test_a_conditioned_quadratic_stays_one() -> None:
    graph = FactorGraph.build(
        {"x": real, "on": boolean, "y": real},
        [
            (MixedQuadratic(np.array([[0.3]])), ["x", "on", "y"]),
            (ConditionalQuadratic.square(-0.5), ["y"]),
        ],
    ).observe({"x": 2.0})

    on = infer(graph.condition(), Exact()).marginal("on")

    # E[exp(-0.3 (2 - y)²)] over y ~ N(0, 1), by hand.
    odds = np.exp(-1.2 / 1.6) / np.sqrt(1.6)
    assert on.probs[1] == pytest.approx(odds / (1 + odds), abs=1e-12)


def test_a_search_takes_a_kind_of_ones_own() -> None:
    own, function = (
        infer(graph, MaxWalkSAT(flips=100), tasks="map").map() for graph in (OWN, FUNCTION)
    )

    assert own.energy == pytest.approx(function.energy, abs=1e-6)


def test_what_refuses_functions_refuses_a_kind_of_ones_own() -> None:
    with pytest.raises(UnsupportedError, match="'y': GaBP needs quadratics"):
        infer(OWN.observe({"on": 1, "x": 3.0}), GaBP())


def test_errors_call_a_kind_of_ones_own_by_its_name() -> None:
    broken = FactorGraph.build(DOMAINS, [(Switched(np.array([[np.nan]])), ["x", "on", "y"]), *REST])

    with pytest.raises(ModelError, match="the potential 'Switched' returned nan at"):
        infer(broken, EPBP(20))
