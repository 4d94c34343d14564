"""How far marginals are from trusted ones: closed forms, integrals, infinities and sharing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate

import zoo
from hylift.errors import EvidenceError, UnsupportedError
from hylift.graph import FactorGraph, Variables, boolean, interval, real
from hylift.inference import BVI, Exact, infer
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.posterior import (
    BetaMixture,
    Categorical,
    GaussianMixture,
    Marginals,
    PiecewiseDensity,
    PointMass,
    Posterior,
    Solution,
)
from hylift.posterior.distributions import RealDistribution
from hylift.posterior.distributions.divergence import distances, divergences
from hylift.potentials import Table

Array = NDArray[np.float64]


def gaussians(weights: object, means: object, variances: object) -> GaussianMixture:
    """One row."""
    return GaussianMixture(
        *(np.array([values], dtype=float) for values in (weights, means, variances))
    )


def betas(weights: object, alpha: object, beta: object, low: float, high: float) -> BetaMixture:
    """One row."""
    arrays = (np.array([values], dtype=float) for values in (weights, alpha, beta))
    return BetaMixture(*arrays, np.array([low]), np.array([high]))


def panels(edges: list[float], values: object) -> PiecewiseDensity:
    """One row, with these values at the Gauss-Legendre nodes of each panel."""
    return PiecewiseDensity.from_gauss_legendre(np.array([edges]), np.array([values], dtype=float))


def by_scipy(p: RealDistribution, q: RealDistribution, ends: list[float]) -> float:
    """KL(p || q) of the first rows, integrated between each two ends."""

    def value(x: float) -> float:
        density, other = float(p[0].pdf(x)), float(q[0].pdf(x))
        return density * np.log(density / other) if density > 0 else 0.0

    pieces = itertools.pairwise(ends)
    return sum(integrate.quad(value, *piece, epsabs=1e-11, limit=400)[0] for piece in pieces)


ONE = gaussians([1.0], [0.5], [2.0])
TWO = gaussians([0.3, 0.7], [-2.0, 1.0], [0.5, 1.5])
NARROW = gaussians([0.9, 0.1], [0.0, 0.3], [4.0, 1e-4])
SHARES = betas([0.4, 0.6], [2.0, 5.0], [3.0, 1.5], -1.0, 3.0)
SKEWED = betas([1.0], [2.5], [1.2], -1.0, 3.0)
POLES = betas([0.5, 0.5], [0.5, 3.0], [2.0, 0.6], -1.0, 3.0)
SMOOTH = panels([-1.0, 1.0, 3.0], [[0.2, 0.5, 0.4, 0.3], [0.2, 0.3, 0.1, 0.1]])
FLAT = panels([-1.0, 0.0, 3.0], [[0.5], [0.2]])

PAIRS = {
    "mixtures of Gaussians": (TWO, ONE, [-12.0, -2.0, 0.0, 12.0]),
    "a Gaussian and a mixture": (ONE, TWO, [-13.0, -2.0, 0.5, 13.0]),
    "a needle in the other": (ONE, NARROW, [-13.0, 0.0, 0.25, 0.3, 0.35, 1.0, 13.0]),
    "a needle in the trusted": (NARROW, ONE, [-20.0, 0.0, 0.25, 0.3, 0.35, 1.0, 20.0]),
    "Betas": (SHARES, SKEWED, [-1.0, 1.0, 3.0]),
    "Betas with poles": (POLES, SHARES, [-1.0, 0.0, 2.0, 3.0]),
    "poles in the other": (SHARES, POLES, [-1.0, 0.0, 2.0, 3.0]),
    "a Beta and a Gaussian": (SHARES, ONE, [-1.0, 1.0, 3.0]),
    "a Beta and panels": (SHARES, FLAT, [-1.0, 0.0, 3.0]),
    "panels": (SMOOTH, FLAT, [-1.0, 0.0, 1.0, 3.0]),
    "panels and a Beta": (FLAT, SHARES, [-1.0, 0.0, 3.0]),
    "panels and Gaussians": (SMOOTH, TWO, [-1.0, 1.0, 3.0]),
}


@pytest.mark.parametrize(("p", "q", "ends"), PAIRS.values(), ids=PAIRS.keys())
def test_divergences_of_reals_are_integrals(
    p: RealDistribution, q: RealDistribution, ends: list[float]
) -> None:
    expected = by_scipy(p, q, ends)

    assert divergences(p, q)[0] == pytest.approx(expected, abs=1e-8)


def test_single_gaussians_have_a_closed_form() -> None:
    p, q = gaussians([1.0], [1.0], [2.0]), gaussians([1.0], [-0.5], [3.0])

    expected = 0.5 * (2 / 3 - 1 - np.log(2 / 3) + 1.5**2 / 3)

    assert divergences(p, q)[0] == pytest.approx(expected, rel=1e-14)


def test_nearly_the_same_gaussians_lose_no_digits() -> None:
    p, q = gaussians([1.0], [0.0], [1.0 + 1e-9]), gaussians([1.0], [0.0], [1.0])

    # 0.5 (e - log(1 + e)) = e² / 4 for the small e
    assert divergences(p, q)[0] == pytest.approx(0.25e-18, rel=1e-6)


def test_quadrature_agrees_with_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    means, variances = rng.normal(0, 3, (2, 50, 1)), rng.uniform(0.01, 9, (2, 50, 1))
    one = np.ones((50, 1))
    p, q = (GaussianMixture(one, *each) for each in zip(means, variances, strict=True))
    halves = GaussianMixture(
        np.full((50, 2), 0.5), np.repeat(q.means, 2, axis=1), np.repeat(q.variances, 2, axis=1)
    )

    np.testing.assert_allclose(divergences(p, halves), divergences(p, q), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "some", [ONE, TWO, NARROW, SHARES, POLES, SMOOTH, FLAT], ids=lambda d: repr(d)
)
def test_a_distribution_is_not_far_from_itself(some: RealDistribution) -> None:
    assert divergences(some, some)[0] == pytest.approx(0.0, abs=1e-12)
    assert distances(some, some)[0] == 0.0


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (ONE, SHARES),
        (ONE, SMOOTH),
        (FLAT, panels([-1.0, 0.0, 1.0, 3.0], [[1.0], [0.0], [1.0]])),
        (SHARES, betas([1.0], [2.0], [2.0], -1.0, 2.0)),
        (ONE, PointMass(np.array([0.5]))),
        (PointMass(np.array([0.5])), ONE),
        (PointMass(np.array([0.5])), PointMass(np.array([0.6]))),
        (Categorical(np.array([[0.5, 0.5]]), ("a", "b")), Categorical([[1.0, 0.0]], ("a", "b"))),
    ],
    ids=["Beta", "panels", "empty panel", "shorter", "point", "density", "points", "states"],
)
def test_a_divergence_is_infinite_where_the_other_has_no_mass(
    p: RealDistribution, q: RealDistribution
) -> None:
    assert divergences(p, q)[0] == np.inf


def test_tails_far_beyond_an_interval_do_not_count() -> None:
    inside = gaussians([1.0], [0.5], [1e-4])

    found = divergences(inside, panels([0.0, 1.0], [[1.0]]))[0]

    assert found == pytest.approx(-0.5 * np.log(2 * np.pi * np.e * 1e-4), abs=1e-8)


def test_equal_points_do_not_differ() -> None:
    p, q = PointMass(np.array([1.0, 2.0])), PointMass(np.array([1.0, 3.0]))

    np.testing.assert_array_equal(divergences(p, q), [0.0, np.inf])
    np.testing.assert_array_equal(distances(p, q), [0.0, 1.0])


def test_states_are_summed() -> None:
    p = Categorical(np.array([[0.2, 0.8, 0.0], [0.5, 0.25, 0.25]]), ("a", "b", "c"))
    q = Categorical(np.array([[0.5, 0.4, 0.1], [0.5, 0.25, 0.25]]), ("a", "b", "c"))

    expected = 0.2 * np.log(0.2 / 0.5) + 0.8 * np.log(2)

    np.testing.assert_allclose(divergences(p, q), [expected, 0.0], rtol=1e-14)
    np.testing.assert_allclose(distances(p, q), [0.8, 0.0], rtol=1e-14)


def test_rows_of_a_batch_are_compared_each_by_itself() -> None:
    rng = np.random.default_rng(1)
    num_rows = 3000
    weights = rng.dirichlet([1, 1], num_rows)
    p = GaussianMixture(
        weights, rng.normal(0, 2, (num_rows, 2)), rng.uniform(0.1, 2, (num_rows, 2))
    )
    q = GaussianMixture(
        weights, rng.normal(0, 2, (num_rows, 2)), rng.uniform(0.1, 2, (num_rows, 2))
    )

    found = divergences(p, q)

    for row in (0, 1500, 2999):
        alone = divergences(p[row : row + 1], q[row : row + 1])
        assert alone[0] == pytest.approx(found[row], abs=1e-10)


@pytest.fixture(scope="module")
def toy() -> tuple[Posterior, Posterior]:
    graph = zoo.toy_hybrid_mln()
    return infer(graph, Exact()), infer(graph, BVI(3))


def test_posteriors_are_compared_variable_by_variable(toy: tuple[Posterior, Posterior]) -> None:
    exact, found = toy

    comparison = exact.compare(found)

    assert len(comparison) == 21
    p, q = exact.marginal("posA(a0)"), found.marginal("posA(a0)")
    at = exact.select().tolist().index(exact.variables.names.id("posA(a0)"))
    assert comparison.l1[at] == pytest.approx(abs(p.mean - q.mean), rel=1e-12)
    x = np.linspace(-20, 20, 40001)
    on_a_grid = np.trapezoid(p.pdf(x) * np.log(p.pdf(x) / q.pdf(x)), x)
    assert comparison.kl[at] == pytest.approx(on_a_grid, abs=1e-8)
    assert comparison.mean_kl == pytest.approx(comparison.kl.mean())
    assert comparison.max_l1 == comparison.l1.max()
    assert repr(comparison).startswith("Comparison(21 variables, KL mean 0.0")


def test_some_variables_can_be_compared(toy: tuple[Posterior, Posterior]) -> None:
    exact, found = toy

    comparison = exact.compare(found, "posA(*)")

    assert len(comparison) == 2
    assert comparison.max_kl < 0.01


def test_the_table_begins_with_the_worst(toy: tuple[Posterior, Posterior]) -> None:
    comparison = toy[0].compare(toy[1])

    table = comparison.to_arrow()

    assert table.column_names == ["atom", "kl", "l1"]
    kl = table["kl"].to_numpy()
    assert (np.diff(kl) <= 0).all()
    assert kl[0] == comparison.max_kl
    worst = comparison.variables.names[int(comparison.ids[np.argmax(comparison.kl)])]
    assert table["atom"][0].as_py() == worst


def test_nothing_to_compare_is_no_distance() -> None:
    graph = FactorGraph.build({"a": boolean}, [(Table.from_values([1, 3]), ["a"])])
    exact = infer(graph.observe({"a": True}), Exact())

    comparison = exact.compare(exact)

    assert (comparison.mean_kl, comparison.max_kl, comparison.mean_l1) == (0.0, 0.0, 0.0)
    assert comparison.to_arrow().num_rows == 0


def lone(num_variables: int, marginals: Marginals) -> Posterior:
    """A posterior of so many reals, with given marginals."""
    variables = Variables.uniform(real, num_variables)
    solution = Solution("given", 0, "converged", 0, 0.0, None)
    observed = np.zeros(num_variables, dtype=bool)
    return Posterior(variables, observed, solution, all_marginals=marginals)


def test_a_million_variables_share_a_few_distributions() -> None:
    size = 1_000_000
    index = np.arange(size)
    p = GaussianMixture([[0.5, 0.5], [0.2, 0.8]], [[0.0, 1.0], [2.0, 3.0]], np.ones((2, 2)))
    q = GaussianMixture(np.ones((3, 1)), [[0.0], [1.0], [2.0]], np.ones((3, 1)))
    shared = np.zeros(size, dtype=np.int32)
    trusted = lone(size, Marginals((p,), shared, (index % 2).astype(np.int32)))
    other = lone(size, Marginals((q,), shared, (index % 3).astype(np.int32)))

    comparison = trusted.compare(other)

    some = divergences(p[index[:6] % 2], q[index[:6] % 3])
    np.testing.assert_allclose(comparison.kl[:6], some, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(comparison.kl, np.resize(comparison.kl[:6], size))


def test_bounded_reals_of_different_families_are_compared() -> None:
    graph = zoo.truncated_gaussian()
    exact = infer(graph, Exact())

    near, far = (
        exact.compare(infer(graph, method))
        for method in (BVI(3, reals="beta"), BVI(1, reals="gaussian"))
    )

    assert 0 < near.mean_kl < far.mean_kl < 1


def test_other_variables_are_refused() -> None:
    one = infer(FactorGraph.build({"a": boolean}, []), Exact())
    other = infer(FactorGraph.build({"b": boolean}, []), Exact())
    more = infer(FactorGraph.build({"a": boolean, "b": boolean}, []), Exact())
    bounded = infer(FactorGraph.build({"a": interval(0, 1)}, []), Exact())

    with pytest.raises(UnsupportedError, match="'a' is not the same variable in both posteriors"):
        one.compare(other)
    with pytest.raises(UnsupportedError, match="of 1 variable and of 2 cannot be compared"):
        one.compare(more)
    with pytest.raises(
        UnsupportedError, match="'a' does not have the same domain in both posteriors"
    ):
        one.compare(bounded)


def test_other_evidence_is_refused() -> None:
    graph = zoo.hidden_markov_model()
    plain = infer(graph, Exact())
    hidden = plain.variables.names[int(plain.select()[0])]
    states = plain.marginal(hidden).states
    first, last = (
        infer(graph.observe({hidden: state}), Exact()) for state in (states[0], states[-1])
    )

    with pytest.raises(EvidenceError, match="is observed in one posterior and hidden in the other"):
        plain.compare(first)
    with pytest.raises(EvidenceError, match="is observed with different values"):
        first.compare(last)


def test_posteriors_without_marginals_are_refused() -> None:
    graph = zoo.hard_clause()
    exact, sum_only = infer(graph, Exact()), infer(graph, Exact(), tasks="logz")

    with pytest.raises(UnsupportedError, match="of 'exact' has no marginals to compare"):
        exact.compare(sum_only)
    with pytest.raises(UnsupportedError, match="takes another posterior, not 'exact'"):
        exact.compare("exact")  # type: ignore[arg-type]


def test_gaussians_of_very_different_widths_have_finite_divergences() -> None:
    ratios = np.array([1e-14, 1e-17, 1e-30, 1e30])
    one = np.ones((4, 1))
    p, q = (
        GaussianMixture(one, np.zeros((4, 1)), variances)
        for variances in (ratios[:, None], np.ones((4, 1)))
    )

    expected = 0.5 * (ratios - 1 - np.log(ratios))

    np.testing.assert_allclose(divergences(p, q), expected, rtol=1e-12)


def test_a_series_that_falls_below_0_has_no_infinite_divergence() -> None:
    edges = np.linspace(0.0, 30.0, 7)
    nodes, _ = gauss_legendre_nodes(edges, 4)
    coarse = panels(edges.tolist(), np.exp(-0.5 * nodes**2).reshape(6, 4))
    x = np.linspace(0.0, 30.0, 3001)
    assert (coarse[0].pdf(x) == 0.0).any()  # between the nodes
    truth = gaussians([1.0], [0.0], [1.0])
    p = PiecewiseDensity.from_gauss_legendre(
        np.linspace(0.0, 30.0, 31)[None],
        truth[0].pdf(gauss_legendre_nodes(np.linspace(0.0, 30.0, 31), 16)[0]).reshape(1, 30, 16),
    )

    found = divergences(p, coarse)[0]

    positive = p[0].pdf(x)[coarse[0].pdf(x) == 0.0].sum() * 0.01
    assert positive > 1e-9  # more than what counts as none
    assert 0.0 < found < 1.0


def test_panels_of_0_and_what_is_beyond_them_have_infinite_divergences() -> None:
    p = panels([0.0, 1.0, 2.0], [[0.5, 0.5], [0.5, 0.5]])
    gap = panels([0.0, 1.0, 2.0], [[1.0, 1.0], [0.0, 0.0]])
    short = panels([0.0, 0.5, 1.0], [[1.0, 1.0], [1.0, 1.0]])

    assert divergences(p, gap)[0] == np.inf
    assert divergences(p, short)[0] == np.inf
    assert divergences(gap, p)[0] == pytest.approx(np.log(2), abs=1e-9)
