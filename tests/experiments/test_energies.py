"""Figure 2: energies of MAP assignments against time."""

from __future__ import annotations

import numpy as np
import pytest

import hylift as hl
from experiments import measure, papers, robot
from experiments.energies import Problem, curves
from experiments.energies.experiment import outcome
from experiments.energies.study import EARLIER, Study, study
from experiments.instances import toy
from experiments.report import Outcome
from experiments.setting import Setting
from hylift.progress import silent

METHODS = ["HMWS", "BVI", "L-BVI", "C2F-BVI", "BVI with Adam"]


@pytest.fixture(scope="module")
def small() -> Study:
    """The toy model, so that it is quick, with made-up figures of the authors."""
    problem = Problem(toy.instance().graph, "toy", {"BVI": "-0.39999999", "HMWS": "5.0"})
    return study(problem, Setting(quick=True), silent, mixed=True)


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

    modes, polished = curves.of_variational(whole, graph)

    num_steps = whole.posterior.solution.steps
    assert list(modes.work) == [2**k for k in range(20) if 2**k < num_steps] + [num_steps]
    assert modes.history.objective[-1] == whole.posterior.map(polish=False).energy
    assert polished.history.objective[-1] == whole.posterior.map().energy
    assert (np.diff(modes.history.seconds) >= 0).all()


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


def test_speeds_tell_numbers_of_classes_for_one_and_for_several_components(small):
    num_hidden = small.problem.graph.num_variables

    assert [one.method for one in small.speeds] == ["BVI(1)", "BVI(3)"]
    for speed in small.speeds:
        assert speed.ground.num_classes == num_hidden
        assert speed.lifted.num_classes == 5
        assert speed.coarse is not None


def test_notes_count_runs_that_end_at_the_optimum(shown):
    note = next(note for note in shown.notes if note.startswith("Runs that end"))

    for method in METHODS[1:]:
        assert f"{method} 5 of 5" in note


def test_the_picture_and_the_file_have_every_curve(shown, small):
    figure = shown.figures["energy"]()

    (ax,) = figure.axes
    assert ax.get_title(loc="left").startswith("toy: optimum ")
    assert {line["method"] for line in shown.tables["curves"]} == set(METHODS)
    drawn = [line for line in ax.lines if line.get_marker() != "None"]
    assert len(drawn) == len(small.curves)


def test_labels_of_the_authors_figures_do_not_cover_each_other(small):
    recorded = {"BVI": "10.0", "L-BVI": "10.1", "C2F-BVI": "9.9"}
    other = Study(
        Problem(small.problem.graph, "toy", recorded), small.optimum, small.ends, small.curves,
        small.speeds, small.notes,
    )  # fmt: skip

    (ax,) = outcome("Toy", Setting(), [other]).figures["energy"]().axes

    heights = sorted(text.xy[1] for text in ax.texts)
    assert (np.diff(heights) > 0.049).all()


def test_both_files_of_papers_have_the_published_optimum_in_each_variant(data_dir):
    problems = papers.problems(Setting(data_dir))

    assert [one.name.rpartition(", ")[2] for one in problems] == (
        ["paper variant"] * 2 + ["clean variant"] * 2
    )
    assert [bool(one.recorded) for one in problems] == [True, False, False, False]
    assert _optimum(problems[0]) == pytest.approx(7425.860899, abs=1e-6)


def test_the_robots_map_has_the_published_optimum(data_dir):
    problems = robot.problems(Setting(data_dir))

    assert [bool(one.recorded) for one in problems] == [True, False]
    assert _optimum(problems[0]) == pytest.approx(-5020.526558, abs=1e-6)


@pytest.mark.parametrize("model", [papers, robot])
def test_generated_evidence_has_a_proven_optimum_and_no_figure_of_the_authors(model):
    problems = model.problems(Setting(variants=("clean",)))

    assert len(problems) == model.NUM_GENERATED
    assert not any(one.recorded for one in problems)
    assert np.isfinite(_optimum(problems[0]))


def _optimum(problem: Problem) -> float:
    found = hl.infer(problem.graph, hl.Exact(), tasks="map").map()
    assert found.kind == "exact"
    return found.energy
