"""Hard rules: every method beside exact inference, with hard clusters and without."""

from __future__ import annotations

import numpy as np

import hylift as hl
from benchmarks.setting import Setting
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.posterior import Posterior

MODELS = 200
METHODS = (hl.BVI(3), hl.NPVI(3), hl.MeanField(), hl.BP(), hl.EPBP(), hl.Gibbs())


def hard_model(rng: np.random.Generator) -> hl.FactorGraph:
    """Discrete variables tied by tables with zeros, and two reals that depend on them."""
    count = int(rng.integers(2, 7))
    domains = [hl.boolean if rng.random() < 0.6 else hl.categorical(3) for _ in range(count)]
    domains += [hl.real] * 2 * int(rng.integers(0, 2))
    variables = hl.Variables.of(domains, hl.Names.numbered(len(domains)))
    sizes = variables.num_states
    groups = [
        hl.FactorGroup(hl.Table(rng.normal(size=(1, sizes[v]))), np.array([[v]]))
        for v in range(count)
    ]
    for _ in range(int(rng.integers(1, count + 1))):
        scope = rng.choice(count, int(rng.integers(1, min(count, 4) + 1)), replace=False)
        table = rng.normal(size=(1, *sizes[scope]))
        if rng.random() < 0.7:
            table[rng.random(table.shape) < 0.4] = -np.inf
        groups.append(hl.FactorGroup(hl.Table(table), scope[None]))
    for at in range(count, len(domains)):
        of = rng.choice(count, 2, replace=False)
        shape = (1, *sizes[of])
        slope = rng.normal(size=(*shape, 1))
        place = hl.ConditionalQuadratic(-np.ones((*shape, 1, 1)), slope, rng.normal(size=shape))
        groups.append(hl.FactorGroup(place, np.array([[*of, at]])))
    return hl.FactorGraph(variables, tuple(groups))


def run(setting: Setting) -> None:
    """200 random models with hard rules: each method with hard clusters and without"""
    errors: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    refused, seed, done = 0, 0, 0
    while done < MODELS:
        graph, seed = hard_model(np.random.default_rng(seed)), seed + 1
        try:
            exact = hl.infer(graph, hl.Exact())
        except ImpossibleEvidenceError:
            refused += sum(_is_impossible(graph, method) for method in METHODS)
            continue
        done += 1
        for method in METHODS:
            for clusters in (False, True):
                try:
                    found = hl.infer(graph, method, rewrite=clusters, tasks="marginals")
                except UnsupportedError:
                    continue
                error = exact.compare(found).mean_kl, _worst(exact, found)
                errors.setdefault((method.name, clusters), []).append(error)
    print(
        f"{MODELS} models with hard rules; {seed - MODELS} more are impossible, {refused} refusals"
    )
    for (name, clusters), each in errors.items():
        kl, worst = np.array(each).T
        print(
            f"  {name:10} {'clusters' if clusters else 'plain':8} infinite KL "
            f"{np.count_nonzero(np.isinf(kl)):3} of {len(kl)}; worst error of a probability: "
            f"median {np.median(worst):.4f}, 90% {np.quantile(worst, 0.9):.4f}, "
            f"most {worst.max():.4f}"
        )


def _is_impossible(graph: hl.FactorGraph, method: object) -> bool:
    try:
        hl.infer(graph, method, tasks="marginals")  # type: ignore[arg-type]
    except ImpossibleEvidenceError:
        return True
    except UnsupportedError:
        pass
    return False


def _worst(exact: Posterior, found: Posterior) -> float:
    """The largest error of a probability."""
    pairs = zip(exact.marginals()["probs"], found.marginals()["probs"], strict=True)
    known = [(one.as_py(), other.as_py()) for one, other in pairs if one.is_valid]
    return max(float(np.abs(np.subtract(*pair)).max()) for pair in known)
