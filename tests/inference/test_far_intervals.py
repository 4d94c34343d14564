"""Exact inference over bounded reals that numbers only just resolve, or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, interval
from hylift.inference import Exact, infer
from hylift.potentials import ConditionalQuadratic


@pytest.mark.parametrize(
    ("lower", "width", "mean", "std"),
    [
        (1e8, 1.0, 1e8 + 0.2, 0.3),
        (1e7, 1.0, 1e7 + 0.2, 0.3),
        (1e8, 1e-6, 1e8, 1.0),
        (1.0, 1e-14, 1.0, 1.0),
        (0.0, 1.0, 1e30, 1.0),  # all of it nearer to 1 than any other number
        (-1.0, 1.0, -1e30, 1.0),
    ],
)
def test_a_real_that_numbers_do_not_resolve_is_refused_by_name(
    lower: float, width: float, mean: float, std: float
) -> None:
    graph = FactorGraph.build(
        {"far": interval(lower, lower + width)},
        [(ConditionalQuadratic.gaussian([mean], [[std**2]]), ["far"])],
    )

    with pytest.raises(
        UnsupportedError,
        match=r"^'far' varies by less than floating-point numbers of its size can resolve: "
        r"give it another origin or unit$",
    ):
        infer(graph, Exact())


def slope(value: float, origin: float) -> ConditionalQuadratic:
    """A density that grows by the factor e^value per unit, and is 1 at the origin."""
    return ConditionalQuadratic(
        np.zeros((1, 1, 1)), np.array([[value]]), np.array([-value * origin])
    )


@pytest.mark.parametrize("lower", [0.0, 1000.0, -1001.0])
def test_a_steep_real_does_not_take_the_panels_of_a_far_one_apart(lower: float) -> None:
    steep = 1e15
    graph = FactorGraph.build(
        {"far": interval(lower, lower + 1.0), "steep": interval(0.0, 1.0)},
        [(slope(2.0, lower), ["far"]), (slope(-steep, 0.0), ["steep"])],
    )

    found = infer(graph, Exact())

    log_z = np.log((np.e**2 - 1) / 2) - np.log(steep)
    assert float(found.log_partition) == pytest.approx(log_z, abs=1e-10)
    mean = 1 / (1 - np.exp(-2)) - 0.5
    assert found.marginal("far").mean - lower == pytest.approx(mean, abs=1e-9)
    assert found.marginal("steep").mean == pytest.approx(1 / steep, rel=1e-6)
