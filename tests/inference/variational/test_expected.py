"""Potentials that know their expectations: closed forms in place of quadrature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erf

from answers import infer
from hylift.errors import ModelError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import BVI, NPVI, Exact, MeanField
from hylift.inference.prepared import Prepared
from hylift.inference.variational.objective import Entropy, Objective
from hylift.posterior import LogPartition
from hylift.potentials import ConditionalQuadratic, Function, Potential, Table
from hylift.potentials.base import REAL, ExpectedLogValue, checked_flat, frozen_floats
from inference.variational.candidates import problem_of, random_mixtures
from inference.variational.test_gradients import analytic, finite_differences

Array = NDArray[np.float64]
WIDE = interval(-15, 20)
"""Bounds that do not matter, without which exact inference takes no functions."""


@dataclass(frozen=True, slots=True, eq=False)
class SwitchedLaplace(Potential):
    """-weight |x - y| in the second state of a Boolean; the slots are (x, on, y)."""

    weight: Array  # (row, 1)
    asked: list[int]

    num_rows = property(lambda self: len(self.weight))
    slot_states = property(lambda self: (REAL, 2, REAL))
    signature = property(lambda self: "switched laplace")
    flat = property(lambda self: self.weight)
    averages = property(lambda self: True)

    def with_flat(self, flat: Array) -> SwitchedLaplace:
        return SwitchedLaplace(frozen_floats(checked_flat(flat, 1), "a weight"), self.asked)

    def exchange(self, first: int, second: int) -> NDArray[np.intp] | None:
        return np.arange(1) if {first, second} == {0, 2} else None

    def log_value(self, row: NDArray[Any], slots: Sequence[NDArray[Any]]) -> Array:
        x, on, y = slots
        return np.asarray(-self.weight[row, 0] * on * np.abs(x - y))

    def expected(self, row: NDArray[Any], slots: Sequence[Array]) -> ExpectedLogValue:
        """By the mean of a folded normal."""
        self.asked.append(len(row))
        x, on, y = slots
        mean, var = x[:, 0] - y[:, 0], x[:, 1] + y[:, 1]
        density = np.exp(-0.5 * mean**2 / var) / np.sqrt(2 * np.pi * var)
        sign = erf(mean / np.sqrt(2 * var))
        distance = mean * sign + 2 * var * density
        scale = -self.weight[row, 0]
        by_mean, by_var = scale * on[:, 1] * sign, scale * on[:, 1] * density
        return ExpectedLogValue(
            scale * on[:, 1] * distance,
            [
                np.column_stack([by_mean, by_var]),
                np.column_stack([np.zeros(len(row)), scale * distance]),
                np.column_stack([-by_mean, by_var]),
            ],
        )

    def reduce(
        self, row: NDArray[Any], slots: tuple[int, ...], values: Array
    ) -> tuple[Potential, NDArray[Any]]:
        raise AssertionError("evidence is filled in by `Function`")

    def stack(self, others: Sequence[SwitchedLaplace]) -> SwitchedLaplace:
        weight = np.concatenate([self.weight, *(other.weight for other in others)])
        return SwitchedLaplace(weight, self.asked)

    def take(self, rows: NDArray[Any]) -> SwitchedLaplace:
        return SwitchedLaplace(self.weight[rows], self.asked)


def switched(on: NDArray[Any], x: Array, y: Array, weight: Array) -> Array:
    return np.asarray(-weight * on * np.abs(x - y))


def chain(*, own: bool, domain: Any = real) -> FactorGraph:
    """Reals tied by Laplace factors while a switch is on; by a function where not `own`."""
    asked: list[int] = []
    links: list[tuple[Potential, list[str]]] = []
    for weight, (x, y) in ((1.5, "xy"), (0.7, "yz")):
        rows = np.array([[weight]])
        if own:
            links.append((SwitchedLaplace(rows, asked), [x, "on", y]))
        else:
            links.append((Function(switched, 1, 2, rows), ["on", x, y]))
    return FactorGraph.build(
        {"on": boolean, "x": domain, "y": domain, "z": domain},
        [
            *links,
            (Table.shared([0.0, 0.8]), ["on"]),
            (ConditionalQuadratic.squared_distance(0.5, [1.0], 1.0), [["x"], ["y"]]),
            (ConditionalQuadratic.squared_distance(0.8, [1.0], 4.0), ["z"]),
        ],
    )


def asked_of(graph: FactorGraph) -> list[int]:
    potential = graph.groups[0].potential
    assert isinstance(potential, SwitchedLaplace)
    return potential.asked


@pytest.mark.parametrize("entropy", ["bethe", "jensen", "tracey"])
def test_a_closed_form_is_what_quadrature_comes_to(entropy: Entropy) -> None:
    own, other = (
        problem_of(Prepared.of(chain(own=own)).ground, betas=False) for own in (True, False)
    )
    q = random_mixtures(own, 3, 2, np.random.default_rng(0))

    found = Objective(own, entropy, "search").evaluate(q)
    exact = Objective(other, entropy, "search").evaluate(q)
    fine = Objective(other, entropy, "check").evaluate(q)

    # Of a kink, Gauss nodes see little: the finer rule comes nearer.
    assert found.value == pytest.approx(exact.value, abs=0.2)
    if entropy == "jensen":
        assert (np.abs(found.value - fine.value) < np.abs(found.value - exact.value)).all()


@pytest.mark.parametrize("entropy", ["bethe", "jensen", "tracey"])
def test_gradients_of_a_closed_form_are_those_of_finite_differences(entropy: Entropy) -> None:
    problem = problem_of(Prepared.of(chain(own=True)).ground, betas=False)
    q = random_mixtures(problem, 1, 1 if entropy == "bethe" else 2, np.random.default_rng(1))
    objective = Objective(problem, entropy, "search")

    np.testing.assert_allclose(
        analytic(objective, q), finite_differences(objective, q), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("method", [NPVI(2), MeanField()], ids=lambda method: method.name)
def test_a_closed_form_certifies_the_bound(method: NPVI | MeanField) -> None:
    graph = chain(own=True)

    found = infer(graph, method)
    by_quadrature = infer(chain(own=False), method)

    assert found.log_partition is not None
    assert by_quadrature.log_partition is not None
    assert found.log_partition.kind == "lower bound"
    assert found.log_partition.error == 0.0
    assert by_quadrature.log_partition.kind == "estimate"
    assert not any("quadrature" in note for note in found.solution.notes)
    exact = infer(chain(own=False, domain=WIDE), Exact()).log_partition
    assert isinstance(exact, LogPartition)
    assert exact.value - 2.0 < found.log_partition.value < exact.value
    assert asked_of(graph)


def test_bethe_uses_the_closed_form_too() -> None:
    graph, same = (chain(own=True, domain=d).observe({"z": 3.0}) for d in (real, WIDE))

    found, exact = infer(graph, BVI(2)), infer(same, Exact())

    assert asked_of(graph)
    assert any(
        "The same mixture proves that log Z is at least" in note for note in found.solution.notes
    )
    assert found.log_partition is not None
    assert exact.log_partition is not None
    assert exact.log_partition.value - 1.0 < found.log_partition.lower < exact.log_partition.value
    for name in ("x", "y"):
        assert found.marginal(name).mean == pytest.approx(exact.marginal(name).mean, abs=0.05)


def test_betas_are_integrated_by_quadrature() -> None:
    graph = chain(own=True, domain=interval(0, 5))

    found = infer(graph, NPVI(2, reals="beta"))

    assert found.log_partition is not None
    assert found.log_partition.kind == "estimate"


def test_a_group_with_betas_behind_gaussians_is_no_certified_bound() -> None:
    laplace = SwitchedLaplace(np.ones((1, 1)), [])
    graph = FactorGraph.build(
        {"on": boolean, "x": real, "y": real, "a": interval(0, 1), "b": interval(0, 1)},
        [
            (laplace, [["x", "on", "y"], ["a", "on", "b"]]),
            (ConditionalQuadratic.square(-0.5), [["x"], ["y"]]),
        ],
    )

    found = infer(graph, NPVI(2), lift="none").log_partition

    assert found is not None
    assert found.kind == "estimate"


class Distance:
    """-|x - y|, whose closed form divides by both variances."""

    def __call__(self, x: Array, y: Array) -> Array:
        return np.asarray(-np.abs(x - y))

    def expected(self, slots: list[Array]) -> ExpectedLogValue:
        x, y = slots
        with np.errstate(invalid="ignore"):
            var = x[:, 1] ** 2 / x[:, 1] + y[:, 1] ** 2 / y[:, 1]
        mean = x[:, 0] - y[:, 0]
        density = np.exp(-0.5 * mean**2 / var) / np.sqrt(2 * np.pi * var)
        sign = erf(mean / np.sqrt(2 * var))
        own = np.column_stack([-sign, -density])
        other = np.column_stack([sign, -density])
        return ExpectedLogValue(-(mean * sign + 2 * var * density), [own, other])


def test_a_closed_form_that_takes_no_observed_reals_leaves_them_to_quadrature() -> None:
    square = (ConditionalQuadratic.square(-0.5), [["x"], ["y"]])
    graph = FactorGraph.build(
        {"x": real, "y": real}, [(Function(Distance(), 0, 2), ["x", "y"]), square]
    )

    found = infer(graph.observe({"x": 1.0}), NPVI(1)).log_partition
    plain = (Function(lambda x, y: -np.abs(x - y), 0, 2), ["x", "y"])
    wanted = infer(
        FactorGraph.build({"x": real, "y": real}, [plain, square]).observe({"x": 1.0}), NPVI(1)
    ).log_partition

    assert found is not None
    assert wanted is not None
    assert found.kind == "estimate"
    assert found.value == pytest.approx(wanted.value, abs=1e-9)


def test_expected_counts_use_the_closed_form() -> None:
    graph = chain(own=True)

    found = infer(graph, MeanField())

    mean = {name: found.marginal(name).mean for name in "xyz"}
    var = {name: found.marginal(name).std ** 2 for name in "xyz"}
    on = found.marginal("on").probs
    for row, (x, y) in enumerate(("xy", "yz")):
        potential = graph.groups[row].potential
        slots = [np.array([[mean[x], var[x]]]), on[None], np.array([[mean[y], var[y]]])]
        expected = potential.expected(np.zeros(1, dtype=np.int32), slots)
        assert expected is not None
        count = found.expected_counts()["expected"][row].as_py()
        assert count == pytest.approx(expected.value[0], abs=1e-10)


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (lambda slots: 5.0, "must return values and a list of gradients, not 5.0"),
        (lambda slots: (np.zeros(7), []), "must return values of shape"),
        (
            lambda slots: (np.full(len(slots[0]), np.nan), [np.zeros_like(s) for s in slots]),
            "returned NaN",
        ),
    ],
)
def test_an_expectation_of_another_form_is_refused(
    returned: Callable[[list[Array]], Any], text: str
) -> None:
    class Square:
        def __call__(self, x: Array) -> Array:
            return -(x**2)

        def expected(self, slots: list[Array]) -> Any:
            return returned(slots)

    graph = FactorGraph.build(
        {"x": real},
        [(Function(Square(), num_reals=1), ["x"]), (ConditionalQuadratic.square(-1.0), ["x"])],
    )

    with pytest.raises(ModelError, match=rf"expected\(\) of Function {text}"):
        infer(graph, MeanField())
