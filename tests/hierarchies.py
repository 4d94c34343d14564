"""Hierarchies with unknown variances, and integrals over these written out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

import hylift as hl
from hylift.graph import FactorGraph

Floats = NDArray[np.float64]

SCHOOLS = "ABCDEFGH"
EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOL_NAMES = ["tau", "mu", *(f"theta({school})" for school in SCHOOLS)]


def moments(
    given: Callable[[float], tuple[float, Floats, Floats]], low: float, high: float
) -> tuple[float, Floats, Floats]:
    """log Z, means and deviations of the real that is integrated over, then of those that are
    Gaussian given it; given: log-density, means and variances at one of its values."""
    points, weights = np.polynomial.legendre.leggauss(10)
    edges = np.linspace(low, high, 201)
    half = 0.5 * np.diff(edges)[:, None]
    x = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * points).ravel()
    found = [given(value) for value in x]
    log_density = np.array([each[0] for each in found])
    share = (half * weights).ravel() * np.exp(log_density - log_density.max())
    log_z = float(np.log(share.sum()) + log_density.max())
    share /= share.sum()
    mean_given = np.column_stack([x, [each[1] for each in found]])
    var_given = np.column_stack([np.zeros(len(x)), [each[2] for each in found]])
    mean = share @ mean_given
    return log_z, mean, np.sqrt(share @ (var_given + (mean_given - mean) ** 2))


def eight_schools(domain: str, prior: str = "") -> FactorGraph:
    model = hl.parse(f"""
        effect(school): real
        error(school): real
        theta(school): real
        mu: real
        tau: real{domain}
        normal(effect(s) | theta(s), error(s)^2)
        normal(theta(s) | mu, tau^2)
        normal(mu | 0, 10000)
        {prior}
    """)
    evidence = {
        "effect": list(zip(SCHOOLS, EFFECT.tolist(), strict=True)),
        "error": list(zip(SCHOOLS, ERROR.tolist(), strict=True)),
    }
    return hl.ground(model, evidence)


def schools_given(tau: float) -> tuple[float, Floats, Floats]:
    """Log-likelihood of the spread between schools, and the Gaussians of mu and of the schools."""
    var = ERROR**2 + tau**2
    precision = (1 / var).sum() + 1e-4
    mu = (EFFECT / var).sum() / precision
    cov = np.diag(var) + 1e4
    shrunk = ERROR**2 / var
    log_likelihood = stats.multivariate_normal(np.zeros(8), cov).logpdf(EFFECT)
    mean = shrunk * mu + (1 - shrunk) * EFFECT
    return (
        float(log_likelihood),
        np.append(mu, mean),
        np.append(1 / precision, shrunk * tau**2 + shrunk**2 / precision),
    )


@dataclass(frozen=True)
class Hierarchy:
    """Rows in groups in regions, and what inference needs to know of the rows."""

    rows: Floats
    group: NDArray[np.int64]
    region: NDArray[np.int64]

    @classmethod
    def drawn(cls, num_rows: int, num_groups: int, num_regions: int) -> Hierarchy:
        rng = np.random.default_rng(0)
        region = rng.integers(0, num_regions, num_groups)
        more = rng.integers(0, num_groups, num_rows - num_groups)
        group = np.concatenate([np.arange(num_groups), more])
        of_region = 10 + 2 * rng.normal(size=num_regions)
        of_group = of_region[region] + rng.normal(size=num_groups)
        return cls(of_group[group] + 3 * rng.normal(size=num_rows), group, region)

    def graph(self) -> FactorGraph:
        model = hl.parse("""
            y(row): real
            m(group): real
            r(region): real
            mu: real
            noise: real[0.01, 100]
            between: real[0.01, 100]
            above: real[0.01, 100]
            In(row, group)
            Of(group, region)
            normal(y(i) | m(g), noise) where In(i, g)
            normal(m(g) | r(k), between) where Of(g, k)
            normal(r(k) | mu, above)
            normal(mu | 0, 10000)
        """)
        evidence = {
            "y": [(f"i{i}", float(y)) for i, y in enumerate(self.rows)],
            "In": [(f"i{i}", f"g{g}") for i, g in enumerate(self.group)],
            "Of": [(f"g{g}", f"r{k}") for g, k in enumerate(self.region)],
        }
        return hl.ground(model, evidence, closed=["In", "Of"])

    @property
    def names(self) -> list[str]:
        """Of what `integrated` has the moments."""
        return ["noise", "between", "above", "m(g0)", f"r(r{self.region[0]})", "mu"]

    def given(self, noise: Floats, between: Floats, above: Floats) -> tuple[Floats, Floats, Floats]:
        """Log-likelihood (point,) of variances (point,), and means and variances (quantity, point)
        of m(g0), of its region and of mu given them."""
        size = np.bincount(self.group).astype(float)[:, None]
        mean = np.bincount(self.group, self.rows)[:, None] / size
        within = ((self.rows - mean[self.group, 0]) ** 2).sum()
        num_rows = len(self.rows)
        log_density = -0.5 * within / noise - 0.5 * np.log(size).sum()
        log_density -= 0.5 * (num_rows - len(size)) * np.log(2 * np.pi * noise)
        # The mean of a group is N(region, between + noise / size).
        precision = 1 / (between + noise / size)
        belongs = (self.region == np.arange(self.region.max() + 1)[:, None]).astype(float)
        P, h = belongs @ precision, belongs @ (precision * mean)
        log_density += 0.5 * np.log(precision / (2 * np.pi)).sum(axis=0)
        log_density -= 0.5 * (precision * mean**2).sum(axis=0)
        log_density += (0.5 * h**2 / P + 0.5 * np.log(2 * np.pi / P)).sum(axis=0)
        # That estimate of a region is N(mu, above + 1 / P).
        q, center = 1 / (above + 1 / P), h / P
        log_density += (0.5 * np.log(q / (2 * np.pi)) - 0.5 * q * center**2).sum(axis=0)
        Q, H = q.sum(axis=0) + 1e-4, (q * center).sum(axis=0)
        log_density += 0.5 * H**2 / Q - 0.5 * np.log(1e4 * Q)
        # The reals m(g0), its region and mu, with the rows of all others integrated out.
        k, zero = self.region[0], 0 * noise
        own, rest_P, rest_h = size[0] / noise, P[k] - precision[0], h[k] - precision[0] * mean[0]
        matrix = np.array([
            [own + 1 / between, -1 / between, zero],
            [-1 / between, 1 / between + rest_P + 1 / above, -1 / above],
            [zero, -1 / above, Q - q[k] + 1 / above],
        ])  # fmt: skip
        cov = np.linalg.inv(np.moveaxis(matrix, -1, 0))
        linear = np.array([own * mean[0], rest_h, H - q[k] * center[k]]).T
        solved = np.einsum("pij,pj->ip", cov, linear)
        return log_density, solved, np.diagonal(cov, axis1=1, axis2=2).T


def integrated(data: Hierarchy) -> tuple[float, Floats, Floats]:
    """log Z, means and deviations of the three variances, m(g0), its region and mu: sums over
    panels of the logarithms of the variances, from bound to bound."""

    def energy(logs: Floats) -> float:
        return -float(data.given(*np.exp(logs)[:, None])[0][0]) - float(logs.sum())

    mode = optimize.minimize(energy, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-6}).x
    step, nodes, weights = 1e-3, [], []
    for at, direction in zip(mode, step * np.eye(3), strict=True):
        bend = energy(mode + direction) + energy(mode - direction) - 2 * energy(mode)
        inner = at + np.array([-9.0, -3.0, 4.0, 14.0]) * step / np.sqrt(bend)
        edges = np.unique(np.clip([np.log(0.01), *inner, np.log(100.0)], *np.log([0.01, 100.0])))
        points, share = np.polynomial.legendre.leggauss(14)
        half = 0.5 * np.diff(edges)[:, None]
        nodes.append((0.5 * (edges[1:] + edges[:-1])[:, None] + half * points).ravel())
        weights.append((half * share).ravel())
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*nodes, indexing="ij")])
    volume = np.einsum("i,j,k->ijk", *weights).ravel()
    parts = [data.given(*np.exp(some)) for some in np.array_split(grid, 200, axis=1)]
    log_density = np.concatenate([part[0] for part in parts]) + grid.sum(axis=0)
    mean, var = (np.concatenate([part[at] for part in parts], axis=1) for at in (1, 2))
    share = volume * np.exp(log_density - log_density.max())
    total = share.sum()
    mean = np.concatenate([np.exp(grid), mean])
    var = np.concatenate([np.zeros(grid.shape), var])
    first = mean @ share / total
    second = (var + (mean - first[:, None]) ** 2) @ share / total
    return float(np.log(total) + log_density.max()), first, np.sqrt(second)
