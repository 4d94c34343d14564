"""Exact inference where the probability lies along a narrow ridge that crosses the whole domain."""

import numpy as np
import pytest
from scipy.stats import norm

import hylift as hl
from hylift.inference import Exact


@pytest.mark.parametrize(
    ("weight", "lower", "product"), [(2.0, 0.0, 12.0), (20.0, 0.0, 12.0), (20.0, -3.0, 30.0)]
)
def test_windows_keep_all_of_a_ridge(weight: float, lower: float, product: float) -> None:
    model = hl.parse(f"""
        x: real[{lower}, 10]
        y: real[0, 10]
        -{weight}  (x*y - {product})^2
    """)

    found = hl.infer(hl.ground(model, {}), Exact())

    # Given x, y is normal(product / x, 1 / (2 weight x²)) within its interval.
    x = np.linspace(lower, 10.0, 1_000_002)
    x = 0.5 * (x[1:] + x[:-1])
    std = 1 / np.sqrt(2 * weight) / np.abs(x)
    share = std * (norm.cdf((10 - product / x) / std) - norm.cdf((0 - product / x) / std))
    log_z = np.log(np.sqrt(2 * np.pi) * share.mean() * (10.0 - lower))
    share /= share.sum()
    mean = share @ x
    assert found.solution.result == "converged"
    assert found.log_partition.value == pytest.approx(log_z, abs=1e-5)
    assert found.marginal("x").mean == pytest.approx(mean, abs=1e-5)
    assert found.marginal("x").std == pytest.approx(np.sqrt(share @ (x - mean) ** 2), abs=1e-5)


def test_the_default_leaves_grids_that_are_too_coarse_to_other_methods() -> None:
    graph = hl.ground(hl.parse("x: real[0, 40]\ny: real[0, 40]\n-20000 (x*y - 12)^2"), {})

    found = hl.infer(graph, seconds=4, check=False)

    assert found.solution.method != "exact"
