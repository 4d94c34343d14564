"""Accuracy on the models of the paper: what it reports, and the exact answers beside."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from answers import infer
from experiments import instances
from experiments.instances.kalman import Shape
from hylift.components.family import GAUSSIAN
from hylift.graph import FactorGraph
from hylift.inference import BVI, NPVI, Exact, Lift, MeanField
from hylift.posterior import Posterior

Array = NDArray[np.float64]

TRIALS = range(5)
POSITIONS = ["posA(a0)", "posA(a1)", "posB(b0)", "posB(b1)", "posB(b2)"]


@functools.cache
def toy() -> FactorGraph:
    return instances.toy.instance().graph


@functools.cache
def rgm(data_dir: Path, number: int) -> FactorGraph:
    return instances.rgm.published(data_dir, number).graph


@functools.cache
def papers(data_dir: Path) -> FactorGraph:
    return instances.papers.published(data_dir, 0, "paper").graph


@functools.cache
def robot(data_dir: Path) -> FactorGraph:
    return instances.robot.published(data_dir, "paper").graph


@functools.cache
def kalman(data_dir: Path, shape: Shape, trial: int) -> FactorGraph:
    return instances.kalman.published(data_dir, shape, trial, "paper").graph


def kl_on_a_grid(exact: Posterior, found: Posterior, names: list[str]) -> float:
    """The mean of KL(p_i || q_i)."""
    x = np.linspace(-15, 15, 3001)
    total = 0.0
    for name in names:
        p, q = exact.marginal(name).pdf(x), found.marginal(name).pdf(x)
        tiny = 1e-300
        total += np.trapezoid(p * np.log(np.maximum(p, tiny) / np.maximum(q, tiny)), x)
    return total / len(names)


def kl_to_gaussians(exact: Posterior, found: Posterior, atoms: str | None = None) -> float:
    """The mean of KL(p_i || q_i) of Gaussian p_i and mixtures of Gaussians q_i, by quadrature."""
    mixture, hidden = found.mixture, np.flatnonzero(~found.observed)
    assert mixture is not None
    assert (mixture.layout.family == GAUSSIAN).all()
    at = mixture.layout.first[mixture.variable_to_class]
    mean, var = mixture.entries[at], mixture.entries[at + 1]  # (hidden variable, component)
    weights = mixture.weights_of()
    table = exact.marginals()
    p_mean, p_var = np.asarray(table["mean"]), np.asarray(table["std"]) ** 2
    if atoms is not None:
        chosen = np.isin(hidden, exact.select(atoms))
        mean, var, weights = (each[chosen] for each in (mean, var, weights))
        p_mean, p_var = p_mean[chosen], p_var[chosen]
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    x = p_mean[:, None] + np.sqrt(p_var)[:, None] * z
    log_p = -0.5 * z**2 - 0.5 * np.log(2 * np.pi * p_var)[:, None]
    distance = (x[:, :, None] - mean[:, None]) ** 2 / var[:, None]
    density = (weights / np.sqrt(2 * np.pi * var))[:, None] * np.exp(-0.5 * distance)
    return float(((log_p - np.log(density.sum(axis=2))) @ (weight / weight.sum())).mean())


def assert_means_are_exact(exact: Posterior, found: Posterior) -> None:
    expected, actual = (np.asarray(p.marginals()["mean"]) for p in (exact, found))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("components", "lift", "limit"), [(3, "exact", 0.0035), (5, "exact", 0.003), (5, "none", 0.003)]
)
def test_bvi_on_the_toy_comes_nearer_than_the_papers_best(
    components: int, lift: Lift, limit: float
) -> None:
    """It reports 0.004 for lifted BVI, and 0.009 for BVI."""
    exact = infer(toy(), Exact())

    found = [infer(toy(), BVI(components), lift=lift, seed=seed) for seed in range(6)]

    kl = [kl_on_a_grid(exact, posterior, POSITIONS) for posterior in found]
    assert max(kl) <= limit
    assert np.median(kl) <= 0.0025
    assert {posterior.solution.result for posterior in found} == {"converged"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("components", "lift", "limit"), [(3, "exact", 0.0035), (5, "exact", 0.003), (5, "none", 0.003)]
)
def test_bvi_on_the_toy_depends_on_no_luck(components: int, lift: Lift, limit: float) -> None:
    exact = infer(toy(), Exact())

    found = [infer(toy(), BVI(components), lift=lift, seed=seed) for seed in range(20)]

    assert max(kl_on_a_grid(exact, posterior, POSITIONS) for posterior in found) <= limit


def test_npvi_on_the_toy_comes_nearer_than_the_papers() -> None:
    """It reports 0.026."""
    exact = infer(toy(), Exact())

    found = [infer(toy(), NPVI(3), lift="none", seed=seed) for seed in range(20)]

    assert np.median([kl_on_a_grid(exact, posterior, POSITIONS) for posterior in found]) <= 0.008


@pytest.mark.parametrize("lift", ["none", "exact"])
@pytest.mark.parametrize(("number", "kl"), [(0, 4.955136e-4), (1, 5.424277e-4)])
@pytest.mark.parametrize("method", [BVI(1), NPVI(1), MeanField()], ids=lambda m: m.name)
def test_one_product_on_the_rgm_is_the_factorised_optimum(
    data_dir: Path, number: int, kl: float, method: BVI | NPVI | MeanField, lift: Lift
) -> None:
    graph = rgm(data_dir, number)
    exact = infer(graph, Exact())

    found = infer(graph, method, lift=lift)

    assert_means_are_exact(exact, found)
    assert kl_to_gaussians(exact, found) == pytest.approx(kl, rel=1e-5)


@pytest.mark.parametrize("number", [0, 1])
def test_five_components_see_the_correlations_of_the_rgm(data_dir: Path, number: int) -> None:
    graph = rgm(data_dir, number)
    exact = infer(graph, Exact())

    found = infer(graph, BVI(5))

    assert_means_are_exact(exact, found)
    assert kl_to_gaussians(exact, found) <= 1e-5


@pytest.mark.parametrize("lift", ["none", "exact"])
@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("shape", ["tree", "cycle"])
def test_means_of_kalman_filters_are_exact(
    data_dir: Path, shape: Shape, trial: int, lift: Lift
) -> None:
    graph = kalman(data_dir, shape, trial)
    exact = infer(graph, Exact())

    found = infer(graph, BVI(1), lift=lift)

    assert_means_are_exact(exact, found)


@pytest.mark.parametrize(("shape", "var"), [("tree", 2.132053228), ("cycle", 2.594023259)])
def test_one_product_on_a_kalman_filter_is_the_factorised_optimum(
    data_dir: Path, shape: Shape, var: float
) -> None:
    found = infer(kalman(data_dir, shape, 0), BVI(1))

    last = np.asarray(found.marginals("x(*,19)")["std"]) ** 2
    np.testing.assert_allclose(last, var, rtol=1e-8)


def test_one_product_on_the_tree_has_the_divergence_that_is_known(data_dir: Path) -> None:
    graph = kalman(data_dir, "tree", 0)

    found = infer(graph, BVI(1))

    divergence = kl_to_gaussians(infer(graph, Exact()), found, "x(*,19)")
    assert divergence == pytest.approx(0.053676, abs=1e-6)


def test_five_components_see_the_correlations_of_the_tree(data_dir: Path) -> None:
    graph = kalman(data_dir, "tree", 0)
    exact = infer(graph, Exact())

    found = infer(graph, BVI(5))

    assert kl_to_gaussians(exact, found) <= 1e-4
    assert kl_to_gaussians(exact, found, "x(*,19)") <= 1e-4


@pytest.mark.parametrize("trial", TRIALS)
def test_five_components_on_the_tree_come_far_nearer_than_one(data_dir: Path, trial: int) -> None:
    """How near depends on the trial: the more of a level is left, the stronger are correlations."""
    graph = kalman(data_dir, "tree", trial)
    exact = infer(graph, Exact())

    one, five = (infer(graph, BVI(components)) for components in (1, 5))

    assert_means_are_exact(exact, five)
    for atoms in (None, "x(*,19)"):
        assert 250 * kl_to_gaussians(exact, five, atoms) <= kl_to_gaussians(exact, one, atoms)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_assignment_of_the_papers_is_found(data_dir: Path, seed: int) -> None:
    """The authors' best has the energy 7447.17."""
    found = infer(papers(data_dir), BVI(1), tasks="map", seed=seed)

    assert found.map().energy == pytest.approx(7425.860899, rel=0, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_assignment_of_the_robot_is_found(data_dir: Path, seed: int) -> None:
    """The authors' best has the energy -5012.6."""
    found = infer(robot(data_dir), BVI(1), tasks="map", seed=seed)

    assert found.map().energy == pytest.approx(-5020.526558, rel=0, abs=1e-6)


@pytest.mark.parametrize("components", [1, 3])
def test_the_rgm_from_coarse_to_fine_ends_where_exact_lifting_does(
    data_dir: Path, components: int
) -> None:
    graph = rgm(data_dir, 0)

    fine, exact = (
        infer(graph, BVI(components), lift=lift).solution.objective
        for lift in ("coarse-to-fine", "exact")
    )

    assert fine == pytest.approx(exact, rel=1e-6)


def test_the_papers_from_coarse_to_fine_end_where_exact_lifting_does(data_dir: Path) -> None:
    graph = papers(data_dir)

    fine, exact = (
        infer(graph, BVI(1), lift=lift).solution.objective for lift in ("coarse-to-fine", "exact")
    )

    assert fine == pytest.approx(exact, rel=1e-6)
