"""Scripts of the gallery on other data than their own."""

from __future__ import annotations

from benchmarks.gallery import EXAMPLES, MODELS


def test_every_measured_problem_is_a_script_of_the_gallery():
    assert set(MODELS) <= {path.stem for path in EXAMPLES.glob("*.py")}
