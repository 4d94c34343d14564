"""Levels of all wells: the published ones, or some that the model gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.groundwater.model import MONTHS_OF_YEAR, Parameters
from experiments.instances import sources
from experiments.instances.kalman import ALL_LEVELS, MISSING, NUM_CLUSTERS

NUM_WELLS, NUM_MONTHS = ALL_LEVELS
FEWEST_WELLS = 11
"""Of a cluster; as in the published data."""


@dataclass(frozen=True, slots=True, eq=False)
class Wells:
    """What was measured, and which wells belong together."""

    levels: NDArray[np.float64]  # (well, month): NaN where nothing was measured
    cluster: NDArray[np.int64]  # (well,)

    @property
    def num_clusters(self) -> int:
        return int(self.cluster.max(initial=-1)) + 1

    def of_cluster(self, number: int) -> NDArray[np.int64]:
        """Its wells, increasing."""
        return np.flatnonzero(self.cluster == number)


def published(data: Path) -> Wells:
    """3,420 wells in 50 clusters, over 852 months of which 6 % have a measurement."""
    folder = data / "groundwater"
    levels = sources.read_matrix(folder / "well_t.mat", "well_t", ALL_LEVELS)
    membership = sources.read_matrix(
        folder / "cluster_NcutDiscrete.mat", "NcutDiscrete", (NUM_WELLS, NUM_CLUSTERS)
    )
    return Wells(np.where(levels == MISSING, np.nan, levels), membership.argmax(axis=1))


def generated(
    seed: int,
    num_wells: int = NUM_WELLS,
    num_clusters: int = NUM_CLUSTERS,
    num_months: int = NUM_MONTHS,
) -> Wells:
    """Wells that follow the model, with parameters like those of the published ones: each well has
    its own, near those of its cluster."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(num_clusters, 4.0))
    sizes = FEWEST_WELLS + rng.multinomial(num_wells - FEWEST_WELLS * num_clusters, share)
    levels = np.concatenate([_simulated(int(size), num_months, rng) for size in sizes])
    levels[~_measured(num_wells, num_months, rng)] = np.nan
    return Wells(levels, np.repeat(np.arange(num_clusters), sizes))


def drawn_parameters(num_wells: int, rng: np.random.Generator) -> Parameters:
    """Spread as those that were fitted to the published clusters are."""

    def near(value: float) -> NDArray[np.float64]:
        return value * rng.lognormal(0.0, 0.5, num_wells)

    return Parameters(
        a=1 - near(rng.uniform(0.01, 0.04)),
        q=near(rng.lognormal(-1.0, 0.8)),
        r=near(rng.lognormal(0.3, 0.8)),
        b=float(rng.uniform(0.5, 0.99)),
        s=float(rng.lognormal(-1.0, 0.8)),
        v=float(rng.lognormal(-1.0, 0.8)),
    )


def _simulated(num_wells: int, num_months: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(well, month): measurements of a cluster, of every month."""
    p = drawn_parameters(num_wells, rng)
    x = _wandering(p.a, p.q, num_months, rng)
    trend = _wandering(np.array([p.b]), np.array([p.s]), num_months, rng)
    season = rng.normal(0, np.sqrt(p.v), MONTHS_OF_YEAR)[np.arange(num_months) % MONTHS_OF_YEAR]
    noise = rng.normal(0, np.sqrt(p.r), (num_months, num_wells))
    return (x + trend + season[:, None] + noise).T


def _wandering(
    left: NDArray[np.float64], var: NDArray[np.float64], num_months: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """(month, one of them): what returns to 0, and is pushed away every month."""
    x = rng.normal(0, np.sqrt(var), (num_months, len(var)))
    x[0] /= np.sqrt(1 - left**2)
    for month in range(1, num_months):
        x[month] += left * x[month - 1]
    return x


def _measured(num_wells: int, num_months: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(well, month): 6 % of them, each well over years of its own and in a rhythm of its own."""
    month = np.arange(num_months)
    begin = rng.uniform(-0.2, 0.9, (num_wells, 1)) * num_months
    length = rng.uniform(0.1, 0.8, (num_wells, 1)) * num_months
    rhythm = rng.choice([1, 3, 6], (num_wells, 1), p=[0.15, 0.25, 0.6])
    phase = rng.integers(rhythm)
    due = (month >= begin) & (month < begin + length) & ((month + phase) % rhythm == 0)
    return due & (rng.random((num_wells, num_months)) < 0.55)
