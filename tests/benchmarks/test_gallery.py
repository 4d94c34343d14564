"""Scripts of the gallery on other data than their own."""

from __future__ import annotations

from benchmarks.gallery import EXAMPLES, PROBLEMS


def test_every_measured_problem_is_a_script_of_the_gallery():
    assert set(PROBLEMS) <= {path.stem for path in EXAMPLES.glob("*.py")}
