"""Figure 2: energies of MAP assignments against time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hylift as hl
from experiments import measure, papers, robot
from experiments.energies import Problem, curves
from experiments.energies.curves import Curve
from experiments.energies.experiment import outcome
from experiments.energies.problem import NUM_GENERATED
from experiments.energies.study import EARLIER, SINGLE, Study, speed, study
from experiments.instances import toy
from experiments.report import Outcome
from experiments.setting import Setting
from hylift.posterior import History
from hylift.progress import silent

METHODS = ["HMWS", "BVI", "L-BVI", "C2F-BVI", "BVI with Adam"]


@pytest.fixture(scope="module")
def small() -> Study:
    """The toy model, so that it is quick, with made-up figures of the authors."""
    problem = Problem(toy.instance().graph, "toy", {"BVI": "-0.39999999", "HMWS": "5.0"}, "A note.")
    return study(problem, Setting(quick=True), silent)


@pytest.fixture(scope="module")
def shown(small: Study) -> Outcome:
    return outcome("Toy", Setting(), [small])


def test_the_optimum_stands_above_energies_of_all_methods(small):
    rows = [row for row in small.rows if row.measure == "energy"]

    assert [row.method for row in rows] == ["exact", *METHODS]
    assert rows[0].value == hl.infer(small.problem.graph, hl.Exact(), tasks="map").map().energy
    assert all(row.value >= rows[0].value - 1e-9 for row in rows)


def test_polished_answers_are_no_worse_than_modes(small):
    value = {(row.method, row.measure): row.value for row in small.rows}

    for method in METHODS[1:]:
        assert value[method, "polished"] <= value[method, "energy"] + 1e-9


def test_a_figure_that_is_not_reached_has_a_measured_reason(small):
    why = {row.method: row.why for row in small.rows if row.verdict == "not reached"}

    assert why == {
        "BVI": "the mode of the mixture is 2.98e-7 above the optimum; polished, 0 above it."
    }


def test_a_curve_ends_where_the_whole_run_ends(small):
    graph = small.problem.graph
    whole = measure.run(graph, EARLIER, "none", tasks=("map",))

    modes, polished = curves.of_variational(whole, graph, times=2)

    num_steps = whole.posterior.solution.steps
    assert list(modes.work) == [2**k for k in range(20) if 2**k < num_steps] + [num_steps]
    assert modes.history.objective[-1] == whole.posterior.map(polish=False).energy
    assert polished.history.objective[-1] == whole.posterior.map().energy


def test_points_of_a_curve_have_the_times_of_the_whole_run(small):
    graph = small.problem.graph
    whole = measure.run(graph, EARLIER, "none", tasks=("map",))

    modes, polished = curves.of_variational(whole, graph, times=2)

    assert list(modes.history.seconds) == list(whole.history.seconds[modes.work - 1])
    assert (polished.history.seconds > modes.history.seconds).all()


def test_a_point_of_a_curve_is_the_answer_of_a_run_that_was_stopped(small):
    graph = small.problem.graph
    stopped = hl.infer(graph, EARLIER, lift="none", callback=lambda step: step.step >= 4)

    modes = next(one for one in small.curves if one.method == METHODS[-1] and not one.polished)

    place = list(modes.work).index(4)
    assert modes.history.objective[place] == stopped.map(polish=False).energy


def test_only_rounding_above_the_optimum_is_no_gap(small):
    walk = small.curves[0]

    gaps = walk.gaps(float(walk.history.objective[-1]) - 1e-12)

    assert gaps[-1] == 0.0


def test_speeds_tell_numbers_of_classes_and_energies_of_modes_at_the_end(small):
    ends = {one.method: one.energy[0] for one in small.variational}

    assert small.speed.method == "BVI(1)"
    assert [one.num_classes for one in small.speed.timings] == [
        small.problem.graph.num_variables, 5, 5,
    ]  # fmt: skip
    assert [one.end for one in small.speed.timings] == [
        ends["BVI"], ends["L-BVI"], ends["C2F-BVI"],
    ]  # fmt: skip


def test_near_is_told_of_modes_whatever_polished_answers_are(small):
    timed = measure.in_turn(small.problem.graph, SINGLE, num_timed=1, tasks=("map",))
    modes = {
        "BVI": _curve("BVI", [101.0, 10.0, 1.0, 1.0]),
        "L-BVI": _curve("L-BVI", [50.0, 1.0, 2.0, 1.0]),  # near, but does not stay there
        "C2F-BVI": _curve("C2F-BVI", [1.2, 1.05, 1.05, 0.5]),  # starts low and ends lowest
    }
    polished = [replace(_curve(name, [0.0] * 4), polished=True) for name in modes]

    found = speed("toy", timed, [*modes.values(), *polished])

    # The highest start is 101, the highest end 1: near is 1.1 or less.
    assert [one.near for one in found.timings] == [3.0, 4.0, 2.0]
    assert [one.end for one in found.timings] == [1.0, 1.0, 0.5]
    assert "energy of the mode, not polished" in found.nearness


def test_modes_that_rise_to_their_end_are_near_it(small):
    timed = measure.in_turn(small.problem.graph, SINGLE, num_timed=1, tasks=("map",))
    modes = [_curve(name, [1.0, 2.0]) for name in ("BVI", "L-BVI", "C2F-BVI")]

    found = speed("toy", timed, modes)

    assert [one.near for one in found.timings] == [1.0, 1.0, 1.0]


def test_accuracy_counts_polished_answers_at_the_optimum_and_tells_gaps_of_modes(small):
    first, *others = small.variational
    worse = replace(
        first, energy=np.full(5, small.optimum + 2.5), polished=first.polished + np.eye(5)[0]
    )
    exact = [replace(one, energy=np.full(5, small.optimum)) for one in others]

    found = outcome("Toy", Setting(), [replace(small, variational=(worse, *exact))])

    assert found.accuracy == (
        "Polished answers are at the exact optimum in 19 of 20 runs, and at most 1 above it; "
        "modes are 0 to 2.5 above it."
    )


def test_a_note_compares_walks_with_modes(small):
    walks = replace(small.walks, energy=np.full(5, small.optimum))
    modes = [replace(one, energy=np.full(5, small.optimum + 3)) for one in small.variational]

    found = outcome("Toy", Setting(), [replace(small, walks=walks, variational=tuple(modes))])

    (note,) = [note for note in found.notes if note.startswith("The paper finds")]
    assert "walks end 0 above the optimum, in 5 of 5 runs at it, and modes 3 above" in note
    assert "all walks are lower than all modes on 1, and higher on 0" in note


@pytest.mark.parametrize(("first", "told"), [(0.0, True), (1.0, False)])
def test_a_walk_that_starts_at_the_optimum_is_told(small, first, told):
    walk = _curve("HMWS", [small.optimum + first, small.optimum])

    found = outcome("Toy", Setting(), [replace(small, curves=(walk, *small.curves[1:]))])

    assert any("after its first flip on toy" in note for note in found.notes) == told


def test_notes_on_evidence_name_their_problems(shown):
    assert shown.notes[-1] == "toy: A note."


def test_the_picture_and_the_file_have_every_curve(shown, small):
    figure = shown.figures["energy"]()

    (ax,) = figure.axes
    assert ax.get_title(loc="left").startswith("toy: optimum ")
    assert {line["method"] for line in shown.tables["curves"]} == set(METHODS)
    drawn = [line for line in ax.lines if line.get_marker() != "None"]
    assert len(drawn) == len(small.curves)


def test_labels_of_the_authors_figures_do_not_cover_each_other(small):
    recorded = {"BVI": "10.0", "L-BVI": "10.1", "C2F-BVI": "9.9"}
    other = replace(small, problem=Problem(small.problem.graph, "toy", recorded))

    (ax,) = outcome("Toy", Setting(), [other]).figures["energy"]().axes

    heights = sorted(text.xy[1] for text in ax.texts if text.get_text().startswith("authors'"))
    assert len(heights) == 3
    assert (np.diff(heights) > 0.049).all()


def test_both_files_of_papers_have_the_published_optimum_in_each_variant(data_dir):
    problems = papers.problems(Setting(data_dir))

    assert [one.name.rpartition(", ")[2] for one in problems] == (
        ["paper variant"] * 2 + ["clean variant"] * 2
    )
    assert [bool(one.recorded) for one in problems] == [True, False, False, False]
    assert _optimum(problems[0]) == pytest.approx(7425.860899, abs=1e-6)


def test_rows_of_evidence_that_are_left_out_are_told(data_dir):
    problems = papers.problems(Setting(data_dir, variants=("paper",)))

    assert [one.note for one in problems] == [
        f"100 of {count} rows of evidence name topics that do not exist, and are left out."
        for count in ("1,234", "1,242")
    ]


def test_the_robots_map_has_the_published_optimum(data_dir):
    problems = robot.problems(Setting(data_dir))

    assert [bool(one.recorded) for one in problems] == [True, False]
    assert _optimum(problems[0]) == pytest.approx(-5020.526558, abs=1e-6)


@pytest.mark.parametrize("model", [papers, robot])
def test_generated_evidence_has_a_proven_optimum_and_no_figure_of_the_authors(model):
    problems = model.problems(Setting(variants=("clean",)))

    assert len(problems) == NUM_GENERATED
    assert not any(one.recorded for one in problems)
    assert np.isfinite(_optimum(problems[0]))


def _optimum(problem: Problem) -> float:
    found = hl.infer(problem.graph, hl.Exact(), tasks="map").map()
    assert found.kind == "exact"
    return found.energy


def _curve(method: str, energy: list[float]) -> Curve:
    """Modes with these energies after 1, 2, … steps and as many seconds."""
    steps = np.arange(1, len(energy) + 1)
    level = np.zeros(len(energy), dtype=np.int32)
    history = History(
        steps.astype(float), np.array(energy), np.full(len(energy), 5), level, "energy"
    )
    return Curve(method, False, steps, history)
