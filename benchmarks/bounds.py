"""Lower bounds on log Z: those of mixtures beside exact inference, on random hybrid models."""

from __future__ import annotations

import numpy as np

import hylift as hl
from benchmarks.hard_rules import hard_model
from benchmarks.setting import Setting
from hylift.errors import ImpossibleEvidenceError

MODELS = 1000
METHODS = (hl.MeanField(), hl.NPVI(3), hl.NPVI(3, bound="tracey"), hl.BVI(3))
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
    """1,000 random models: bounds of mixtures are below log Z, and 'tracey' above mean field's"""
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
            found = hl.infer(graph, method, tasks="logz").log_partition
            assert found is not None
            lower[method.name] = found.lower
            above += found.lower > exact.value + exact.error + ROUNDING * max(1, abs(exact.value))
            below.setdefault(method.name, []).append(exact.value - found.lower)
        worse += lower["NPVI(3, tracey)"] < lower["mean field"] - ROUNDING * abs(exact.value)
    print(f"{MODELS} models: {above} bounds above log Z, {worse} of 'tracey' below mean field's")
    for name, each in below.items():
        known = np.array(each)[np.isfinite(each)]
        print(
            f"  {name:15} known in {len(known)}, below log Z by: median {np.median(known):.3f}, "
            f"90% {np.quantile(known, 0.9):.3f}, most {known.max():.3f}"
        )
