"""How a walk is asked for, watched and stopped."""

from __future__ import annotations

import re

import numpy as np
import pytest

import zoo
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, boolean, interval
from hylift.inference import BVI, Exact, Step, infer
from hylift.inference.search.maxwalksat import MaxWalkSAT
from hylift.potentials import ConditionalQuadratic, Table
from inference.search.rugged import rugged


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"flips": 0}, "flips must be an integer of at least 1, not 0"),
        ({"flips": 1.5}, "flips must be an integer of at least 1, not 1.5"),
        ({"restarts": True}, "restarts must be an integer of at least 1, not True"),
        ({"random": 1.5}, "random is the probability of a random move, from 0 to 1, not 1.5"),
        ({"random": "x"}, "random is the probability of a random move, from 0 to 1, not 'x'"),
        ({"noise": -1.0}, "noise is a number of standard deviations, 0 or more, not -1.0"),
        ({"noise": np.nan}, "noise is a number of standard deviations, 0 or more, not nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, text):
    with pytest.raises(UnsupportedError, match=re.escape(text)):
        MaxWalkSAT(**settings)


def test_the_same_seed_has_the_same_answer():
    graph = rugged()
    method = MaxWalkSAT(flips=3000, restarts=2)

    first, second, other = (infer(graph, method, tasks="map", seed=s) for s in (7, 7, 8))

    assert first.map().values.tobytes() == second.map().values.tobytes()
    assert first.solution.steps == second.solution.steps
    assert first.solution.history.objective.tolist() == second.solution.history.objective.tolist()
    assert first.map().values.tobytes() != other.map().values.tobytes()


def test_lifting_makes_no_difference():
    graph, method = zoo.friends_and_smokers(4).observe({"Smokes(p0)": True}), MaxWalkSAT(flips=1000)

    ground, lifted = (infer(graph, method, lift=lift, tasks="map") for lift in ("none", "exact"))

    assert ground.map().values.tobytes() == lifted.map().values.tobytes()


def test_it_answers_nothing_but_the_best_assignment():
    found = infer(zoo.gaussian_loop(), MaxWalkSAT(flips=1000))

    assert found.log_partition is None
    assert found.all_marginals is None
    assert found.map().energy == pytest.approx(-0.36570608955905687, abs=1e-9)
    assert found.energy(found.map()) == found.map().energy
    with pytest.raises(UnsupportedError, match="this posterior has no marginals"):
        found.marginals()


def test_time_that_runs_out_ends_it_with_the_best_so_far():
    graph = zoo.gaussian_loop()

    found = infer(graph, MaxWalkSAT(flips=10**12), tasks="map", seconds=0.2)

    assert found.solution.result == "out_of_time"
    assert found.map().energy == pytest.approx(-0.36570608955905687, abs=1e-9)


def test_time_that_runs_out_at_once_leaves_an_answer():
    found = infer(zoo.toy_hybrid_mln(), MaxWalkSAT(), tasks="map", seconds=1e-9)

    assert found.solution.result == "out_of_time"
    assert np.isfinite(found.map().energy)


def test_a_callback_sees_every_burst_and_may_stop_it():
    seen: list[Step] = []

    def watch(step: Step) -> bool:
        seen.append(step)
        return len(seen) == 3

    found = infer(zoo.gaussian_loop(), MaxWalkSAT(flips=10**9), tasks="map", callback=watch)

    assert found.solution.result == "stopped"
    assert [step.step for step in seen] == [1, 2, 3]
    assert len(found.solution.history) == 3


def test_the_history_is_the_best_energy_so_far():
    graph = rugged()

    found = infer(graph, MaxWalkSAT(flips=60_000, restarts=2), tasks="map")

    objective = found.solution.history.objective
    assert (np.diff(objective) <= 0).all()
    assert objective[-1] == pytest.approx(found.map().energy, abs=1e-9)
    assert found.solution.objective == found.map().energy
    assert found.solution.steps == 120_000


def test_flips_and_their_number_a_second_are_told():
    found = infer(zoo.gaussian_loop(), MaxWalkSAT(flips=1000, restarts=1), tasks="map")

    note = found.solution.notes[0]
    pattern = r"Tried 1,000 flips, [\d,]+ a second; [\d,]+ moved a variable, [\d,]+ a second\."
    assert re.fullmatch(pattern, note)


def test_progress_is_told():
    shares: list[float] = []

    infer(
        zoo.gaussian_loop(),
        MaxWalkSAT(flips=100_000, restarts=2),
        tasks="map",
        progress=lambda share, what: shares.append(share),
    )

    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


# Where it begins


@pytest.mark.parametrize("tasks", ["map", "marginals"])
def test_it_begins_at_an_earlier_answer(tasks):
    graph = zoo.mixed_cardinality_loop()
    earlier = infer(graph, Exact(), tasks=tasks)

    found = infer(graph, MaxWalkSAT(flips=1, restarts=1, random=0), tasks="map", start=earlier)

    start = earlier.map() if tasks == "map" else earlier.marginal_map()
    assert found.map().energy <= start.energy


def test_it_begins_at_the_mode_of_a_mixture_of_other_evidence():
    graph = zoo.friends_and_smokers(4)
    earlier = infer(graph, BVI(1))

    found = infer(
        graph.observe({"Smokes(p1)": True}), MaxWalkSAT(flips=2000), tasks="map", start=earlier
    )

    exact = infer(graph.observe({"Smokes(p1)": True}), Exact(), tasks="map").map()
    assert found.map().energy == pytest.approx(exact.energy, abs=1e-9)


def test_a_posterior_without_values_is_no_start():
    graph = zoo.gaussian_chain()
    earlier = infer(graph, Exact(), tasks="logz")

    with pytest.raises(UnsupportedError, match="a walk starts from a posterior with marginals"):
        infer(graph, MaxWalkSAT(flips=10), tasks="map", start=earlier)


def test_random_moves_alone_find_a_small_optimum():
    graph = FactorGraph.build(
        {"a": boolean, "x": interval(0, 1)},
        [
            (Table.weighted(0.5, [1, 0]), ["a"]),
            (ConditionalQuadratic.squared_distance(2.0, [1.0], 0.8).times([1, 0]), ["a", "x"]),
        ],
    )

    found = infer(graph, MaxWalkSAT(flips=1000, random=1.0), tasks="map")

    assert found.map().energy == pytest.approx(-0.5, abs=1e-9)
