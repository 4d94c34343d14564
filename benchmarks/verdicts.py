"""The verdict of the default, exact inference ruled out, where answers are hard to check."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial import cKDTree

import hylift as hl
from benchmarks.families.score import Moments, wrong
from benchmarks.measure import timed
from benchmarks.setting import Setting
from hylift.formats.uai import read_marginals
from hylift.posterior.trust import MOST_PROB

SECONDS = 60.0
"""For the network of 10,000 hidden variables."""
NETWORK = """
    Near(place, place)
    Faulty(place)
    level(place): real
    reading(place): real

    normal(level(p) | 20, 16)
    Near(p, q) * normal(level(p) | level(q), 1)
    -2 Faulty(p)
    0.3 Near(p, q) * (Faulty(p) <=> Faulty(q))
    normal(reading(p) | level(p), 0.25 + 15.75*Faulty(p))
"""


def run(setting: Setting) -> None:
    """a sensor network of 10,000 hidden variables, frustrated grids, published UAI instances"""
    for side, strength in ((8, 1.0), (12, 1.0), (12, 2.0), (12, 4.0)):
        _grid(side, strength)
    for name, graph, truth in instances(setting):
        posterior, seconds = timed(lambda graph=graph: hl.infer(graph, exact=False))
        found = posterior.marginals(observed=True)["probs"].to_pylist()
        errors = [np.abs(np.array(p) - q).max() for p, q in zip(found, truth, strict=True)]
        off = int((np.array(errors) > MOST_PROB).sum())
        text = f"P of {off:,} of {len(errors):,} variables by up to {max(errors):.2f}"
        _show(name, posterior, seconds, text if off else None)
    _network()


def network(num_places: int, seed: int = 0) -> hl.FactorGraph:
    """Places in the plane, each with a level like those of its neighbours and a sensor that may be
    faulty, often together with others near it."""
    rng = np.random.default_rng(seed)
    place = rng.random((num_places, 2))
    near = cKDTree(place).query_pairs(np.sqrt(6 / (np.pi * num_places)), output_type="ndarray")
    near = near[np.lexsort(near.T[::-1])]
    level = 20 + 3 * np.sin(5 * place[:, 0]) + 3 * np.cos(7 * place[:, 1])
    level += 0.5 * rng.normal(size=num_places)
    centre = rng.random((30, 2))
    is_bad = np.linalg.norm(place[:, None] - centre, axis=2).min(axis=1) < 0.03
    is_faulty = rng.random(num_places) < np.where(is_bad, 0.7, 0.08)
    reading = level + np.where(is_faulty, 4.0, 0.5) * rng.normal(size=num_places)
    evidence = {
        "Near": pd.DataFrame({"place": near[:, 0], "other": near[:, 1]}),
        "reading": pd.DataFrame({"place": np.arange(num_places), "value": reading}),
    }
    return hl.ground(hl.parse(NETWORK), evidence, closed=["Near"])


def frustrated(side: int, strength: float, seed: int = 0) -> hl.FactorGraph:
    """A square grid of Booleans with couplings of either sign, and weak fields."""
    rng = np.random.default_rng(seed)
    ids = np.arange(side * side).reshape(side, side)
    across = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    links = np.concatenate([across, down])
    weight = strength * rng.choice([-1.0, 1.0], len(links))
    own = np.stack([np.zeros(side * side), rng.normal(0, 0.2, side * side)], axis=1)
    groups = (
        hl.FactorGroup(hl.Table(own), ids.reshape(-1, 1)),
        hl.FactorGroup(hl.Table(weight[:, None, None] * np.eye(2)), links),
    )
    return hl.FactorGraph(hl.Variables.uniform(hl.boolean, side * side), groups)


def instances(
    setting: Setting,
) -> Iterator[tuple[str, hl.FactorGraph, list[NDArray[np.float64]]]]:
    """Published instances with their marginals."""
    folder = setting.published("uai")
    for path in sorted(folder.glob("*.uai")) if folder else ():
        marginals, evidence = path.with_suffix(".uai.MAR"), path.with_suffix(".uai.evid")
        if not marginals.exists():
            continue
        graph = hl.read_uai(path)
        if evidence.exists():
            graph = graph.observe(hl.read_evidence(evidence, graph.variables.num_states))
        yield path.name, graph, read_marginals(marginals)


def _grid(side: int, strength: float) -> None:
    graph = frustrated(side, strength)
    exact = Moments.of(hl.infer(graph, hl.Exact()))
    posterior, seconds = timed(lambda: hl.infer(graph, exact=False))
    error = wrong(Moments.of(posterior), exact)
    _show(f"grid of {side} x {side}, couplings {strength:g}", posterior, seconds, error)


def _network() -> None:
    """Beside a run of Gibbs that is some ten times as long."""
    graph = network(5000)
    posterior, seconds = timed(lambda: hl.infer(graph, exact=False, seconds=SECONDS))
    long = hl.infer(graph, hl.Gibbs(draws=8000, longer=1), seed=1)
    _show("sensor network", posterior, seconds, wrong(Moments.of(posterior), Moments.of(long)))


def _show(name: str, posterior: hl.Posterior, seconds: float, error: str | None) -> None:
    verdict = posterior.trust.verdict
    flag = "" if error is None or verdict in ("doubtful", "unchecked") else " WITHOUT A FLAG"
    print(
        f"{name:28} {seconds:6.1f} s  {posterior.solution.method:6} {verdict:10}"
        f" {'right' if error is None else 'off: ' + error}{flag}",
        flush=True,
    )
