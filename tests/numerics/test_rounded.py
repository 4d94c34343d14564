"""Minima of quadratics with certain bounds."""

import numpy as np

from hylift.numerics.rounded import difference, least_value


def minimum(A: list[list[float]], b: list[float], c: float) -> float:
    """The bound that is found for xᵀAx + bᵀx + c."""
    exact = (difference(np.array(part), np.zeros(np.shape(part))) for part in (A, b, c))
    return float(least_value(*exact))


def test_a_least_value_is_a_tight_lower_bound() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        root = rng.normal(size=(3, 3))
        A, b, c = root @ root.T + 0.1 * np.eye(3), rng.normal(size=3), float(rng.normal())
        A = 0.5 * (A + A.T)

        found = minimum(A.tolist(), b.tolist(), c)

        best = c - 0.25 * float(b @ np.linalg.solve(A, b))
        assert found <= best + 1e-12 * (1 + abs(best))
        assert abs(found - best) <= 1e-10 * (1 + abs(best))


def test_directions_that_are_flat_by_cancellation_are_seen() -> None:
    assert minimum([[1.0, -1.0], [-1.0, 1.0]], [0.0, 0.0], 2.0) == 2.0


def test_a_slope_along_a_flat_direction_has_no_least_value() -> None:
    assert minimum([[1.0, 0.0], [0.0, 0.0]], [0.0, 1e-300], 0.0) == -np.inf
    assert minimum([[-1.0]], [0.0], 0.0) == -np.inf
