"""Functions of reals without bounds, whose densities have tails that fall off as a power."""

import numpy as np
import pytest
from scipy import integrate, stats

import hylift as hl
from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, real
from hylift.inference import Exact
from hylift.potentials import Function


def alone(scale: float) -> FactorGraph:
    return hl.ground(hl.parse(f"p: real\nstudent(p | 2, {scale**2}, 3)"), {})


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_student_density_alone_is_normalised(scale: float) -> None:
    found = hl.infer(alone(scale), Exact())

    expected = stats.t(3, loc=2.0, scale=scale)
    assert found.log_partition.value == pytest.approx(0.0, abs=1e-9)
    assert found.marginal("p").mean == pytest.approx(2.0, abs=1e-6 * scale)
    assert found.marginal("p").std == pytest.approx(expected.std(), rel=1e-4)  # mass of 1e-11 lost
    at = 2.0 + scale * np.array([-30.0, -1.0, 0.5, 8.0])
    assert found.marginal("p").pdf(at) == pytest.approx(expected.pdf(at), rel=1e-6)


@pytest.mark.parametrize("exact", [True, False])
def test_the_default_does_not_call_a_student_density_improper(exact: bool) -> None:
    found = hl.infer(alone(1.0), exact=exact)

    assert found.trust.verdict == "checked"
    assert found.marginal("p").mean == pytest.approx(2.0, abs=0.25)


def test_mean_field_of_a_student_density_begins_at_a_sensible_width() -> None:
    found = hl.infer(alone(1.0), hl.MeanField(), check=False).marginal("p")

    assert found.mean == pytest.approx(2.0, abs=0.05)
    assert 0.8 < found.std < stats.t(3).std()


def test_a_student_prior_of_an_observed_mean_agrees_with_quadrature() -> None:
    model = hl.parse("y(row): real\np: real\nstudent(p | 0, 1, 3)\nnormal(y(i) | p, 2)")
    found = hl.infer(hl.ground(model, {"y": [("a", 1.0), ("b", 12.5)]}), Exact())

    def density(p: float, power: int) -> float:
        likelihood = stats.norm(p, np.sqrt(2)).pdf([1.0, 12.5]).prod()
        return float(stats.t(3).pdf(p) * likelihood * p**power)

    sums = [
        integrate.quad(density, -10, 20, (k,), epsabs=0, epsrel=1e-11, points=[0, 5, 7])[0]
        for k in range(3)
    ]
    mean = sums[1] / sums[0]
    assert found.log_partition.value == pytest.approx(np.log(sums[0]), abs=1e-8)
    assert found.marginal("p").mean == pytest.approx(mean, abs=1e-7)
    assert found.marginal("p").std == pytest.approx(np.sqrt(sums[2] / sums[0] - mean**2), abs=1e-6)


def test_a_function_that_has_no_finite_integral_is_refused() -> None:
    graph = FactorGraph.build(
        {"x": real}, [(Function(lambda x: -0.4 * np.log1p(x**2), num_reals=1), ["x"])]
    )

    with pytest.raises(UnsupportedError, match="'x': its density does not fall off where it has"):
        hl.infer(graph, Exact())
