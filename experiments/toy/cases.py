"""Methods run with several seeds, and how far their answers are from exact ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from experiments import measure
from hylift.inference import Lift
from hylift.posterior import LogPartition

POSITIONS = ("posA(a0)", "posA(a1)", "posB(b0)", "posB(b1)", "posB(b2)")
COMPONENTS = (1, 3, 5)
LIFTS: tuple[Lift, ...] = ("none", "exact")
"""Nothing is observed, so there is nothing to coarsen."""

PAPER = {
    "KL": {
        "BVI": ("0.513 ± 0.947", "0.009 ± 0.006", "0.009 ± 0.007"),
        "L-BVI": ("0.039 ± 1e-5", "0.004 ± 0.001", "0.004 ± 0.002"),
        "NPVI": ("4.586 ± 2.977", "0.026 ± 0.007", "0.022 ± 0.003"),
        "L-NPVI": ("1.978 ± 3.878", "0.038 ± 0.002", "0.039 ± 0.001"),
    },
    "l1": {
        "BVI": ("0.227 ± 0.440", "0.059 ± 0.026", "0.049 ± 0.035"),
        "L-BVI": ("0.007 ± 1e-4", "0.049 ± 0.027", "0.020 ± 0.012"),
        "NPVI": ("1.641 ± 1.106", "0.007 ± 4e-4", "0.012 ± 0.009"),
        "L-NPVI": ("0.671 ± 1.327", "0.012 ± 0.006", "0.012 ± 0.006"),
    },
}
"""Table 1, for each number of components."""

ADAM_STEPS = 1000
"""At most, where the optimiser of the paper is used, from one start."""

Mixtures = hl.BVI | hl.NPVI


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A method with a kind of lifting, run with several seeds."""

    runs: tuple[measure.Run, ...]
    kl: NDArray[np.float64]  # (seed,): KL(p_i || q_i), the mean over the positions
    l1: NDArray[np.float64]  # (seed,): |mode of q_i - mode of p_i|, the mean over the positions

    @property
    def label(self) -> str:
        return self.runs[0].label

    @property
    def method(self) -> Mixtures:
        method = self.runs[0].method
        assert isinstance(method, Mixtures)
        return method

    @property
    def components(self) -> int:
        return self.method.components

    @property
    def seconds(self) -> float:
        """The median over seeds, each of them run once."""
        return float(np.median([one.seconds for one in self.runs]))

    @property
    def steps(self) -> int:
        return int(np.median([one.posterior.solution.steps for one in self.runs]))

    def distances(self, name: str) -> NDArray[np.float64]:
        """(seed,): 'KL' or 'l1'."""
        return {"KL": self.kl, "l1": self.l1}[name]

    @property
    def log_z(self) -> NDArray[np.float64]:
        """(seed,)"""
        return np.array([log_partition(one.posterior).value for one in self.runs])

    @property
    def kind(self) -> str:
        """What its log Z is: 'estimate' or 'lower bound'."""
        return log_partition(self.runs[0].posterior).kind

    @property
    def typical(self) -> hl.Posterior:
        """Of the seed with the median divergence."""
        median = int(np.argsort(self.kl)[len(self.kl) // 2])
        return self.runs[median].posterior


def with_adam(method: Mixtures) -> Mixtures:
    """The method with the paper's optimiser."""
    return replace(method, optimiser=measure.ADAM, restarts=1, max_steps=ADAM_STEPS)


def measured(
    graph: hl.FactorGraph,
    exact: hl.Posterior,
    method: Mixtures,
    lift: Lift,
    seeds: Iterable[int],
) -> Case:
    """A method's answers, and how far they are from the exact one."""
    runs = tuple(measure.run(graph, method, lift, seed=seed) for seed in seeds)
    true = measure.modes(exact, POSITIONS)
    kl = [exact.compare(one.posterior, POSITIONS).mean_kl for one in runs]
    l1 = [np.abs(measure.modes(one.posterior, POSITIONS) - true).mean() for one in runs]
    return Case(runs, np.array(kl), np.array(l1))


def find(cases: Sequence[Case], label: str, components: int) -> Case:
    return next(one for one in cases if (one.label, one.components) == (label, components))


def log_partition(posterior: hl.Posterior) -> LogPartition:
    assert posterior.log_partition is not None
    return posterior.log_partition
