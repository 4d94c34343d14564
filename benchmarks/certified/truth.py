"""The answers to those models by other means: direct integration, counts, filters on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

import hylift as hl
from benchmarks.certified.models import Hamilton, Regimes, Rooms, Sensors, Vector, Walk
from tests.oracle import Answer


@dataclass(frozen=True, slots=True)
class Truth:
    """log Z, and marginals by predicate, in the order of the arguments."""

    log_z: float
    probs: dict[str, Vector]  # (atom, state)
    mean: dict[str, Vector]  # (atom,)
    std: dict[str, Vector]  # (atom,)

    def answer(self, graph: hl.FactorGraph) -> Answer:
        """The same by variable."""

        def by_id(columns: dict[str, Vector]) -> dict[int, Any]:
            named = [(graph.variables.matching(name), rows) for name, rows in columns.items()]
            return {int(v): row for ids, rows in named for v, row in zip(ids, rows, strict=True)}

        var = {name: std**2 for name, std in self.std.items()}
        return Answer(self.log_z, by_id(self.probs), by_id(self.mean), by_id(var), np.nan)


@dataclass(frozen=True, slots=True)
class Apart:
    """The largest differences between a posterior and the truth."""

    log_z: float
    prob: float
    mean: float  # in standard deviations
    std: float  # relative

    @classmethod
    def of(cls, found: hl.Posterior, truth: Answer) -> Apart:
        rows = found.marginals().select(["probs", "mean", "std"]).to_pylist()
        row = dict(zip(np.flatnonzero(~found.observed).tolist(), rows, strict=True))
        known, sd = found.log_partition, {v: var**0.5 for v, var in truth.var.items()}
        return cls(
            np.nan if known is None else abs(known.value - truth.log_z),
            _largest([np.abs(row[v]["probs"] - p).max() for v, p in truth.probs.items()]),
            _largest([abs(row[v]["mean"] - m) / sd[v] for v, m in truth.mean.items()]),
            _largest([abs(row[v]["std"] / s - 1) for v, s in sd.items()]),
        )


def _largest(values: list[float]) -> float:
    return float(np.max(values, initial=0.0))  # NaN if one is


def sensors(model: Sensors) -> Truth:
    """Room by room, by Gauss-Legendre integration over the temperature on narrow panels."""
    edges = np.arange(-60.0, 100.0, 0.25)
    x, w = np.polynomial.legendre.leggauss(16)
    t = (edges[:-1, None] + 0.125 * (x + 1)).ravel()
    log_w = np.log(np.tile(0.125 * w, len(edges) - 1))
    log_z, faulty = 0.0, np.zeros(len(model.room))
    rooms = np.unique(model.room)
    mean, std = np.zeros(len(rooms)), np.zeros(len(rooms))
    for place, room in enumerate(rooms):
        mine = model.room == room
        y = model.reading[mine][:, None]
        works = norm.logpdf(y, t, 0.5)
        broken = norm.logpdf(y, 20.0, np.sqrt(100.25)) - 3.0 + 0 * t
        either = np.logaddexp(works, broken)
        log_t = log_w + norm.logpdf(t, 20, 3) + either.sum(axis=0)
        total = logsumexp(log_t)
        p = np.exp(log_t - total)
        log_z += total
        faulty[mine] = np.exp(broken - either) @ p
        mean[place] = p @ t
        std[place] = np.sqrt(p @ (t - mean[place]) ** 2)
    probs = _odds(faulty)
    return Truth(float(log_z), {"Faulty": probs}, {"temperature": mean}, {"temperature": std})


def copies(model: Sensors) -> Truth:
    """All four states of the two sensors of each room, by conjugate Gaussian updates."""
    y = model.reading.reshape(-1, 2)
    log_p, mean, var = [], [], []
    for broken in ((0, 0), (0, 1), (1, 0), (1, 1)):
        log, m, v = np.zeros(len(y)), np.full(len(y), 20.0), np.full(len(y), 9.0)
        for sensor, wild in enumerate(broken):
            seen = y[:, sensor]
            if wild:
                log += norm.logpdf(seen, 20.0, np.sqrt(100.25)) - 3.0
            else:
                log += norm.logpdf(seen, m, np.sqrt(v + 0.25))
                m, v = m + v / (v + 0.25) * (seen - m), v * 0.25 / (v + 0.25)
        log_p.append(log)
        mean.append(m)
        var.append(v)
    log_p, mean, var = np.array(log_p), np.array(mean), np.array(var)
    total = logsumexp(log_p, axis=0)
    p = np.exp(log_p - total)
    faulty = np.stack([p[2] + p[3], p[1] + p[3]], axis=1).ravel()
    centre = (p * mean).sum(axis=0)
    std = np.sqrt((p * (var + (mean - centre) ** 2)).sum(axis=0))
    probs = _odds(faulty)
    return Truth(total.sum(), {"Faulty": probs}, {"temperature": centre}, {"temperature": std})


def rooms(model: Rooms) -> Truth:
    """A sum over the number k of heated rooms: given k, the joint Gaussian has a closed form.

    The pairs add -0.2 (n Σ t² - (Σ t)²), so that J = a I - 0.4 1 1ᵀ with a = 0.25 + 0.4 n.
    """
    n = model.num_rooms
    k = np.arange(n + 1)
    a = 0.25 + 0.4 * n
    total = (12.0 * n + 8.0 * k) / 4  # Σ h
    squares = (144.0 * (n - k) + 400.0 * k) / 16  # Σ h²
    log_det = (n - 1) * np.log(a) + np.log(0.25)
    # hᵀ J⁻¹ h with J⁻¹ = (I + 0.4 / 0.25 1 1ᵀ) / a
    quadratic = (squares + 1.6 * total**2) / a
    log_k = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + model.weight * k
    log_k += 0.5 * quadratic - 2.0 * squares - 0.5 * n * np.log(4.0) - 0.5 * log_det
    log_z = logsumexp(log_k)
    p = np.exp(log_k - log_z)
    heated = p @ k / n
    mean = np.stack([3.0 + 1.6 * total, 5.0 + 1.6 * total]) / a  # (heated, k)
    share = np.stack([p * (n - k) / n, p * k / n])
    centre = (share * mean).sum()
    var = (1 + 1.6) / a + (share * (mean - centre) ** 2).sum()
    return Truth(
        float(log_z),
        {"Heated": np.tile([1 - heated, heated], (n, 1))},
        {"temperature": np.full(n, centre)},
        {"temperature": np.full(n, np.sqrt(var))},
    )


def weight_for(num_rooms: int, heated: float = 0.3) -> float:
    """The weight of `Heated` that makes a room heated with this probability."""

    def excess(weight: float) -> float:
        return float(rooms(Rooms(num_rooms, weight)).probs["Heated"][0, 1]) - heated

    return float(brentq(excess, -5.0, 5.0, xtol=1e-14))


def regimes(model: Regimes, spacing: float = 0.1) -> Truth:
    """Forward and backward over level and regime, the level on a grid of this spacing."""
    nodes = _nodes(model.reading, spacing)
    start = norm.pdf(nodes, 0, 2.0)[:, None] * np.full(3, 1 / 3) * spacing
    switch = np.full((3, 3), (1 - model.keep) / 2) + np.eye(3) * (1.5 * model.keep - 0.5)
    moves = np.stack([
        norm.pdf(nodes[None, :], model.back * nodes[:, None] + drift, np.sqrt(var)) * spacing
        for drift, var in zip(model.drift, model.step_var, strict=True)
    ])  # fmt: skip
    seen = norm.logpdf(model.reading[:, None], nodes, np.sqrt(model.reading_var))
    log_z, belief = _smoothed(start, switch, moves, seen)
    level = belief.sum(axis=2)
    return Truth(log_z, {"Regime": belief.sum(axis=1)}, *_moments("level", level, nodes))


def walk(model: Walk, spacing: float = 0.125) -> Truth:
    """Forward and backward over the level on a grid, each sensor summed out on its day."""
    nodes = _nodes(model.reading, spacing)
    y = model.reading[:, None]
    works = norm.logpdf(y, nodes, 0.5)
    broken = norm.logpdf(y, 0.0, 10.0) - 2.0 + 0 * nodes
    seen = np.logaddexp(works, broken)
    moves = norm.pdf(nodes[None, :], nodes[:, None], 1.0)[None] * spacing
    start = norm.pdf(nodes, 0, 1.0)[:, None] * spacing
    log_z, belief = _smoothed(start, np.ones((1, 1)), moves, seen)
    faulty = (belief[:, :, 0] * np.exp(broken - seen)).sum(axis=1)
    probs = _odds(faulty)
    return Truth(log_z, {"Faulty": probs}, *_moments("level", belief[:, :, 0], nodes))


def hamilton(model: Hamilton) -> Truth:
    """Hamilton's filter over the regimes of five quarters, and Kim's smoother."""
    y, mu = model.growth, np.array(model.mean)
    states = np.array(np.meshgrid(*[[0, 1]] * 5, indexing="ij")).reshape(5, -1)  # oldest first
    p = model.start
    for _ in range(3):  # the joint distribution of the first four regimes
        p = (p[..., None] * model.move).reshape(*p.shape, 2)
    log_z, filtered = 0.0, []
    for q in range(4, len(y)):
        joint = p[..., None] * model.move
        past = sum(phi * (y[q - i] - mu[states[4 - i]]) for i, phi in enumerate(model.ar, start=1))
        density = norm.pdf(y[q], mu[states[4]] + past, np.sqrt(model.var)).reshape((2,) * 5)
        joint = joint * density
        total = joint.sum()
        log_z += np.log(total)
        filtered.append(joint / total)
        p = filtered[-1].sum(axis=0)
    smoothed = filtered[-1]
    up = [smoothed.sum(axis=(0, 1, 2, 3))]
    for at in range(len(filtered) - 2, -1, -1):
        # (s2 … s6 | y) against its prediction from s1 … s5, summed to what both share
        ahead = smoothed.sum(axis=4) / filtered[at].sum(axis=0)
        smoothed = filtered[at] * ahead[None]
        up.append(smoothed.sum(axis=(0, 1, 2, 3)))
    first = [smoothed.sum(axis=tuple(a for a in range(5) if a != axis)) for axis in range(4)]
    return Truth(float(log_z), {"Up": np.array(first + up[::-1])}, {}, {})


def counted(name: str) -> Truth:
    """The models that can be counted, by hand."""
    x = np.arange(20)
    match name:
        case "two ordered sets":  # the first a are in H, those from b on in T: 0 ≤ a ≤ b ≤ 20
            first = (20 - x) * (21 - x) / 462
            return Truth(np.log(231), {"H": _odds(first), "T": _odds(first[::-1])}, {}, {})
        case "derangements of six":
            return Truth(np.log(265), {"Perm": _odds((1 - np.eye(6)).ravel() / 5)}, {}, {})
        case "one of eight":
            return Truth(np.log(8), {"P": _odds(np.full(8, 1 / 8))}, {}, {})
    assert name == "twenty by twenty"  # a sum over the numbers of R and S that hold
    k = np.arange(21)
    choose = gammaln(21) - gammaln(k + 1) - gammaln(21 - k)
    log_kl = choose[:, None] + choose + 2.0 * (400 - (20 - k)[:, None] * (20 - k))
    log_z = float(logsumexp(log_kl))
    probs = _odds(np.full(20, np.exp(log_kl - log_z).sum(axis=1) @ k / 20))
    return Truth(log_z, {"R": probs, "S": probs}, {}, {})


def _odds(true: Vector) -> Vector:
    """(atom, state) of Booleans."""
    return np.stack([1 - true, true], axis=1)


def _nodes(reading: Vector, spacing: float) -> Vector:
    """A grid that reaches well beyond all readings."""
    low, high = reading.min() - 15.0, reading.max() + 15.0
    return spacing * np.arange(np.floor(low / spacing), np.ceil(high / spacing))


def _smoothed(start: Vector, switch: Vector, moves: Vector, seen: Vector) -> tuple[float, Vector]:
    """log Z and beliefs (day, node, regime) of a switching chain.

    start: (node, regime); switch: (regime, next); moves: (next regime, node, next node);
    seen: (day, node), logarithms.
    """
    top = seen.max(axis=1)
    likelihood = np.exp(seen - top[:, None])[:, :, None]
    scale, forward = [start.sum()], [start / start.sum()]
    for day in range(len(seen)):
        if day:
            before = forward[-1] @ switch
            now = np.stack([before[:, r] @ move for r, move in enumerate(moves)], axis=1)
            scale.append(1.0)
            forward.append(now)
        now = forward[-1] * likelihood[day]
        scale[-1] *= now.sum()
        forward[-1] = now / now.sum()
    backward = [np.ones_like(start)]
    for day in range(len(seen) - 1, 0, -1):
        after = backward[-1] * likelihood[day]
        into = np.stack([move @ after[:, r] for r, move in enumerate(moves)], axis=1)
        now = into @ switch.T
        backward.append(now / now.max())
    belief = np.array(forward) * np.array(backward[::-1])
    belief /= belief.sum(axis=(1, 2), keepdims=True)
    return float(np.log(scale).sum() + top.sum()), belief


def _moments(
    predicate: str, belief: Vector, nodes: Vector
) -> tuple[dict[str, Vector], dict[str, Vector]]:
    mean = belief @ nodes
    std = np.sqrt((belief * (nodes - mean[:, None]) ** 2).sum(axis=1))
    return {predicate: mean}, {predicate: std}
