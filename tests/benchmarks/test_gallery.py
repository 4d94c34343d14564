"""Scripts of the gallery on other data than their own."""

from __future__ import annotations

from benchmarks.gallery import EXAMPLES, MODELS, Worked


def test_a_script_runs_on_the_data_that_are_asked_for():
    worked = Worked.on("deliveries", "7, 40, 8, 2")

    prob, truth = worked.said
    assert len(worked.covered) == 8
    assert len(prob) == len(truth) == 2
    assert worked.posterior.solution.method == "exact"
    assert worked.seconds > 0


def test_every_measured_problem_is_a_script_of_the_gallery():
    assert set(MODELS) <= {path.stem for path in EXAMPLES.glob("*.py")}
