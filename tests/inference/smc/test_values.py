"""SMC where reals have bounds or functions, beside exact answers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytest

import hylift as hl
from hylift.errors import ImpossibleEvidenceError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import SMC, Exact, infer
from hylift.posterior import Posterior
from hylift.potentials import ConditionalQuadratic, Function, Table
from zoo import coupled_bounded_reals, function_of_both_kinds

FINE = SMC(particles=256)
SMALL = SMC(groups=3, particles=16, sweeps=2)
SPREAD = ConditionalQuadratic.gaussian(0.0, 100.0)


def assert_near(found: Posterior, expected: Posterior, atol: float = 0.03) -> None:
    """Probabilities, means and deviations are as expected, and log Z within its errors."""
    for variable in np.flatnonzero(~found.observed):
        name = found.variables.names[variable]
        got, known = found.marginal(name), expected.marginal(name)
        if found.variables.num_states[variable]:
            np.testing.assert_allclose(got.probs, known.probs, atol=atol)
        else:
            assert got.mean == pytest.approx(known.mean, abs=3 * atol * known.std)
            assert got.std == pytest.approx(known.std, rel=3 * atol)
    assert found.log_partition is not None
    assert expected.log_partition is not None
    off = abs(found.log_partition.value - expected.log_partition.value)
    assert off <= 3.5 * found.log_partition.error


def sigmoid(x: np.ndarray) -> np.ndarray:
    return -np.logaddexp(0.0, -x)


def logistic(size: int) -> FactorGraph:
    """Booleans that depend on a real each, and these on a common one."""
    names = [f"x{i}" for i in range(size)]
    tie = ConditionalQuadratic.squared_distance(0.5, [1, -1])
    own = Function(lambda d, x: sigmoid((2 * d - 1) * 2.0 * x), 1, 1)
    factors = [(tie, ["m", x]) for x in names] + [(own, [f"d{x}", x]) for x in names]
    factors += [(Table.shared([0.0, 1.0]), [f"d{x}"]) for x in names]
    domains = {f"d{x}": boolean for x in names} | dict.fromkeys([*names, "m"], interval(-9, 9))
    return FactorGraph.build(domains, [*factors, (ConditionalQuadratic.gaussian(1.0, 2.0), ["m"])])


def test_logistic_terms_are_as_exact_inference_has_them() -> None:
    graph = logistic(6).observe({"dx0": False, "dx1": True})

    found = infer(graph, FINE, seed=1)

    assert_near(found, infer(graph, Exact()))
    assert "Particles have values of 7 reals" in "".join(found.solution.notes)


def test_an_unknown_variance_and_its_heavy_tail() -> None:
    model = hl.parse("""
        y(i): real
        mu: real
        v: real[0, 50]
        normal(mu | 0, 100)
        normal(y(k) | mu, v)
    """)
    readings = [1.3, 4.1, 2.2, 3.9, 5.0, 2.4, 0.3, 3.3, 2.9, 6.1]
    graph = hl.ground(model, {"y": list(enumerate(readings))})

    assert_near(infer(graph, SMC(particles=512), seed=2), infer(graph, Exact()))


def test_a_threshold_of_minus_infinity_is_kept() -> None:
    """x ~ N(0, 1) above .5: its mean is the inverse Mills ratio there."""
    above = Function(lambda x: np.where(x > 0.5, 0.0, -np.inf), 0, 1)
    prior = ConditionalQuadratic.gaussian(0.0, 1.0)
    graph = FactorGraph.build({"x": real}, [(prior, ["x"]), (above, ["x"])])

    found = infer(graph, FINE)

    assert found.marginal("x").mean == pytest.approx(1.141, abs=0.03)
    assert found.log_partition is not None
    assert abs(found.log_partition.value - np.log(0.308538)) < 3.5 * found.log_partition.error
    assert found.draws is not None
    assert found.draws.values.min() > 0.5


def test_a_heavy_tail_beside_an_outlier() -> None:
    """Student's t of 4 around x, beside numerical integration."""
    readings, grid = [0.1, -0.2, 0.3, 8.0], np.linspace(-30, 30, 60_001)
    terms = [lambda x, y=y: -2.5 * np.log1p((x - y) ** 2 / 4) for y in readings]
    density = np.exp(sum(term(grid) for term in terms) - grid**2 / 200)
    graph = FactorGraph.build(
        {"x": real}, [(Function(one, 0, 1), ["x"]) for one in terms] + [(SPREAD, ["x"])]
    )

    found = infer(graph, FINE).marginal("x")

    mean = (density * grid).sum() / density.sum()
    std = np.sqrt((density * (grid - mean) ** 2).sum() / density.sum())
    assert found.mean == pytest.approx(mean, abs=0.1 * std)
    assert found.std == pytest.approx(std, rel=0.1)


def test_narrow_modes_far_apart_are_found_from_the_prior() -> None:
    """Two modes of width .1 at -12 and 12, of which a chain sees one."""

    def modes(x: np.ndarray) -> np.ndarray:
        return np.logaddexp(-50 * (x - 12) ** 2, np.log(3.0) - 50 * (x + 12) ** 2)

    graph = FactorGraph.build({"x": real}, [(SPREAD, ["x"]), (Function(modes, 0, 1), ["x"])])

    found = infer(graph, SMC(groups=16, particles=256), seed=3)

    assert found.marginal("x").cdf(0.0) == pytest.approx(0.75, abs=0.06)


def test_parts_with_bounds_are_solved_beside_parts_without() -> None:
    names = [f"d{i}" for i in range(9)]
    alike = Table.shared(np.eye(2))
    means = ConditionalQuadratic.gaussian([[-1.0], [1.0]], [[[1.0]], [[1.0]]])
    graph = FactorGraph.build(
        {"up": boolean, "x": interval(0, 2)} | dict.fromkeys(names, boolean) | {"y": real},
        [(means, ["up", "x"]), (means, ["d0", "y"])]
        + [(alike, [one, other]) for one, other in pairwise(names)]
        + [(Table.shared([0.0, 0.5]), ["d3"])],
    )

    found = infer(graph, FINE, rewrite=False, seed=4)

    assert_near(found, infer(graph, Exact()))
    assert found.draws is not None
    assert np.isfinite(found.draws.standard_errors().std).sum() == 2


@pytest.mark.usefixtures("threads")
def test_answers_do_not_depend_on_the_number_of_threads() -> None:
    found = []

    for num_threads in (1, 2):
        numba.set_num_threads(num_threads)
        found.append(infer(logistic(3), SMALL, seed=3))

    assert found[0].log_partition == found[1].log_partition
    assert found[0].marginals().equals(found[1].marginals())


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_a_run_resumes_from_its_checkpoint(tmp_path: Path, share: float) -> None:
    graph, path, method = function_of_both_kinds(), tmp_path / "run", SMC(4, 32, sweeps=6)
    expected = infer(graph, method, seed=2)

    def stop(step: hl.Step) -> bool:
        return step.step >= share * expected.solution.steps

    first = infer(graph, method, seed=2, checkpoint=path, callback=stop)
    found = infer(graph, method, seed=2, checkpoint=path)

    assert first.solution.result == "stopped"
    assert found.log_partition == expected.log_partition
    assert found.marginals().equals(expected.marginals())


def test_a_run_without_time_jumps_to_the_end_and_says_so() -> None:
    found = infer(coupled_bounded_reals(), SMC(), seconds=1e-9)

    assert found.solution.result == "out_of_time"
    assert "made by weights alone" in found.solution.doubts[-1]


def test_a_start_leads_to_the_same_answer() -> None:
    graph = logistic(4)
    exact = infer(graph, Exact())

    assert_near(infer(graph, FINE, start=exact, seed=5), exact)


def test_functions_that_are_impossible_everywhere_are_reported() -> None:
    never = Function(lambda x: np.full(np.shape(x), -np.inf), 0, 1)
    graph = FactorGraph.build({"x": interval(0, 1)}, [(never, ["x"])])

    with pytest.raises(ImpossibleEvidenceError):
        infer(graph, SMALL)
