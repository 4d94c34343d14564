"""Races: who runs, and what is told of it."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from hylift.errors import (
    IntractableError,
    UnknownNameError,
    UnsupportedError,
)
from hylift.graph import FactorGraph, real
from hylift.inference import BVI, Exact, MeanField, Request, infer
from hylift.potentials import ConditionalQuadratic
from hylift.racing import Race, race
from hylift.racing.finish import shortened
from racing.stubs import Stub, coin


@pytest.fixture(scope="module")
def of_the_toy() -> Race:
    return race(zoo.toy_hybrid_mln(), ["exact", "mean-field", "bvi", "bp", "gabp"])


def test_methods_run_in_the_order_they_are_named(of_the_toy: Race) -> None:
    assert [one.label for one in of_the_toy] == ["exact", "mean field", "BVI(3)"]
    assert [one.label for one in of_the_toy.skipped] == ["BP", "GaBP"]


def test_answers_are_those_of_inference(of_the_toy: Race) -> None:
    graph = zoo.toy_hybrid_mln()
    exact, alone = infer(graph, Exact()), infer(graph, BVI(3), tasks=("marginals", "logz", "map"))

    found = of_the_toy["BVI(3)"]

    assert found.posterior.log_partition == alone.log_partition
    assert found.mean_kl == exact.compare(alone).mean_kl
    assert found.mean_l1 == exact.compare(alone).mean_l1
    assert found.energy == alone.map().energy
    assert found.lift == "exact"
    assert found.notes == alone.solution.notes


def test_exact_inference_is_the_yardstick(of_the_toy: Race) -> None:
    assert of_the_toy.yardstick is not None
    assert of_the_toy.yardstick.label == "exact"
    assert of_the_toy.yardstick.reason == "exact inference"
    assert of_the_toy.best.comparison is None
    assert of_the_toy.nearest.label == "BVI(3)"
    assert of_the_toy["exact"].lift == "none"


def test_a_method_that_refuses_is_skipped_with_its_reason(of_the_toy: Race) -> None:
    reason = of_the_toy.skipped[0].reason

    assert reason.startswith("BP is for discrete variables, and 'posA(a0)' is real: use GaBP")
    assert shortened(reason) == "BP is for discrete variables, and 'posA(a0)' is real"
    with pytest.raises(UnknownNameError, match="'BP' took no part: BP is for discrete"):
        of_the_toy["BP"]


def test_the_table_has_a_row_per_method(of_the_toy: Race) -> None:
    table = of_the_toy.table()

    assert table["method"].to_pylist() == ["exact", "mean field", "BVI(3)", "BP", "GaBP"]
    exact, bvi, skipped = (table.slice(row, 1).to_pylist()[0] for row in (0, 2, 3))
    assert (exact["log_z_kind"], exact["is_yardstick"], exact["mean_kl"]) == ("exact", True, None)
    assert bvi["mean_kl"] == of_the_toy["BVI(3)"].mean_kl
    assert bvi["result"] == "converged"
    assert bvi["energy"] == pytest.approx(exact["energy"], abs=1e-9)
    assert bvi["seconds"] > 0
    assert skipped["skipped"].startswith("BP is for discrete variables")
    assert skipped["seconds"] is None


def test_a_race_is_told_in_words(of_the_toy: Race) -> None:
    lines = str(of_the_toy).splitlines()

    assert lines[0].split() == [
        *("method", "seconds", "log", "Z", "KL", "l1", "MAP", "energy", "ended", "trust", "memory")
    ]
    assert "yardstick" in lines[1]
    assert "≥" in lines[2]
    assert any(line.startswith("KL and l1: mean distance of the marginals") for line in lines)
    assert lines[-2].split()[0] == "BP"
    assert repr(of_the_toy) == "Race(3 finished, 2 skipped, yardstick exact)"


def test_a_dictionary_is_fit_for_json(of_the_toy: Race) -> None:
    found = of_the_toy.to_dict()

    assert found["yardstick"] == {"method": "exact", "reason": "exact inference"}
    assert [row["method"] for row in found["finished"]] == ["exact", "mean field", "BVI(3)"]
    assert [row["method"] for row in found["skipped"]] == ["BP", "GaBP"]
    assert found["finished"][2]["notes"] == list(of_the_toy["BVI(3)"].notes)


def test_an_unknown_label_suggests_the_closest(of_the_toy: Race) -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'BVI\(3\)'"):
        of_the_toy["BVI(4)"]


def test_by_default_all_methods_run() -> None:
    found = race(coin(), seconds=5.0)

    labels = {one.label for one in (*found.finishes, *found.skipped)}
    assert {"exact", "mean field", "BVI(3)", "NPVI(3)", "BP", "GaBP", "Gibbs"} <= labels
    assert {"EPBP(50)", "MaxWalkSAT"} <= labels
    assert "BVI(3) coarse-to-fine" not in labels
    for one in found:
        # Gibbs draws, and EPBP has particles for reals only; the others are exact on one variable.
        assert one.mean_kl is None or one.mean_kl < (1e-3 if one.label == "Gibbs" else 1e-6)


def test_coarse_to_fine_runs_where_reals_are_observed() -> None:
    graph = zoo.gaussian_chain().observe({})
    name = graph.variables.names[0]

    found = race(graph.observe({name: 1.0}), seconds=5.0)

    assert "BVI(3) coarse-to-fine" in [one.label for one in found]
    assert found["BVI(3) coarse-to-fine"].lift == "coarse-to-fine"


def test_methods_without_levels_are_lifted_exactly() -> None:
    found = race(coin(), ["exact", "bp", "bvi"], lift="coarse-to-fine")

    assert {one.label: one.lift for one in found} == {
        "exact": "none",
        "BP": "exact",
        "BVI(3) coarse-to-fine": "coarse-to-fine",
    }


def test_one_method_with_several_settings_has_labels_that_differ() -> None:
    found = race(coin(), [BVI(3), BVI(3, restarts=2), MeanField()])

    assert [one.label for one in found] == ["BVI(3) #1", "BVI(3) #2", "mean field"]


def test_names_and_values_stand_side_by_side() -> None:
    found = race(coin(), ["Exact", BVI(2), Stub(prob=0.7)])

    assert [one.label for one in found] == ["exact", "BVI(2)", "stub"]
    expected = 0.25 * np.log(0.25 / 0.3) + 0.75 * np.log(0.75 / 0.7)
    assert found["stub"].mean_kl == pytest.approx(expected, abs=1e-12)
    assert found["stub"].mean_l1 == pytest.approx(0.1, abs=1e-12)


def test_methods_are_given_their_time_and_all_tasks() -> None:
    seen: list[Request] = []

    race(coin(), [Stub(asked=seen.append, sleep=1.0)], seconds=7.0, lift="none", seed=5)

    assert len(seen) == 1
    assert (seen[0].seconds, seen[0].lift, seen[0].seed) == (7.0, "none", 5)
    assert seen[0].tasks == {"marginals", "logz", "map"}


def test_a_method_that_cannot_answer_all_is_asked_for_an_assignment() -> None:
    seen: list[Request] = []

    def refuse(request: Request) -> None:
        seen.append(request)
        if request.tasks != {"map"}:
            raise IntractableError("its tables would have 2^99 entries")

    found = race(coin(), [Stub(asked=refuse, prob=None, energy=2.0)])

    assert [request.tasks for request in seen[:2]] == [{"marginals", "logz", "map"}, {"map"}]
    assert found["stub"].refused == "its tables would have 2^99 entries"
    assert found.yardstick is None
    assert "stub has a MAP assignment only: its tables" in str(found)
    with pytest.raises(UnsupportedError, match="no method of this race has marginals"):
        _ = found.best
    assert found.best_map.label == "stub"


def test_the_best_assignment_is_that_of_least_energy_and_then_of_least_time() -> None:
    slow, quick, wrong = (
        Stub("slow", energy=1.0, sleep=0.05),
        Stub("quick", energy=1.0 + 1e-12),
        Stub("wrong", energy=3.0),
    )

    found = race(coin(), [slow, quick, wrong])

    assert found.least_energy == 1.0
    assert found.best_map.label == "quick"


def test_nothing_is_told_with_the_sign_of_a_negative_0() -> None:
    found = race(coin(), [Stub(log_z=-0.0, energy=-0.0)])

    assert "-0 " not in str(found)


def test_a_search_uses_its_steps_up_and_does_not_converge() -> None:
    search = Stub("search", prob=None, energy=1.0, result="max_steps")
    estimate = Stub("estimate", energy=1.0, result="max_steps")

    _, first, second = str(race(coin(), [search, estimate])).splitlines()[:3]

    assert "steps used up" in first
    assert "not converged" in second


def test_infinite_divergences_are_told() -> None:
    found = race(coin(), ["exact", Stub(prob=1.0)])

    assert found["stub"].mean_kl == np.inf
    assert found.to_dict()["finished"][1]["mean_kl"] == "inf"
    assert " inf " in str(found)


def test_progress_is_that_of_all_methods_together() -> None:
    told: list[tuple[float, str]] = []

    race(
        coin(), [Stub("one"), Stub("two")], progress=lambda share, what: told.append((share, what))
    )

    assert (0.25, "one: thinking") in told
    assert (0.75, "two: thinking") in told
    assert told[-1] == (1.0, "finished")


def test_the_same_seed_gives_the_same_answers() -> None:
    graph = zoo.toy_hybrid_mln()

    first, second = (race(graph, ["exact", "bvi", "npvi"], seed=3) for _ in range(2))

    for one, other in zip(first, second, strict=True):
        assert one.posterior.log_partition == other.posterior.log_partition
        assert one.mean_kl == other.mean_kl


def test_one_method_runs_alone() -> None:
    assert [one.label for one in race(coin(), Exact())] == ["exact"]
    assert [one.label for one in race(coin(), "exact")] == ["exact"]


def test_a_reals_only_race_has_gaussian_belief_propagation() -> None:
    graph = FactorGraph.build(
        {"x": real, "y": real},
        [
            (ConditionalQuadratic.linear_gaussian([1.0], 1.0), ["y", "x"]),
            (ConditionalQuadratic.gaussian([0.0], [[2.0]]), ["x"]),
        ],
    )

    found = race(graph, ["exact", "gabp"])

    assert found["GaBP"].mean_kl == pytest.approx(0.0, abs=1e-9)
    assert found["GaBP"].mean_l1 == pytest.approx(0.0, abs=1e-9)
