"""Belief propagation beside PGMax, and lifted beside ground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from benchmarks.measure import best_of, timed
from benchmarks.setting import Setting
from hylift.formats.uai import read_marginals

NUM_STEPS = 100
DAMPING = 0.5


def run(setting: Setting) -> None:
    """time per step of a grid beside PGMax's; Alchemy_11 lifted and ground; other instances"""
    hl.infer(grid(3, 2)[0], hl.BP(max_steps=2))
    try:
        import pgmax
    except ImportError:
        pgmax = None
        print("PGMax is not installed: `pip install 'hylift[bench]'` adds it to the comparison.")
    for side, num_states in ((30, 2), (100, 2), (30, 8)):
        _beside_pgmax(side, num_states, with_pgmax=pgmax is not None)
    folder = setting.published("uai")
    if folder is not None:
        _alchemy(folder)
        _instances(folder)


def grid(side: int, num_states: int) -> tuple[hl.FactorGraph, NDArray[Any], NDArray[Any], Any]:
    """A square grid with random potentials, the ends of its links, and both kinds of tables."""
    rng = np.random.default_rng(0)
    ids = np.arange(side * side).reshape(side, side)
    links = np.concatenate(
        [
            np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1),
            np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1),
        ]
    )
    own = rng.normal(size=(side * side, num_states))
    pairs = rng.normal(0, 0.3, (len(links), num_states, num_states))
    groups = (
        hl.FactorGroup(hl.Table(own), ids.reshape(-1, 1)),
        hl.FactorGroup(hl.Table(pairs), links),
    )
    variables = hl.Variables.uniform(hl.categorical(num_states), side * side)
    return hl.FactorGraph(variables, groups), links, own, pairs


def _beside_pgmax(side: int, num_states: int, *, with_pgmax: bool) -> None:
    graph, links, own, pairs = grid(side, num_states)
    method = hl.BP(damping=DAMPING, max_steps=NUM_STEPS, tolerance=1e-300)
    found = hl.infer(graph, method, lift="none")
    # PGMax prepares and compiles its graph beforehand: ours is timed from the first step on.
    ours = min(_per_step(hl.infer(graph, method, lift="none").solution.history) for _ in range(3))
    text = f"{len(links):6} links of {num_states}x{num_states}  {1e3 * ours:8.3f} ms a step"
    if with_pgmax:
        theirs, marginals = _pgmax(side, num_states, links, own, pairs)
        probs = np.array(found.marginals()["probs"].to_pylist())
        text += (
            f"  PGMax {1e3 * theirs:8.3f} ms  ratio {theirs / ours:5.1f}  "
            f"largest difference {np.abs(probs - marginals).max():.0e}"
        )
    print(text)


def _per_step(history: Any) -> float:
    return float(history.seconds[-1] - history.seconds[0]) / (len(history) - 1)


def _pgmax(
    side: int, num_states: int, links: NDArray[Any], own: NDArray[Any], pairs: NDArray[Any]
) -> tuple[float, NDArray[Any]]:
    """Seconds per step of PGMax, compiled before, and its marginals."""
    import jax
    from pgmax import fgraph, fgroup, infer, vgroup

    variables = vgroup.NDVarArray(num_states=num_states, shape=(side * side,))
    graph = fgraph.FactorGraph(variable_groups=variables)
    scopes = [[variables[int(a)], variables[int(b)]] for a, b in links]
    graph.add_factors(fgroup.PairwiseFactorGroup(scopes, log_potential_matrix=pairs))
    solver = infer.BP(graph.bp_state)
    start = solver.init(evidence_updates={variables: own})

    def work() -> Any:
        done = solver.run(start, num_iters=NUM_STEPS, damping=DAMPING, temperature=1.0)
        return jax.block_until_ready(done)

    done = work()
    seconds = best_of(3, work) / NUM_STEPS
    return seconds, np.asarray(infer.get_marginals(solver.get_beliefs(done))[variables])


def _read(instance: Path) -> hl.FactorGraph:
    model = hl.read_uai(instance)
    return model.observe(hl.read_evidence(Path(f"{instance}.evid"), model.variables.num_states))


def _alchemy(folder: Path) -> None:
    graph = _read(folder / "Alchemy_11.uai")
    times, beliefs, steps = {}, {}, {}
    for how in ("none", "exact"):
        found = hl.infer(graph, hl.BP(), lift=how)
        beliefs[how] = np.array(found.marginals()["probs"].to_pylist())
        runs = [hl.infer(graph, hl.BP(), lift=how, check=False).solution for _ in range(7)]
        times[how] = min(run.seconds for run in runs)
        steps[how] = min(_per_step(run.history) for run in runs)
    difference = np.abs(beliefs["none"] - beliefs["exact"]).max()
    print(
        f"Alchemy_11  ground {1e3 * times['none']:.2f} ms, lifted {1e3 * times['exact']:.2f} ms "
        f"with coloring: ratio {times['none'] / times['exact']:.1f}; messages alone "
        f"{1e6 * steps['none']:.0f} and {1e6 * steps['exact']:.0f} µs a step: ratio "
        f"{steps['none'] / steps['exact']:.1f}; beliefs differ by {difference:.0e}"
    )


def _instances(folder: Path) -> None:
    """Errors of marginals against those that were published."""
    for instance in sorted(folder.glob("*.uai")):
        graph = _read(instance)
        published = read_marginals(Path(f"{instance}.MAR"))
        for schedule in ("flooding", "residual"):
            found, seconds = timed(
                lambda g=graph, s=schedule: hl.infer(g, hl.BP(schedule=s), check=False)
            )
            table = found.marginals(observed=True)["probs"].to_pylist()
            errors = [
                np.abs(np.array(ours) - theirs).max()
                for ours, theirs in zip(table, published, strict=True)
            ]
            print(
                f"{instance.stem:16} {schedule:8}  {1e3 * seconds:7.1f} ms  "
                f"{found.solution.result:10} error of marginals {np.mean(errors):.4f} on average, "
                f"{max(errors):.4f} at most"
            )
