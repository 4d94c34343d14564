"""`python -m benchmarks.answers FILE [--data FOLDER]`: answers recorded, or compared with a record.

Before a change of the library's insides, record the answers of all methods; after it, run the same
command again. Where FILE exists, today's answers are compared with those in it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import hylift as hl
from benchmarks.setting import named_data
from experiments.instances import kalman, papers, rgm, robot, toy
from tests.zoo import ZOO

METHODS = {
    "exact": hl.Exact(),
    "mean field": hl.MeanField(),
    "BVI": hl.BVI(3),
    "NPVI": hl.NPVI(3),
    "BP": hl.BP(),
    "GaBP": hl.GaBP(),
    "EPBP": hl.EPBP(20),
    "Gibbs": hl.Gibbs(draws=200, warm_up=100),
    "MaxWalkSAT": hl.MaxWalkSAT(flips=20_000),
}
LIFTINGS = {"exact": ("exact",), "BVI": ("exact", "none", "coarse-to-fine")}
EVERYTHING = ("marginals", "logz", "map")


def graphs(data: Path | None) -> Iterator[tuple[str, Callable[[], hl.FactorGraph]]]:
    """Named models: the zoo, those of the paper, UAI instances."""
    for model in ZOO:
        yield f"zoo {model}", model.graph
    yield "toy", lambda: toy.instance().graph
    yield "rgm", lambda: rgm.generated(0, 0.2).graph
    yield "kalman cycle", lambda: kalman.generated("cycle", 0, "paper").graph
    yield "kalman tree", lambda: kalman.generated("tree", 0, "paper").graph
    yield "papers", lambda: papers.generated(0, "paper").graph
    yield "robot", lambda: robot.generated(0, "paper").graph
    for path in sorted((data / "uai").glob("*.uai")) if data else ():
        yield f"uai {path.name}", lambda path=path: _uai(path)


def _uai(path: Path) -> hl.FactorGraph:
    graph = hl.read_uai(path)
    return graph.observe(hl.read_evidence(f"{path}.evid", graph.variables.num_states))


def answer(graph: hl.FactorGraph, method: object, lift: str) -> np.ndarray:
    """log Z, MAP energy, objective, and then the moments or probabilities of all variables."""
    found = hl.infer(graph, method, lift=lift, tasks=EVERYTHING, seconds=60)
    log_z = np.nan if found.log_partition is None else found.log_partition.value
    objective = np.nan if found.solution.objective is None else found.solution.objective
    moments: list[float] = []
    if found.all_marginals is not None:
        for row in found.marginals().to_pylist():
            moments += row["probs"] if row["probs"] is not None else [row["mean"], row["std"]]
    return np.array([log_z, found.map().energy, objective, *moments])


def record(data: Path | None) -> dict[str, np.ndarray]:
    """All answers by model, method and lifting; refusals are left out."""
    found = {}
    for name, make in graphs(data):
        began, graph = time.perf_counter(), make()
        for label, method in METHODS.items():
            for lift in LIFTINGS.get(label, ("exact",)):
                try:
                    found[f"{name} | {label} | {lift}"] = answer(graph, method, lift)
                except (hl.HyliftError, MemoryError):
                    continue
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)
    return found


def compare(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> None:
    """Prints every answer that differs, and the largest difference of each method."""
    worst: dict[str, float] = {}
    for key in before.keys() | after.keys():
        if key not in before or key not in after:
            print(f"{key}: {'refused' if key in before else 'answered'} only now")
            continue
        old, new = before[key], after[key]
        apart = np.inf
        if old.shape == new.shape:
            scale = np.maximum(1.0, np.abs(np.nan_to_num(old)))
            same = (old == new) | (np.isnan(old) & np.isnan(new))
            apart = float((np.abs(np.where(same, 0.0, old - new)) / scale).max(initial=0.0))
        method = key.split(" | ")[1]
        worst[method] = max(worst.get(method, 0.0), apart)
        if apart > 1e-9:
            print(f"{key}: {apart:.1e}; log Z, MAP energy, objective {old[:3]} -> {new[:3]}")
    for method, apart in worst.items():
        print(f"{method:12} largest difference {apart:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", type=Path, default=named_data())
    options = parser.parse_args()
    after = record(options.data)
    if options.file.exists():
        with np.load(options.file) as before:
            compare(dict(before), after)
    else:
        np.savez_compressed(options.file, **after)


if __name__ == "__main__":
    main()
