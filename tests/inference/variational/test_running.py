"""How a run goes: starts, steps, time, callbacks, history, restarts, liftings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from answers import infer
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import BVI, NPVI, Adam, MeanField, NaturalGradient, Step
from hylift.posterior import History, Posterior
from hylift.potentials import ConditionalQuadratic, Table
from zoo import (
    friends_and_smokers,
    gaussian_chain,
    relational_gaussian_model,
    switching_regime,
    toy_hybrid_mln,
)

METHODS = [BVI(2), NPVI(2), MeanField(), BVI(1), NPVI(1)]


def history_of(posterior: Posterior) -> History:
    assert posterior.solution.history is not None
    return posterior.solution.history


def objective_of(posterior: Posterior) -> float:
    assert posterior.solution.objective is not None
    return posterior.solution.objective


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_warm_start_at_the_answer_stays_there(method: BVI | NPVI | MeanField) -> None:
    graph = toy_hybrid_mln()
    cold = infer(graph, method)

    warm = infer(graph, method, start=cold)

    assert warm.solution.result == "converged"
    assert warm.solution.steps <= cold.solution.steps
    assert objective_of(warm) <= objective_of(cold) + 1e-6
    assert warm.marginal("posA(a0)").mean == pytest.approx(cold.marginal("posA(a0)").mean, abs=0.02)


def test_a_warm_start_may_come_from_other_evidence_and_another_lifting() -> None:
    graph = toy_hybrid_mln()
    earlier = infer(graph, BVI(2), lift="exact")
    observed = graph.observe({"posA(a0)": -6.0})

    warm = infer(observed, BVI(2), lift="none", start=earlier)
    cold = infer(observed, BVI(2), lift="none")

    assert warm.solution.result == "converged"
    assert objective_of(warm) == pytest.approx(objective_of(cold), abs=0.05)


def test_a_warm_start_fits_by_names() -> None:
    """The same names in another order, one of them new."""
    pull = ConditionalQuadratic.gaussian([[-2.0], [2.0]], [[1.0]])
    small = FactorGraph.build({"on": boolean, "x": real}, [(pull, ["on", "x"])])
    large = FactorGraph.build(
        {"new": real, "x": real, "on": boolean},
        [(pull, ["on", "x"]), (ConditionalQuadratic.square(-1.0), ["new"])],
    )
    earlier = infer(small, BVI(2))
    first_told: list[Step] = []

    warm = infer(large, BVI(2), start=earlier, callback=first_told.append)

    assert warm.marginal("x").mean == pytest.approx(earlier.marginal("x").mean, abs=1e-3)
    assert warm.marginal("new").var == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("lift", ["exact", "none", "coarse-to-fine"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_callback_is_told_of_every_step(method: BVI | NPVI | MeanField, lift: Any) -> None:
    told: list[Step] = []
    graph = toy_hybrid_mln().observe({"posA(a0)": 1.5})

    posterior = infer(graph, method, lift=lift, callback=told.append)

    history = history_of(posterior)
    assert posterior.solution.steps == len(told) == len(history)
    assert [step.step for step in told] == list(range(1, len(told) + 1))
    seconds = [step.seconds for step in told]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0
    assert seconds[-1] <= posterior.solution.seconds
    assert [step.objective for step in told] == history.objective.tolist()
    assert [step.num_classes for step in told] == history.num_classes.tolist()
    levels = [step.level for step in told]
    assert levels == sorted(levels)
    assert (lift == "coarse-to-fine") or set(levels) == {0}


@pytest.mark.parametrize("number", [1, 3, 25])
def test_a_callback_that_returns_true_stops_the_run(number: int) -> None:
    told: list[Step] = []

    def stop(step: Step) -> bool:
        told.append(step)
        return len(told) == number

    posterior = infer(toy_hybrid_mln(), BVI(3), callback=stop)

    assert posterior.solution.result == "stopped"
    assert posterior.solution.steps == number
    assert np.isfinite(objective_of(posterior))
    assert posterior.marginal("posA(a0)").var > 0


def test_a_callback_that_returns_something_else_does_not_stop() -> None:
    posterior = infer(toy_hybrid_mln(), BVI(2), callback=lambda step: "go on")

    assert posterior.solution.result == "converged"


@pytest.mark.parametrize("lift", ["exact", "none", "coarse-to-fine"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_out_of_time_is_an_answer_all_the_same(method: BVI | NPVI | MeanField, lift: Any) -> None:
    """The first step alone takes longer than that."""
    graph = toy_hybrid_mln().observe({"posA(a0)": 1.5})

    posterior = infer(graph, method, lift=lift, seconds=1e-9)

    assert posterior.solution.result == "out_of_time"
    assert posterior.solution.steps < 10
    assert np.isfinite(objective_of(posterior))
    probs = posterior.marginal("attractedTo(a0,b0)").probs
    assert probs.sum() == pytest.approx(1.0)


def test_enough_time_changes_nothing() -> None:
    graph = toy_hybrid_mln()

    hurried, calm = infer(graph, BVI(2), seconds=1e6), infer(graph, BVI(2))

    assert hurried.solution.result == "converged"
    assert objective_of(hurried) == objective_of(calm)


@pytest.mark.parametrize(
    "method", [BVI(3, max_steps=3), NPVI(3, max_steps=3)], ids=lambda method: method.name
)
def test_too_few_steps_are_said_to_be_so(method: BVI | NPVI) -> None:
    posterior = infer(switching_regime(), method)

    assert posterior.solution.result == "max_steps"
    assert f"method {method.name}, not converged (max_steps), log Z = " in repr(posterior)
    assert np.isfinite(objective_of(posterior))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_answer_is_no_worse_than_any_step_of_its_last_phase(
    method: BVI | NPVI | MeanField,
) -> None:
    posterior = infer(friends_and_smokers(), method)

    history = history_of(posterior)
    assert objective_of(posterior) <= history.objective[-1] + 1e-9
    assert history.to_arrow().column_names == ["seconds", "objective", "num_classes", "level"]


def two_wells() -> FactorGraph:
    """Two ways to agree, of which one is better; a single product settles in either."""
    pairs = [[f"a{i}", f"a{i + 1}"] for i in range(7)]
    agree = Table.shared([[3.0, 0.0], [0.0, 3.0]])
    slightly = Table.shared([0.0, 0.15])
    names = {f"a{i}": boolean for i in range(8)}
    return FactorGraph.build(names, [(agree, pairs), (slightly, [[f"a{i}"] for i in range(8)])])


@pytest.mark.parametrize("method", [BVI, NPVI])
def test_restarts_are_chosen_by_the_objective(method: Any) -> None:
    graph = two_wells()

    few = [objective_of(infer(graph, method(1, restarts=1), lift="none", seed=s)) for s in range(6)]
    many = [
        objective_of(infer(graph, method(1, restarts=12), lift="none", seed=s)) for s in range(6)
    ]

    assert max(many) <= min(few) + 1e-6
    assert np.ptp(many) < 1e-6


def test_adam_comes_near_to_the_same_objective() -> None:
    graph = toy_hybrid_mln()
    default = infer(graph, BVI(3))

    adam = infer(graph, BVI(3, optimiser=Adam(learning_rate=0.05), max_steps=400))
    natural = infer(graph, BVI(3, optimiser=NaturalGradient(), max_steps=400))

    assert objective_of(adam) == pytest.approx(objective_of(default), abs=0.02)
    assert objective_of(natural) == pytest.approx(objective_of(default), abs=0.02)


def observed_markets() -> FactorGraph:
    return relational_gaussian_model(6, 3).observe(
        {f"market(c{c})": 4.0 + 0.7 * c * (-1) ** c for c in range(5)} | {"loss(c5,b0)": -3.0}
    )


def observed_things() -> FactorGraph:
    return toy_hybrid_mln(2, 4, 2).observe({f"posB(b{b})": 1.0 + 0.4 * b for b in range(3)})


@pytest.mark.parametrize("graph", [observed_markets, observed_things])
@pytest.mark.parametrize(
    ("method", "tolerance"),
    [(MeanField(), 1e-9), (BVI(1), 1e-9), (NPVI(1), 1e-6), (BVI(2), 1e-4), (NPVI(2), 5e-3)],
    ids=["mean field", "BVI(1)", "NPVI(1)", "BVI(2)", "NPVI(2)"],
)
def test_coarse_to_fine_ends_where_exact_lifting_does(
    graph: Any, method: BVI | NPVI | MeanField, tolerance: float
) -> None:
    """With several components, restarts are compared in the coarsest view: the optimum that is
    best there need not be the best of the finest."""
    exact = infer(graph(), method, lift="exact")

    coarse = infer(graph(), method, lift="coarse-to-fine")

    assert coarse.solution.result == "converged"
    value, expected = objective_of(coarse), objective_of(exact)
    assert value <= expected + tolerance * max(1.0, abs(expected))
    if method.components == 1:
        assert value == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("method", [BVI(2), NPVI(2)], ids=lambda method: method.name)
def test_coarse_to_fine_begins_with_few_classes(method: BVI | NPVI) -> None:
    history = history_of(infer(observed_things(), method, lift="coarse-to-fine"))
    exact = history_of(infer(observed_things(), method, lift="exact"))

    assert history.level[0] == 0
    assert history.level[-1] > 0
    assert (np.diff(history.num_classes) >= 0).all()
    assert history.num_classes[0] < history.num_classes[-1] == exact.num_classes[-1]


@pytest.mark.parametrize("lift", ["exact", "none", "coarse-to-fine"])
def test_means_of_gaussians_are_exact_whatever_the_components(lift: Any) -> None:
    graph = gaussian_chain()
    names = graph.variables.names.render().to_pylist()
    expected = [infer(graph, MeanField()).marginal(name).mean for name in names]

    for components in (1, 2, 5):
        posterior = infer(graph, BVI(components), lift=lift)
        found = [posterior.marginal(name).mean for name in names]
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_progress_is_told_from_nothing_to_all() -> None:
    told: list[tuple[float, str]] = []

    infer(toy_hybrid_mln(), BVI(2), progress=lambda share, what: told.append((share, what)))

    assert told
    assert all(0 <= share <= 1 and what for share, what in told)


def test_bounds_are_kept_by_betas() -> None:
    graph = FactorGraph.build(
        {"x": interval(0, 1)}, [(ConditionalQuadratic.shared([[0.0]], [8.0]), ["x"])]
    )

    marginal = infer(graph, BVI(2)).marginal("x")

    assert marginal.quantile(0.0) >= 0
    assert marginal.quantile(1.0) <= 1
    exact_mean = (7 * np.exp(8) + 1) / (8 * (np.exp(8) - 1))
    assert marginal.mean == pytest.approx(exact_mean, abs=2e-3)


@pytest.mark.parametrize("method", [BVI(1), NPVI(1), MeanField()], ids=lambda method: method.name)
def test_one_product_of_a_gaussian_needs_no_coarse_views(method: BVI | NPVI | MeanField) -> None:
    exact = infer(observed_markets(), method, lift="exact")

    coarse = infer(observed_markets(), method, lift="coarse-to-fine")

    assert coarse.solution.steps == 1
    assert objective_of(coarse) == objective_of(exact)
    assert coarse.solution.notes[-1] == (
        "The best product of a Gaussian model is known in closed form, which leaves coarse-to-fine "
        "lifting nothing to save: the exact lifting was solved at once."
    )
    assert coarse.solution.notes[:-1] == exact.solution.notes


def a_mode_at_a_bound() -> FactorGraph:
    """A real whose smaller mode reaches over its bound, which the best single product misses."""
    two = ConditionalQuadratic.gaussian([[0.5], [0.97]], [[[0.0025]], [[0.0025]]])
    return FactorGraph.build(
        {"d": boolean, "x": interval(0, 1)},
        [(Table.from_values([0.7, 0.3]), ["d"]), (two, ["d", "x"])],
    )


@pytest.mark.parametrize("lift", ["exact", "none", "coarse-to-fine"])
@pytest.mark.parametrize("components", [2, 3])
def test_a_run_stopped_in_its_second_fit_returns_the_first(components: int, lift: Any) -> None:
    graph = a_mode_at_a_bound()
    first = infer(graph, BVI(components, reals="gaussian"), lift=lift)
    whole = infer(graph, BVI(components), lift=lift)
    begins = first.solution.steps
    ends = [begins, begins + 1, begins + 5, whole.solution.steps - 1]

    stopped = [
        infer(graph, BVI(components), lift=lift, callback=lambda step, end=end: step.step >= end)
        for end in ends
    ]

    assert ends == sorted(ends)
    assert whole.solution.result == "converged"
    assert whole.marginal("x").quantile(1.0) <= 1
    for found, end in zip(stopped, ends, strict=True):
        assert found.solution.result == "stopped"
        assert len(history_of(found)) == found.solution.steps == end
        assert objective_of(found) == objective_of(first)
        assert found.marginal("x").mean == first.marginal("x").mean
        assert any("reach beyond the bounds" in note for note in found.solution.notes)


def test_a_run_stopped_at_the_end_of_its_second_fit_returns_it() -> None:
    graph = a_mode_at_a_bound()
    whole = infer(graph, BVI(2))

    found = infer(graph, BVI(2), callback=lambda step: step.step >= whole.solution.steps)

    assert found.solution.result == "stopped"
    assert objective_of(found) == objective_of(whole)
