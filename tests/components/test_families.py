"""Every family of components keeps the same promises."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hylift.components import FAMILIES, Betas, Categoricals, Family, Gaussians, Layout
from hylift.errors import ModelError

Floats = NDArray[np.float64]
LOWER, UPPER = np.array([-1.0, 0.0]), np.array([2.0, 4.0])


def batches() -> list[Family]:
    """Two variables under three components each."""
    probs = np.array([[[0.2, 0.5, 1.0], [0.8, 0.5, 0.0]], [[0.6, 0.1, 0.3], [0.4, 0.9, 0.7]]])
    return [
        Gaussians(np.array([[0.0, 1.0, -1.0], [2.0, 2.5, 0.5]]), np.array([[1.0, 0.5, 2.0]] * 2)),
        Betas(np.array([[2.0, 3.0, 1.5]] * 2), np.array([[2.0, 1.2, 4.0]] * 2), LOWER, UPPER),
        Categoricals(probs),
    ]


def density_at(batch: Family, variable: int, component: int, x: NDArray[np.float64]) -> float:
    values = np.zeros((len(x), 2))
    values[:, variable] = x
    return np.exp(batch.log_density(values)[:, variable, component])


def test_each_family_stands_at_its_code() -> None:
    assert [family.code for family in FAMILIES] == list(range(len(FAMILIES)))
    assert {type(batch) for batch in batches()} == set(FAMILIES)


@pytest.mark.parametrize("batch", batches(), ids=lambda batch: type(batch).__name__)
def test_nodes_integrate_moments_and_scores(batch: Family) -> None:
    nodes = batch.nodes(12)

    np.testing.assert_allclose(nodes.weights.sum(axis=-1), 1.0, atol=1e-12)
    if nodes.scores is None:
        values = nodes.points[:, 0].T
        expected = np.exp(batch.log_density(values))
        np.testing.assert_allclose(nodes.weights, np.moveaxis(expected, 0, 2), atol=1e-12)
        return
    mean, var = batch.moments()
    found = (nodes.weights * nodes.points).sum(axis=-1)
    spread = (nodes.weights * (nodes.points - mean[..., None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(found, mean, atol=1e-12)
    np.testing.assert_allclose(spread, var, atol=1e-12)
    # Expected scores vanish; a Gauss rule integrates the logarithms of a Beta roughly.
    mean_scores = np.einsum("ikt,ikte->ike", nodes.weights, nodes.scores)
    np.testing.assert_allclose(mean_scores, 0.0, atol=2e-2)


@pytest.mark.parametrize("batch", batches(), ids=lambda batch: type(batch).__name__)
def test_modes_are_where_the_density_is_largest(batch: Family) -> None:
    grid = np.arange(2.0) if batch.is_discrete else np.linspace(-6, 8, 14_001)

    for variable in range(2):
        for component in range(3):
            height = density_at(batch, variable, component, grid)
            assert batch.modes()[variable, component] == pytest.approx(
                grid[np.argmax(height)], abs=1e-3
            )
            alone = np.eye(3)[component]
            assert batch.best(alone)[variable] == pytest.approx(grid[np.argmax(height)], abs=1e-3)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_neutral_parameters_are_valid(family: type[Family]) -> None:
    flat = family.neutral(np.array([2, 2]), LOWER, UPPER)

    family.of(flat.reshape(2, 2, 1), LOWER, UPPER).check()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_negative_parameters_are_refused(family: type[Family]) -> None:
    with pytest.raises(ModelError):
        family.of(np.full((2, 2, 1), -0.5), LOWER, UPPER).check()


def test_a_layout_finds_the_parameters_of_its_variables() -> None:
    family = np.array([2, 0, 1], dtype=np.int8)
    layout = Layout(family, np.array([0, 3, 5, 7]), np.zeros(3), np.ones(3))
    entries = np.arange(7.0)[:, None]

    small = layout.take(np.array([2, 0]))

    assert layout.entries_of(np.array([2, 0])).tolist() == [5, 6, 0, 1, 2]
    assert small.first.tolist() == [0, 2, 5]
    assert layout.reals.tolist() == [1, 2]
    assert layout.discrete.tolist() == [0]
    assert layout.has(Betas).tolist() == [False, False, True]
    found = {type(batch): at.tolist() for at, batch in layout.batches(entries, np.arange(3))}
    assert found == {Categoricals: [0], Gaussians: [1], Betas: [2]}


def test_gradients_of_betas_follow_from_those_of_their_moments() -> None:
    rng = np.random.default_rng(0)
    shapes, step = rng.uniform(0.8, 6.0, (2, 3, 2)), 1e-6
    bounds = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 5.0, 2.5])
    of_mean, of_var = rng.normal(size=(2, 3, 2))

    def value(alpha: Floats, beta: Floats) -> Floats:
        mean, var = Betas(alpha, beta, *bounds).moments()
        return np.asarray(of_mean * mean + of_var * var)

    found = Betas(*shapes, *bounds).of_parameters(of_mean, of_var)

    for place, change in enumerate(np.eye(2)[:, :, None, None] * step):
        expected = (value(*(shapes + change)) - value(*(shapes - change))) / (2 * step)
        np.testing.assert_allclose(found[place], expected, rtol=1e-6, atol=1e-8)
