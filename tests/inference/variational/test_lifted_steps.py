"""Lifted and ground runs from the same tied start are the same, step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hylift.graph import FactorGraph, boolean, categorical, real
from hylift.inference import Adam, NaturalGradient, NaturalNewton
from hylift.inference.variational.objective import Entropy, Objective
from hylift.inference.variational.optimisers import Optimiser
from hylift.inference.variational.products import Ascent
from hylift.lifting import Lifting, lift
from hylift.potentials import ConditionalQuadratic, Table
from inference.variational.candidates import problem_of, random_mixtures, spread
from random_models import symmetric_graphs
from zoo import friends_and_smokers, relational_gaussian_model, toy_hybrid_mln

PRICE = 20.0

STEPS: dict[str, tuple[Optimiser, int]] = {
    "natural gradient": (NaturalGradient(), 15),
    # Quasi-Newton steps magnify rounding about tenfold each.
    "natural gradient, then L-BFGS": (NaturalNewton(natural_steps=6), 11),
    "Adam": (Adam(learning_rate=0.05), 15),
}


def switching_ring(size: int = 6) -> FactorGraph:
    """Reals on a ring, each with a state that says where it belongs."""
    ring = range(size)
    variables = {f"s{i}": categorical(3) for i in ring} | {f"x{i}": real for i in ring}
    place = ConditionalQuadratic.gaussian([[-1.0], [0.0], [2.0]], [[[0.5]], [[1.0]], [[2.0]]])
    return FactorGraph.build(
        variables,
        [
            (place, [[f"s{i}", f"x{i}"] for i in ring]),
            (
                ConditionalQuadratic.squared_distance(0.3, [1, -1]),
                [[f"x{i}", f"x{(i + 1) % size}"] for i in ring],
            ),
        ],
    )


def check_steps(
    lifting: Lifting,
    entropy: Entropy,
    optimiser: Optimiser,
    num_steps: int,
    *,
    betas: bool,
    num_components: int,
    seed: int,
) -> None:
    lifted = problem_of(lifting.graph, betas=betas, lifting=lifting)
    ground = problem_of(lifting.ground, betas=betas)
    rng = np.random.default_rng(seed)
    tied = random_mixtures(lifted, 1, num_components, rng)
    to_class = lifting.variable_to_class
    few, all_of_them = (Objective(p, entropy, "search", PRICE) for p in (lifted, ground))
    of_classes = optimiser.begin(few, tied)
    of_members = optimiser.begin(all_of_them, spread(tied, lifted, ground, to_class))

    for step in range(num_steps):
        of_classes = optimiser.step(few, of_classes)
        of_members = optimiser.step(all_of_them, of_members)

        expected = spread(of_classes.q, lifted, ground, to_class)
        told = f"step {step + 1}"
        np.testing.assert_allclose(
            of_members.q.weights, expected.weights, rtol=1e-10, atol=1e-10, err_msg=told
        )
        np.testing.assert_allclose(
            of_members.q.entries, expected.entries, rtol=1e-10, atol=1e-10, err_msg=told
        )
        np.testing.assert_allclose(of_members.at.value, of_classes.at.value, rtol=1e-10)


@pytest.mark.parametrize("betas", [False, True], ids=["Gaussian", "Beta"])
@pytest.mark.parametrize("entropy", ["bethe", "jensen", "tracey"])
@pytest.mark.parametrize("optimiser", STEPS)
@pytest.mark.parametrize(
    "graph",
    [toy_hybrid_mln, friends_and_smokers, relational_gaussian_model, switching_ring],
)
def test_lifted_and_ground_steps_are_the_same(
    graph: Callable[[], FactorGraph], optimiser: str, entropy: Entropy, betas: bool
) -> None:
    lifting = lift(graph())
    assert lifting.num_classes < lifting.ground.num_variables

    check_steps(lifting, entropy, *STEPS[optimiser], betas=betas, num_components=2, seed=3)


@settings(max_examples=40)
@given(
    symmetric_graphs(max_copies=4, max_relations=3, multiplicities=False),
    st.sampled_from(["bethe", "jensen", "tracey"]),
    st.integers(1, 3),
)
def test_natural_steps_of_random_graphs_are_the_same(
    graph: FactorGraph, entropy: Entropy, num_components: int
) -> None:
    check_steps(
        lift(graph), entropy, NaturalGradient(), 4, betas=True, num_components=num_components,
        seed=0,
    )  # fmt: skip


@pytest.mark.parametrize("num_sweeps", [1, 2, 5, 30])
def test_lifted_and_ground_sweeps_are_the_same(num_sweeps: int) -> None:
    """Where no class neighbours itself, and members follow each other in the ground graph."""
    lifting = lift(toy_hybrid_mln())
    assert (np.diff(lifting.variable_to_class) >= 0).all()
    lifted, ground = (problem_of(g, betas=False) for g in (lifting.graph, lifting.ground))
    rng = np.random.default_rng(1)
    tied = random_mixtures(lifted, 1, 1, rng)
    to_class = lifting.variable_to_class

    few = Ascent.of(lifted, np.inf).follow(tied, most_sweeps=num_sweeps)
    many = Ascent.of(ground, np.inf).follow(
        spread(tied, lifted, ground, to_class), most_sweeps=num_sweeps
    )

    expected = spread(few.q, lifted, ground, to_class)
    np.testing.assert_allclose(many.entries, expected.entries, rtol=1e-10, atol=1e-10)
    assert few.value == pytest.approx(many.value, rel=1e-10)
    assert few.at_rest.tolist() == many.at_rest.tolist()


@pytest.mark.parametrize("num_sweeps", [2, 12, 30])
@pytest.mark.parametrize("graph", [friends_and_smokers, switching_ring, toy_hybrid_mln])
def test_products_that_are_followed_together_do_not_touch_each_other(
    graph: Callable[[], FactorGraph], num_sweeps: int
) -> None:
    problem = problem_of(lift(graph()).graph, betas=False)
    q = random_mixtures(problem, 3, 1, np.random.default_rng(4))
    ascent = Ascent.of(problem, PRICE)

    together = ascent.follow(q, most_sweeps=num_sweeps)

    for start in range(3):
        alone = ascent.follow(q.take([start]), most_sweeps=num_sweeps)
        np.testing.assert_allclose(together.entries[start], alone.entries[0], rtol=1e-6, atol=1e-9)
        assert together.value[start] == pytest.approx(alone.value[0], rel=1e-9)


def test_sweeps_never_raise_the_free_energy_of_classes_that_neighbour_themselves() -> None:
    """All members move at once, and may overshoot: then they go half the way."""
    pairs = [[f"a{i}", f"a{j}"] for i in range(6) for j in range(i)]
    apart = Table.shared([[-2.0, 1.0], [1.0, -2.0]])
    graph = FactorGraph.build(
        {f"a{i}": boolean for i in range(6)},
        [(apart, pairs), (Table.shared([0.0, 0.3]), [[f"a{i}"] for i in range(6)])],
    )
    lifting = lift(graph)
    assert lifting.num_classes == 1
    problem = problem_of(lifting.graph, betas=False)
    ascent, neutral = Ascent.of(problem, np.inf), problem.neutral()
    told = [Objective(problem, "bethe", "final").evaluate(neutral).value[0]]

    for _ in range(200):
        found = ascent.follow(neutral, most_sweeps=len(told))
        told.append(found.value[0])
        if found.at_rest.all():
            break
    (value,) = found.value

    assert found.at_rest.all()
    assert (np.diff(told) <= 1e-9).all()
    assert Objective(problem, "bethe", "final").evaluate(found.q).value[0] == pytest.approx(value)
    # No tied product is better: one parameter, looked through.
    objective = Objective(problem, "bethe", "final")
    p = np.linspace(0.001, 0.999, 999)
    q = random_mixtures(problem, len(p), 1, np.random.default_rng(0))
    q.entries[:, 0, 0], q.entries[:, 1, 0] = 1 - p, p
    assert value <= objective.evaluate(q).value.min() + 1e-9
