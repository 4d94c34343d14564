"""Lower bounds on log Z beside exact inference: of mixtures, and beside EP's estimate."""

from __future__ import annotations

import numpy as np

import hylift as hl
from benchmarks.hard_rules import hard_model
from benchmarks.measure import timed
from benchmarks.setting import Setting
from experiments.instances import rgm
from hylift.errors import ImpossibleEvidenceError
from tests.hybrid_models import random_hybrid

MODELS, HYBRID = 1000, 40
TIGHT, JOINT = hl.NPVI(3, bound="tracey"), hl.NPVI(3, bound="tracey", joint=True)
ONE = hl.NPVI(1, bound="tracey", joint=True)
METHODS = (hl.MeanField(), hl.NPVI(3), TIGHT, ONE, JOINT, hl.BVI(3), hl.EP())
ROUNDING = 1e-9


def hybrid_model(rng: np.random.Generator) -> hl.FactorGraph:
    """Booleans, reals that depend on some of them, and couplings, in one part or several."""
    count, reals = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    size = float(rng.choice([0.5, 1.0, 3.0]))
    groups = [
        hl.FactorGroup(hl.Table(rng.normal(size=(1, 2)) * size), np.array([[v]]))
        for v in range(count)
    ]
    for _ in range(int(rng.integers(0, count + 2))):
        scope = rng.choice(count, 2, replace=False)[None]
        groups.append(hl.FactorGroup(hl.Table(rng.normal(size=(1, 2, 2)) * size), scope))
    for at in range(count, count + reals):
        A = -rng.uniform(0.2, 2.0, (1, 2, 1, 1))
        place = hl.ConditionalQuadratic(
            A, rng.normal(size=(1, 2, 1)) * size, rng.normal(size=(1, 2))
        )
        groups.append(hl.FactorGroup(place, np.array([[rng.integers(count), at]])))
        if at > count and rng.random() < 0.6:
            tie = hl.ConditionalQuadratic.squared_distance(float(rng.uniform(0.1, 3.0)), [1, -1])
            groups.append(hl.FactorGroup(tie, np.array([[at - 1, at]])))
    domains = [hl.boolean] * count + [hl.real] * reals
    variables = hl.Variables.of(domains, hl.Names.numbered(len(domains)))
    return hl.FactorGraph(variables, tuple(groups))


def run(setting: Setting) -> None:
    """1,000 random models: bounds are below log Z, and those of 'tracey' above mean field's"""
    below: dict[str, list[float]] = {}
    seed, above, worse = 0, 0, 0
    while len(below.get(METHODS[0].name, [])) < MODELS:
        rng = np.random.default_rng(seed)
        graph, seed = hybrid_model(rng) if seed % 4 else hard_model(rng), seed + 1
        try:
            exact = hl.infer(graph, hl.Exact(), tasks="logz").log_partition
        except ImpossibleEvidenceError:
            continue
        assert exact is not None
        lower = {}
        for method in METHODS:
            found = hl.infer(graph, method, tasks="logz", rewrite=False).log_partition
            assert found is not None
            lower[method.name] = found.lower
            above += found.lower > exact.value + exact.error + ROUNDING * max(1, abs(exact.value))
            below.setdefault(method.name, []).append(exact.value - found.lower)
        least = lower["mean field"] - ROUNDING * max(1.0, abs(exact.value))
        worse += sum(lower[method.name] < least for method in (TIGHT, ONE, JOINT))
    print(f"{MODELS} models: {above} bounds above log Z, {worse} of 'tracey' below mean field's")
    for name, each in below.items():
        _print(name, each)
    for coupling in (1.0, 3.0):
        _accuracy(coupling)
    _recession()


def _print(name: str, below: list[float], beyond: str = "") -> None:
    known = np.array(below)[np.isfinite(below)]
    print(
        f"  {name:22} known in {len(known)}, below log Z by: median {np.median(known):.3f}, "
        f"90% {np.quantile(known, 0.9):.3f}, most {known.max():.3f}{beyond}"
    )


def _accuracy(coupling: float) -> None:
    """Prints bounds, errors of probabilities and deviations, and times, on 9 + 9 variables."""
    print(f"{HYBRID} random models of 9 Booleans and 9 reals, coupling {coupling:g}")
    graphs = [random_hybrid(seed, coupling) for seed in range(HYBRID)]
    truths = [hl.infer(graph, hl.Exact()) for graph in graphs]
    names = graphs[0].variables.names.render().to_pylist()
    for method in (hl.MeanField(), TIGHT, ONE, JOINT, hl.EP()):
        below, off, ratio, taken = [], [], [], []
        for graph, exact in zip(graphs, truths, strict=True):
            found, seconds = timed(lambda g=graph, m=method: hl.infer(g, m, rewrite=False))
            pairs = [(exact.marginal(name), found.marginal(name)) for name in names]
            assert exact.log_partition is not None
            assert found.log_partition is not None
            below.append(exact.log_partition.value - found.log_partition.lower)
            off.append(max(np.abs(a.probs - b.probs).max() for a, b in pairs[:9]))
            ratio += [b.std / a.std for a, b in pairs[9:]]
            taken.append(seconds)
        worst, tenth = np.quantile(off, [0.5, 0.9])
        _print(
            method.name,
            below,
            f"; worst P off by {worst:.3f} (90% {tenth:.3f}), deviations by "
            f"{np.median(ratio) - 1:+.1%}, {1e3 * np.median(taken):.0f} ms",
        )


def _recession() -> None:
    """Prints the bounds for the paper's Gaussian model."""
    graph = rgm.generated(0, 0.2).graph
    exact = hl.infer(graph, hl.Exact(), tasks="logz").log_partition
    assert exact is not None
    for method in (hl.NPVI(3), TIGHT, ONE, JOINT):
        found, seconds = timed(lambda m=method: hl.infer(graph, m, tasks="logz"))
        assert found.log_partition is not None
        gap = exact.value - found.log_partition.lower
        print(f"  recession: {method.name:22} below log Z by {gap:.2g}, {seconds:.2f} s")
