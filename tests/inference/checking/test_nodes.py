"""Answers of exact inference on nodes, which the default has checked by particles."""

import pytest

import hylift as hl
from hylift.inference.search.landmarks import Landmarks

SENSORS = "s={0,...,2}\nx: real[0,100]\ny(s): real\n1 log(0.0001 + exp(0 - 200*(x - y(k))^2))"
READINGS = {"y(0)": 37.1, "y(1)": 37.12, "y(2)": 37.15}
SMOOTH = "d={0,...,2}\nx(d): real[-3,3]\nB(d)\n-1 abs(x(i) - B(i))\n-1 (x(i)-x(i+1))^2"


def test_the_default_checks_functions_on_nodes() -> None:
    found = hl.infer(hl.ground(hl.parse(SMOOTH)))

    assert found.solution.method == "exact"
    assert found.trust.verdict == "checked"
    assert found.log_partition.error < 1e-3


def test_no_check_leaves_nodes_unchecked() -> None:
    found = hl.infer(hl.ground(hl.parse(SMOOTH)), check=False)

    assert found.trust.verdict == "unchecked"
    assert "between all nodes" in found.trust.why


def test_a_peak_between_all_nodes_is_not_returned_unchecked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Landmarks, "resolved", lambda self, edges, real, most: edges)

    found = hl.infer(hl.ground(hl.parse(SENSORS), READINGS))

    assert found.solution.method == "SMC"
    assert found.marginal("x").mean == pytest.approx(37.123, abs=0.01)
    assert any("exact was off" in note for note in found.solution.notes)


def test_variances_need_no_check_of_their_nodes() -> None:
    source = "v: real[0.1,5]\nx: real\ny: real\nnormal(x | 0, 4)\nnormal(y | x, v)"
    found = hl.infer(hl.ground(hl.parse(source), {"y": 1.0}))

    assert found.solution.method == "exact"
    assert not any("SMC" in note for note in found.solution.notes)


@pytest.mark.parametrize("exact", [True, False])
def test_a_peak_that_nothing_shows_is_doubted(exact: bool) -> None:
    source = "x: real[0,100]\ny: real[0,100]\n30 exp(0 - 100*(x-37.123)^2 - 100*(y-12.3)^2)"
    found = hl.infer(hl.ground(hl.parse(source)), exact=exact)

    assert found.trust.verdict == "doubtful"


def test_particles_that_see_less_do_not_make_nodes_doubtful() -> None:
    found = hl.infer(hl.ground(hl.parse("x: real[0,100]\n12 exp(0-1000*(x-37.123)^2)")))

    assert found.solution.method == "exact"
    assert found.log_partition.value == pytest.approx(7.947, abs=0.01)
    assert found.trust.verdict == "unchecked"
