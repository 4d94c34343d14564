"""Gaussian inference, exact and by belief propagation, beside SciPy's sparse solver."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

import hylift as hl
from benchmarks.measure import best_of, timed
from benchmarks.setting import Setting


def grid(side: int) -> tuple[hl.FactorGraph, np.ndarray]:
    """A square grid of coupled reals, and its edges."""
    ids = np.arange(side * side).reshape(side, side)
    right = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    edges = np.concatenate([right, down])
    quadratic = hl.ConditionalQuadratic
    groups = (
        hl.FactorGroup(quadratic.squared_distance(1.0, [1.0, -1.0]), edges),
        hl.FactorGroup(quadratic.gaussian([1.0], [[1.0]]), ids.reshape(-1, 1)),
    )
    return hl.FactorGraph(hl.Variables.uniform(hl.real, side * side), groups), edges


def run(setting: Setting) -> None:
    """means, variances and log Z of a grid, beside one sparse LU solve for the means alone"""
    hl.infer(grid(3)[0])
    hl.infer(grid(3)[0], hl.GaBP(), lift="none")
    for side in (20, 60, 150):
        graph, edges = grid(side)
        num = side * side
        degree = np.bincount(edges.ravel(), minlength=num)
        rows = np.concatenate([edges[:, 0], edges[:, 1], np.arange(num)])
        columns = np.concatenate([edges[:, 1], edges[:, 0], np.arange(num)])
        values = np.concatenate([np.full(2 * len(edges), -2.0), 2.0 * degree + 1.0])
        precision = coo_array((values, (rows, columns)), (num, num)).tocsc()
        posterior, _ = timed(lambda graph=graph: hl.infer(graph))
        ours = best_of(3, lambda graph=graph: hl.infer(graph))
        theirs = best_of(3, lambda p=precision, n=num: splu(p).solve(np.ones(n)))
        expected = splu(precision).solve(np.ones(num))
        print(f"{num:6} reals, SciPy {1e3 * theirs:8.1f} ms")
        _report("exact", ours / theirs, ours, posterior, expected)
        for how in ("none", "exact"):
            found, _ = timed(lambda graph=graph, how=how: hl.infer(graph, hl.GaBP(), lift=how))
            seconds = best_of(3, lambda graph=graph, how=how: hl.infer(graph, hl.GaBP(), lift=how))
            name = "GaBP, ground" if how == "none" else "GaBP, lifted"
            _report(name, seconds / theirs, seconds, found, expected)


def _report(
    name: str, ratio: float, seconds: float, found: hl.Posterior, expected: np.ndarray
) -> None:
    error = np.abs(found.marginals()["mean"].to_numpy() - expected).max()
    print(
        f"    {name:12}  {1e3 * seconds:8.1f} ms  ratio {ratio:5.1f}  "
        f"largest difference of means {error:.1e}"
    )
