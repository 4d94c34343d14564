"""Item response models with hidden slopes, beside a long chain of Hamiltonian Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest

from hylift.inference import EP, infer
from hylift.inference.expectation.numeric import FunctionSites
from item_response import ItemResponse


@pytest.mark.slow
def test_hidden_abilities_difficulties_and_slopes() -> None:
    data = ItemResponse.drawn(40, 12)

    posterior = infer(data.graph(), EP())

    mean, std = data.moments(posterior)
    draws = data.chain(mean, std, 20_000)
    ratio = std / draws.std(axis=0)
    assert posterior.solution.result == "converged"
    assert np.abs((mean - draws.mean(axis=0)) / draws.std(axis=0)).max() <= 0.2
    assert np.abs(np.median(ratio) - 1) <= 0.05
    # Posteriors of difficulties are skewed, and their deviations too small.
    assert np.abs(ratio - 1).max() <= 0.2


def test_difficulties_and_slopes_are_corrected_together() -> None:
    """Every real keeps a variance, those of pairs that no other function has as well."""
    data = ItemResponse.drawn(12, 3)

    posterior = infer(data.graph(), EP(), check=False)

    mean, std = data.moments(posterior)
    draws = data.chain(mean, std, 4_000)
    assert posterior.solution.result == "converged"
    # Few draws: deviations are known to some 5 %.
    assert np.abs(std / draws.std(axis=0) - 1).max() <= 0.25


def test_smooth_functions_that_are_narrow_need_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes at half the distance are enough, and ten times fewer."""
    data, num_points, log_values = ItemResponse.drawn(12, 3), 0, FunctionSites.log_values

    def counted(self: FunctionSites, some: np.ndarray, x: np.ndarray) -> np.ndarray:
        nonlocal num_points
        num_points += x.shape[0] * x.shape[2]
        return log_values(self, some, x)

    monkeypatch.setattr(FunctionSites, "log_values", counted)
    posterior = infer(data.graph(), EP(), check=False)

    assert posterior.solution.result == "converged"
    assert num_points <= 5_000 * data.correct.size * posterior.solution.steps
