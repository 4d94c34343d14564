"""How chains are run: seeds, threads, time, memory, starts."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from hylift.graph import Domain, FactorGraph, FactorGroup, Variables, boolean, interval, real
from hylift.inference import Exact, infer
from hylift.inference.method import Step
from hylift.inference.sampling import Gibbs, chains, gibbs, marginals
from hylift.inference.sampling.chains import Layout
from hylift.inference.sampling.groups import correlated
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.kinds import Kinds
from zoo import (
    bounded_and_unbounded_reals,
    friends_and_smokers,
    function_of_both_kinds,
    gaussian_chain,
    hard_clause,
    hidden_markov_model,
    switching_regime,
    toy_hybrid_mln,
)

SHORT = Gibbs(draws=60, warm_up=20, longer=1)


def values_of(posterior: Posterior) -> np.ndarray:
    assert posterior.draws is not None
    return posterior.draws.values


def switching_chain(size: int) -> FactorGraph:
    """Reals in a chain, each of which a Boolean pulls one way or the other."""
    place = np.arange(size, dtype=np.int32)
    pull = ConditionalQuadratic.gaussian([[-1.0], [1.0]], [[[1.0]], [[2.0]]])
    link = ConditionalQuadratic.squared_distance(0.5, [1, -1])
    table = Table.shared([[0.3, 0.0], [0.0, 0.3]])
    return FactorGraph(
        Variables(
            (boolean, real),
            np.repeat(np.array([0, 1], dtype=np.int32), size),
            Variables.uniform(real, 2 * size).names,
            np.ones(2 * size),
        ),
        (
            FactorGroup(pull, np.stack([place, size + place], axis=1)),
            FactorGroup(link, size + np.stack([place[:-1], place[1:]], axis=1)),
            FactorGroup(table, np.stack([place[:-1], place[1:]], axis=1)),
        ),
    )


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    "graph", [toy_hybrid_mln(), bounded_and_unbounded_reals(), function_of_both_kinds()]
)
def test_answers_do_not_depend_on_the_number_of_threads(graph: FactorGraph) -> None:
    found = []
    for num_threads in (1, 2):
        numba.set_num_threads(num_threads)
        found.append(infer(graph, SHORT, seed=3, tasks=("marginals", "map")))

    assert values_of(found[0]).tobytes() == values_of(found[1]).tobytes()
    assert found[0].marginals().equals(found[1].marginals())
    assert found[0].map().energy == found[1].map().energy
    assert found[0].solution.notes == found[1].solution.notes


@pytest.mark.parametrize(
    "graph", [switching_regime(), bounded_and_unbounded_reals(), function_of_both_kinds()]
)
def test_answers_do_not_depend_on_the_length_of_bursts(
    graph: FactorGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = infer(graph, SHORT, seed=3)
    monkeypatch.setattr(chains, "MOST_SWEEPS", 7)

    in_bursts = infer(graph, SHORT, seed=3)

    assert values_of(whole).tobytes() == values_of(in_bursts).tobytes()
    assert whole.marginals().equals(in_bursts.marginals())


def test_another_seed_draws_other_values() -> None:
    one, other = (infer(switching_regime(), SHORT, seed=seed) for seed in (0, 1))

    assert not np.array_equal(values_of(one), values_of(other))


def test_chains_differ_from_each_other() -> None:
    values = values_of(infer(gaussian_chain(), SHORT))

    assert len(np.unique(values[:, 0, 0])) == 4


def test_thinning_keeps_one_draw_in_so_many_sweeps() -> None:
    dense = infer(gaussian_chain(), Gibbs(draws=60, warm_up=20, longer=1), seed=1)
    thin = infer(gaussian_chain(), Gibbs(draws=20, warm_up=20, thin=3, longer=1), seed=1)

    np.testing.assert_array_equal(values_of(thin), values_of(dense)[:, 2::3])
    assert thin.solution.steps == 80


def test_all_that_is_asked_for_is_observed() -> None:
    graph = hard_clause().observe({"H": True, "S": False})

    found = infer(graph, SHORT, tasks=("marginals", "map"))

    assert found.marginal("H").prob("true") == 1.0
    assert found.map()["S"] == "false"
    assert values_of(found).shape == (4, 60, 0)


def test_observed_variables_have_no_draws() -> None:
    found = infer(hidden_markov_model(), SHORT)

    assert found.draws is not None
    assert found.variables.names.render(found.draws.ids).to_pylist() == [
        f"weather(t{t})" for t in range(5)
    ]


def test_running_out_of_time_returns_the_draws_so_far() -> None:
    graph = switching_chain(2000)

    found = infer(graph, Gibbs(draws=10**6, warm_up=10), seconds=0.5)

    assert found.solution.result == "out_of_time"
    assert 4 <= values_of(found).shape[1] < 10**6
    assert np.isfinite(found.marginal("x2000").mean)


def test_time_may_run_out_while_warming_up() -> None:
    found = infer(switching_chain(2000), Gibbs(draws=1000, warm_up=10**6), seconds=0.2)

    assert found.solution.result == "out_of_time"
    assert values_of(found).shape[1] == 4
    assert any("of 1,000,000 to warm up" in note for note in found.solution.notes)


def test_a_callback_stops_the_chains_and_sees_their_energy() -> None:
    steps: list[Step] = []

    def stop(step: Step) -> bool:
        steps.append(step)
        return len(steps) == 3

    found = infer(friends_and_smokers(), Gibbs(draws=1000, warm_up=100), callback=stop)

    assert found.solution.result == "stopped"
    assert values_of(found).shape[1] < 1000
    assert found.solution.history is not None
    assert found.solution.history.objective.tolist() == [step.objective for step in steps]
    assert found.solution.objective == steps[-1].objective


def test_a_callback_that_stops_the_warm_up_is_told_as_such() -> None:
    found = infer(friends_and_smokers(), Gibbs(warm_up=1000), callback=lambda step: True)

    assert found.solution.result == "stopped"
    assert (
        "The callback ended it after 100 sweeps of 1,000 to warm up: the draws may still depend on "
        "where the chains began."
    ) in found.solution.notes


def test_progress_ends_at_one() -> None:
    shares: list[float] = []

    infer(friends_and_smokers(), SHORT, progress=lambda share, what: shares.append(share))

    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_energy_told_is_that_of_the_model() -> None:
    graph = toy_hybrid_mln()

    found = infer(graph, Gibbs(chains=1, draws=50, warm_up=10, longer=1))

    assert found.solution.objective == pytest.approx(found.energy(values_of(found)[0, -1]))


def test_more_draws_than_fit_are_thinned_and_the_marginals_use_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = switching_regime()
    whole = infer(graph, SHORT, seed=3)
    monkeypatch.setattr(gibbs, "MOST_STORED", 4 * 8 * graph.num_variables)

    found = infer(graph, SHORT, seed=3)

    np.testing.assert_array_equal(values_of(found), values_of(whole)[:, ::8])
    assert found.marginals().equals(whole.marginals())
    assert (
        "One in 8 draws is stored; the marginals use all 60 of each chain." in found.solution.notes
    )


def test_large_graphs_keep_few_components_with_the_same_moments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = switching_chain(20)
    whole = infer(graph, SHORT, seed=3).marginal("x25")
    monkeypatch.setattr(marginals, "ROOM", 2 * 3 * 5 * 20 * 2)

    few = infer(graph, SHORT, seed=3).marginal("x25")

    assert few.num_components == 2
    assert whole.num_components > 10
    assert few.mean == pytest.approx(whole.mean, abs=1e-10)
    assert few.var == pytest.approx(whole.var, abs=1e-10)


def test_a_callback_may_ask_for_nothing_but_the_best_assignment() -> None:
    found = infer(switching_regime(), SHORT, tasks="map")

    assert found.assignment is not None
    assert found.map() is found.assignment


def test_the_best_assignment_is_found_when_it_is_asked_for_later() -> None:
    found = infer(switching_regime(), SHORT)

    exact = infer(switching_regime(), Exact(), tasks="map")
    assert found.map().energy == pytest.approx(exact.map().energy, abs=1e-9)


def test_chains_begin_where_no_hard_constraint_is_broken() -> None:
    names = [f"a{i}" for i in range(12)]
    alike = Table.weighted(np.inf, [[1, 0], [0, 1]])
    links = [[names[i], names[i + 1]] for i in range(11)]
    graph = FactorGraph.build(dict.fromkeys(names, boolean), [(alike, links)])

    found = infer(graph, SHORT, seed=1, rewrite=False)

    assert (np.ptp(values_of(found), axis=2) == 0).all()
    assert any("Hard constraints may keep apart states" in note for note in found.solution.notes)


def test_chains_that_never_meet_are_not_taken_for_an_answer() -> None:
    names = [f"a{i}" for i in range(12)]
    alike = Table.weighted(np.inf, [[1, 0], [0, 1]])
    links = [[names[i], names[i + 1]] for i in range(11)]
    graph = FactorGraph.build(dict.fromkeys(names, boolean), [(alike, links)])

    found = infer(graph, Gibbs(chains=8), seed=0, rewrite=False)

    assert found.solution.result == "max_steps"
    assert "The chains disagree: use more draws, or a longer warm_up." in (found.solution.notes)
    assert found.draws is not None
    assert abs(found.draws.mean[0] - 0.5) < 4 * found.draws.mcse[0]


@pytest.mark.parametrize("domain", [real, interval(-1000, 1000)])
def test_states_whose_reals_are_far_apart_are_reached(domain: Domain) -> None:
    apart = ConditionalQuadratic.gaussian(
        [[0.0, 0.0], [100.0, -50.0]], [[[1.0, 0.5], [0.5, 1.0]], [[4.0, -1.0], [-1.0, 2.0]]]
    )
    graph = FactorGraph.build(
        {"on": boolean, "x": domain, "y": domain},
        [(apart, ["on", "x", "y"]), (Table.from_values([0.7, 0.3]), ["on"])],
    )

    found = infer(graph, Gibbs(), seed=0)

    assert found.solution.result == "converged"
    assert found.draws is not None
    np.testing.assert_array_less(
        np.abs(found.draws.mean - [0.3, 30.0, -15.0]), 4 * found.draws.mcse
    )


def test_bounds_on_one_side_only_are_respected() -> None:
    graph = FactorGraph.build(
        {"x": interval(0, np.inf), "y": interval(-np.inf, 1)},
        [
            (ConditionalQuadratic.gaussian([0.0], [[1.0]]), ["x"]),
            (ConditionalQuadratic.shared([[0.0]], [2.0]), ["y"]),
        ],
    )

    found = infer(graph, Gibbs(), seed=1)

    assert values_of(found)[:, :, 0].min() >= 0
    assert values_of(found)[:, :, 1].max() <= 1
    # Half a normal and an exponential, on grids of panels with four nodes.
    assert found.marginal("x").mean == pytest.approx(np.sqrt(2 / np.pi), abs=1e-4)
    assert found.marginal("y").mean == pytest.approx(0.5, abs=1e-4)
    assert found.marginal("y").var == pytest.approx(0.25, abs=1e-3)


def test_neighbours_that_move_together_are_drawn_together() -> None:
    """Four sensors along a line: the second and third are broken together, the others alone."""
    count, rng = 4, np.random.default_rng(0)
    ids = np.arange(count)
    sensor = ConditionalQuadratic.gaussian([[0.0], [0.0]], [[[0.25]], [[5.0]]])
    link = ConditionalQuadratic.squared_distance(0.5, [1, -1])
    names = Variables.uniform(real, 2 * count).names
    variables = Variables.of([boolean] * count + [real] * count, names)
    pairs = count + np.stack([ids[:-1], ids[1:]], axis=1)
    graph = FactorGraph(
        variables,
        (FactorGroup(sensor, np.stack([ids, count + ids], axis=1)), FactorGroup(link, pairs)),
    )
    layout = Layout.of(Kinds.of(graph), 2, np.random.SeedSequence(0))
    draws = rng.normal(size=(200, 2 * count))
    draws[:, :count] = rng.random((200, count)) < 0.5
    draws[:, 2] = draws[:, 1]

    owner, variable = correlated(layout.terms, layout.blocks, draws)

    assert owner.tolist() == [0, 0]
    assert variable.tolist() == [1, 2]
