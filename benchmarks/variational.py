"""Variational inference beside exact answers, beside Adam, ground and lifted, and at scale."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

import hylift as hl
from benchmarks.measure import peak_gigabytes, timed
from experiments.instances import kalman, papers, rgm, robot, toy
from experiments.measure import seconds_until
from hylift.inference import Lift
from hylift.inference.variational.objective.bethe import Grid
from hylift.inference.variational.problem import Problem
from hylift.posterior import History
from hylift.warm_up import warm_up

DATA = Path(os.environ.get("HYLIFT_DATA", "../shared/data"))

SEEDS = 20
EARLIER = hl.Adam(learning_rate=0.2)
EARLIER_STEPS = 1000
"""The optimiser of the paper, from one start."""

NUM_MARKETS, NUM_BANKS = 20_000, 50
SECONDS = 60.0
"""For each of the large runs; the lowest objective of them is what they are held against."""
NEAR = 1e-3

NUM_LATENT = 500_000

Method = hl.BVI | hl.NPVI


def run(data: Path = DATA, figure: Path | None = None) -> None:
    """accuracy and time on the paper's models, coarse to fine, and a million factors"""
    for work in (_toy, _rgm, _kalman, _maxima, _curves, _coarse_to_fine, _million):
        # Each in a process of its own, so that peaks are its own.
        process = multiprocessing.get_context("spawn").Process(
            target=_warm, args=(work, data, figure)
        )
        process.start()
        process.join()


def _warm(work: Callable[[Path, Path | None], None], data: Path, figure: Path | None) -> None:
    """Work in a process that has loaded its kernels, on one core unless the work says more."""
    warm_up()
    numba.set_num_threads(1)
    work(data, figure)


def _toy(data: Path, figure: Path | None) -> None:
    """KL(p_i || q_i) of the positions, the mean of five."""
    graph = toy.instance().graph
    exact = hl.infer(graph, hl.Exact())
    print(f"toy, {SEEDS} seeds; in brackets Adam(0.2), at most {EARLIER_STEPS:,} steps, one start:")
    cases: list[tuple[Method, Lift]] = [
        (hl.BVI(3), "exact"), (hl.BVI(5), "exact"), (hl.BVI(5), "none"), (hl.NPVI(3), "none"),
    ]  # fmt: skip
    for method, lift in cases:
        earlier = replace(method, optimiser=EARLIER, restarts=1, max_steps=EARLIER_STEPS)
        kl, seconds, _ = _on_seeds(graph, exact, method, lift)
        earlier_kl, earlier_seconds, steps = _on_seeds(graph, exact, earlier, lift)
        print(
            f"  {method.name:8} {_how(lift):7} KL at most {kl.max():.4f}, median "
            f"{np.median(kl):.4f}, {1e3 * seconds:.1f} ms  (at most {earlier_kl.max():.4f}, median "
            f"{np.median(earlier_kl):.4f}, {steps:.0f} steps, {1e3 * earlier_seconds:.0f} ms: "
            f"{earlier_seconds / seconds:.1f} times as long)"
        )


def _on_seeds(
    graph: hl.FactorGraph, exact: hl.Posterior, method: Method, lift: Lift
) -> tuple[NDArray[np.float64], float, float]:
    """The divergence with each seed, and the median of seconds and steps."""
    x = np.linspace(-15.0, 15.0, 3001)
    names = [f"posA(a{i})" for i in range(2)] + [f"posB(b{i})" for i in range(3)]
    p = [exact.marginal(name).pdf(x) for name in names]
    divergences, seconds, steps = [], [], []
    for seed in range(SEEDS):
        found, took = timed(lambda seed=seed: hl.infer(graph, method, lift=lift, seed=seed))
        q = [found.marginal(name).pdf(x) for name in names]
        pairs = zip(p, q, strict=True)
        kl = [np.trapezoid(a * np.log((a + 1e-300) / (b + 1e-300)), x) for a, b in pairs]
        divergences.append(np.mean(kl))
        seconds.append(took)
        steps.append(found.solution.steps)
    return np.array(divergences), float(np.median(seconds)), float(np.median(steps))


def _rgm(data: Path, figure: Path | None) -> None:
    if not _has(data / "rgm"):
        return
    for number in range(rgm.NUM_PUBLISHED):
        graph = rgm.published(data, number).graph
        cases: tuple[tuple[int, Lift], ...] = ((1, "none"), (1, "exact"), (5, "exact"))
        for components, lift in cases:
            _beside_exact(f"RGM, file {number}", graph, components, lift)


def _kalman(data: Path, figure: Path | None) -> None:
    if not _has(data / "groundwater"):
        return
    cases: tuple[tuple[int, Lift], ...] = ((1, "none"), (1, "exact"), (5, "exact"))
    shapes: tuple[kalman.Shape, ...] = ("tree", "cycle")
    for shape in shapes:
        for trial in range(kalman.NUM_PUBLISHED):
            graph = kalman.published(data, shape, trial, "paper").graph
            name = f"Kalman {shape}, trial {trial}"
            for components, lift in cases:
                _beside_exact(name, graph, components, lift, kalman.LAST_MONTH)


def _beside_exact(
    name: str, graph: hl.FactorGraph, components: int, lift: Lift, atoms: str | None = None
) -> None:
    exact = hl.infer(graph, hl.Exact())
    method = hl.BVI(components)
    runs = [timed(lambda: hl.infer(graph, method, lift=lift)) for _ in range(5)]
    found, seconds = runs[0][0], float(np.median([took for _, took in runs]))
    error = np.abs(_column(found, "mean") - _column(exact, "mean")).max()
    kl = _divergences(exact, found)
    chosen = np.isin(np.flatnonzero(~exact.observed), exact.select(atoms)) if atoms else None
    told = "" if chosen is None else f", in the last month {kl[chosen].mean():.2e}"
    print(
        f"{name}, {method.name}, {_how(lift):6}: {1e3 * seconds:7.1f} ms, means within "
        f"{error:.0e}, mean KL {kl.mean():.4e}{told}"
    )


def _divergences(exact: hl.Posterior, found: hl.Posterior) -> NDArray[np.float64]:
    """(hidden variable,): KL(p_i || q_i) of a Gaussian and a mixture of some, by quadrature."""
    mixture = found.mixture
    assert mixture is not None
    at = mixture.layout.first[mixture.variable_to_class]
    mean, var = mixture.entries[at, None], mixture.entries[at + 1, None]
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    p_mean, p_var = _column(exact, "mean")[:, None], _column(exact, "var")[:, None]
    x = (p_mean + np.sqrt(p_var) * z)[:, :, None]
    density = mixture.weights / np.sqrt(2 * np.pi * var) * np.exp(-0.5 * (x - mean) ** 2 / var)
    log_p = -0.5 * z**2 - 0.5 * np.log(2 * np.pi * p_var)
    return (log_p - np.log(density.sum(axis=2))) @ (weight / weight.sum())


def _column(posterior: hl.Posterior, name: str) -> NDArray[np.float64]:
    return np.asarray(posterior.marginals()[name])


def _maxima(data: Path, figure: Path | None) -> None:
    for name, read, best in (
        ("papers", lambda: papers.published(data, 0, "paper"), 7425.860899),
        ("robot", lambda: robot.published(data, "paper"), -5020.526558),
    ):
        if not _has(data / name):
            continue
        graph = read().graph
        runs = [
            timed(lambda seed=seed: hl.infer(graph, hl.BVI(1), tasks="map", seed=seed).map())  # noqa: B023
            for seed in range(10)
        ]
        energy = np.array([found.energy for found, _ in runs])
        seconds = np.array([took for _, took in runs])
        print(
            f"MAP of {name}: {np.count_nonzero(energy < best + 1e-4)} of {len(runs)} seeds at the "
            f"optimum {best:.4f}, worst {energy.max():.4f}; median {1e3 * np.median(seconds):.0f} "
            f"ms, longest {1e3 * seconds.max():.0f} ms"
        )


def _curves(data: Path, figure: Path | None) -> None:
    """Objectives against time, drawn where the user says."""
    graph = _recession(200, 50)
    lifts: tuple[Lift, ...] = ("none", "exact", "coarse-to-fine")
    found = {_how(lift): hl.infer(graph, hl.BVI(3), lift=lift, seconds=15.0) for lift in lifts}
    print(f"RGM of 200 markets x 50 banks, BVI(3): {graph}")
    _compare({name: _history(posterior) for name, posterior in found.items()})
    if figure is None:
        print("  no picture: say where to with --figure FILE")
        return
    hl.plot_convergence(found, path=figure, log_time=True, gap=True)
    print(f"  picture in {figure}")


def _coarse_to_fine(data: Path, figure: Path | None) -> None:
    graph = _recession(NUM_MARKETS, NUM_BANKS)
    print(f"RGM of {NUM_MARKETS:,} markets x {NUM_BANKS} banks, BVI(3), {SECONDS:.0f} s: {graph}")
    histories = {}
    lifts: tuple[Lift, ...] = ("coarse-to-fine", "exact")
    for lift in lifts:
        found = hl.infer(graph, hl.BVI(3), lift=lift, seconds=SECONDS)
        histories[_how(lift)] = _history(found)
        print(f"  {_how(lift)}: {found.solution.result}", flush=True)
        del found
    _compare(histories)
    print(f"  {peak_gigabytes():.2f} GB at most")


def _recession(num_markets: int, num_banks: int, share: float = 0.2) -> hl.FactorGraph:
    """The relational Gaussian model, some of its variables observed at random."""
    num_losses = num_markets * num_banks
    size = 1 + num_markets + num_losses + num_banks
    market = 1 + np.arange(num_markets, dtype=np.int32)
    loss = 1 + num_markets + np.arange(num_losses, dtype=np.int32)
    revenue = 1 + num_markets + num_losses + np.arange(num_banks, dtype=np.int32)
    recession = np.zeros(num_markets, dtype=np.int32)
    pairs = (
        (-7.0, recession, market),
        (5.0, np.repeat(market, num_banks), loss),
        (7.0, loss, np.tile(revenue, num_markets)),
    )
    groups = tuple(
        hl.FactorGroup(
            hl.ConditionalQuadratic.gaussian([0, 0], [[10, c], [c, 10]], normalised=False),
            np.stack([one, other], axis=1),
        )
        for c, one, other in pairs
    )
    rng = np.random.default_rng(0)
    seen = np.sort(rng.choice(size, int(share * size), replace=False)).astype(np.int32)
    graph = hl.FactorGraph(hl.Variables.uniform(hl.interval(-50, 50), size), groups)
    return graph.observe(hl.Evidence.of(seen, rng.uniform(-30, 30, len(seen))))


def _compare(histories: dict[str, History]) -> None:
    """Seconds until each run stays within 1e-3 of the lowest objective at which one ends.

    Much of an objective may be a constant, to which 1e-3 is a lot: therefore also the seconds until
    99.9 % of the way down from the first objective are done.
    """
    lowest = min(float(history.objective[-1]) for history in histories.values())
    highest = max(float(history.objective[0]) for history in histories.values())
    margins = {"near": NEAR * abs(lowest), "down": 1e-3 * (highest - lowest)}
    seconds = {
        (name, margin): seconds_until(history, lowest + width)
        for name, history in histories.items()
        for margin, width in margins.items()
    }
    for name, history in histories.items():
        print(
            f"  {name:15} within {NEAR:g} of the lowest after {seconds[name, 'near']:.2f} s, "
            f"99.9 % of the way down after {seconds[name, 'down']:.2f} s; "
            f"{history.objective[-1]:.6f} after {history.seconds[-1]:.1f} s, {len(history)} steps, "
            f"{history.num_classes[-1]:,} classes"
        )
    near, down = (seconds["coarse to fine", m] / seconds["lifted", m] for m in margins)
    print(
        f"  coarse to fine takes {near:.2f} of the time of exact lifting, coloring included; "
        f"{down:.2f} for 99.9 % of the way"
    )


def _history(posterior: hl.Posterior) -> History:
    history = posterior.solution.history
    assert history is not None
    return history


def _million(data: Path, figure: Path | None) -> None:
    """Half a million latent variables, half of them real, in a million factors."""
    graph = _switching()
    problem = Problem.of(graph, np.zeros(graph.num_variables, dtype=bool), scopes=True)
    slots = Grid.of(problem, "search").slots
    points = 2 * (int(slots.cost[-1]) - 8 * (len(slots.cost) - 1))  # K = 2
    del problem, slots
    print(f"{graph}: a step of BVI(2) on {points:,} grid points")
    answers = []
    for num_threads in (1, 2):
        numba.set_num_threads(num_threads)
        found = hl.infer(
            graph, hl.BVI(2, restarts=1), lift="none", callback=lambda step: step.step >= 6
        )
        assert found.mixture is not None
        answers.append(found.mixture.entries.tobytes())
        seconds = float(np.median(np.diff(_history(found).seconds)))
        print(
            f"  {num_threads} thread{'s' * (num_threads > 1)}: {seconds:.2f} s a step, "
            f"{points / seconds / 1e6:.0f} M grid points a second; "
            f"{_history(found).seconds[0]:.1f} s up to the first"
        )
    same = "the same" if answers[0] == answers[1] else "DIFFERENT"
    print(f"  {same} bytes; {peak_gigabytes():.2f} GB at most")


def _switching() -> hl.FactorGraph:
    """A ring of Booleans, each of which says where a real belongs, and a ring of these reals."""
    rng = np.random.default_rng(0)
    half = NUM_LATENT // 2
    state = np.arange(half, dtype=np.int32)
    value, shuffled = half + state, rng.permutation(state)
    place = hl.ConditionalQuadratic.gaussian([[-1.0], [1.0]], [[[1.0]], [[2.0]]])
    agree = hl.Table(rng.normal(size=(1000, 2, 2)))
    alike = hl.ConditionalQuadratic.squared_distance(0.2, [1.0, -1.0])
    own = hl.Table(rng.normal(size=(1000, 2)))
    groups = (
        hl.FactorGroup(place, np.stack([state, value], axis=1)),
        hl.FactorGroup(own, state[:, None], rng.integers(0, 1000, half)),
        hl.FactorGroup(
            agree, np.stack([shuffled, np.roll(shuffled, 1)], axis=1),
            rng.integers(0, 1000, half),
        ),
        hl.FactorGroup(alike, np.stack([value, np.roll(value, 1)], axis=1)),
    )  # fmt: skip
    domain = np.repeat([0, 1], half).astype(np.int32)
    names, ones = hl.Names.numbered(NUM_LATENT), np.ones(NUM_LATENT)
    return hl.FactorGraph(hl.Variables((hl.boolean, hl.real), domain, names, ones), groups)


def _how(lift: Lift) -> str:
    return {"none": "ground", "exact": "lifted", "coarse-to-fine": "coarse to fine"}[lift]


def _has(folder: Path) -> bool:
    """Whether there is published data; says so if not."""
    if not folder.is_dir():
        print(f"skipped: there is no data folder {folder}; name one with --data, or HYLIFT_DATA")
    return folder.is_dir()
