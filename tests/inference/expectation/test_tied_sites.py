"""Sites of look-alikes are tied to each other, as far as their Gaussians agree."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid_models import random_hybrid
from hylift.graph import FactorGraph, boolean, real
from hylift.inference import EP, infer
from hylift.inference.expectation.layout import Sites
from hylift.inference.expectation.state import Propagation
from hylift.lifting import lift
from hylift.potentials import ConditionalQuadratic
from zoo import ZOO, ZooModel

RINGS = [(0, 1), (1, 2), (2, 0), *((3 + i, 3 + (i + 1) % 6) for i in range(6))]
"""A triangle beside a hexagon, which color passing cannot tell apart."""


def rings(*, switched: bool) -> FactorGraph:
    names = [f"x{i}" for i in range(9)]
    near = ConditionalQuadratic.squared_distance(0.3, [1.0], 1.0).times([0.0, 1.0])
    switches = [(near, [[f"b{i}", f"x{i}"] for i in range(9)])] if switched else []
    variables = dict.fromkeys(names, real)
    if switched:
        variables |= {f"b{i}": boolean for i in range(9)}
    return FactorGraph.build(
        variables,
        [
            (ConditionalQuadratic.product(1.0), [[f"x{i}", f"x{j}"] for i, j in RINGS]),
            (ConditionalQuadratic.square(-1.25), [[name] for name in names]),
            *switches,
        ],
    )


@pytest.mark.parametrize("model", ZOO, ids=str)
def test_lifted_sites_equal_ground_ones(model: ZooModel) -> None:
    graph = model.graph()

    lifted, ground = (infer(graph, EP(), lift=how, rewrite=False) for how in ("exact", "none"))

    assert ground.compare(lifted).max_l1 <= 1e-8
    assert lifted.log_partition is not None
    assert ground.log_partition is not None
    assert lifted.log_partition.value == pytest.approx(ground.log_partition.value, abs=1e-8)


def test_a_triangle_beside_a_hexagon_has_variances_of_its_own() -> None:
    found = infer(rings(switched=False), EP())

    assert lift(rings(switched=False)).num_classes == 1
    assert found.marginal("x0").var == pytest.approx(6 / 7, abs=1e-10)
    assert found.marginal("x3").var == pytest.approx(0.6878306878306878, abs=1e-10)


def test_classes_are_split_where_covariances_disagree() -> None:
    graph = rings(switched=True)
    classes = lift(graph).variable_to_class
    state = Propagation(Sites.of(graph, classes), 1e-9, 100, None)

    tied = len(np.unique(state.tied))
    state.step()

    assert tied == 1
    assert len(np.unique(state.tied)) == 2
    lifted, ground = (infer(graph, EP(), lift=how, rewrite=False) for how in ("exact", "none"))
    assert ground.compare(lifted).max_l1 <= 1e-8


def test_copies_share_their_tilted_distributions() -> None:
    one = random_hybrid(4, 1.0, size=3)
    names = one.variables.names.render().to_pylist()
    domains = [one.variables.domain(v) for v in range(len(names))]
    copies = FactorGraph.build(
        {f"{name}_{k}": d for k in range(5) for name, d in zip(names, domains, strict=True)},
        [
            (group.potential.take(group.row[[f]]), [[f"{names[v]}_{k}" for v in group.scope[f]]])
            for group in one.groups
            for f in range(len(group))
            for k in range(5)
        ],
    )

    alone, found = infer(one, EP(), rewrite=False), infer(copies, EP(), rewrite=False)

    assert alone.log_partition is not None
    assert found.log_partition is not None
    assert found.log_partition.value == pytest.approx(5 * alone.log_partition.value, abs=1e-8)
    for name in [name for name in names if name.startswith("x")]:
        mean = alone.marginal(name).mean
        assert found.marginal(f"{name}_3").mean == pytest.approx(mean, abs=1e-8)
