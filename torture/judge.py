"""An answer beside the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import hylift as hl
from benchmarks.families.score import ROUNDING, Moments, wrong
from hylift.errors import ImpossibleEvidenceError
from hylift.posterior.trust import UNCHECKED, VERDICTS
from torture.case import Problem

EVERYTHING = ("marginals", "logz", "map")
LIMIT = 4.0
"""Predicted seconds of exact inference; graphs that should take longer are not judged."""
MOST_ERROR = 1e-6
"""Stated error of log Z up to which an exact answer stands for the truth."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The right answers; None where none is known."""

    moments: Moments | None
    log_z: float = 0.0
    log_z_error: float = 0.0
    energy: float | None = None
    is_impossible: bool = False

    @classmethod
    def of(cls, graph: hl.FactorGraph) -> Truth | None:
        """By exact inference where it is certain; None where it is not."""
        try:
            found = hl.infer(graph, hl.Exact(), tasks=EVERYTHING, seconds=LIMIT)
        except ImpossibleEvidenceError:
            return cls(None, is_impossible=True)
        except (hl.HyliftError, MemoryError):
            return None
        known = found.log_partition
        assert known is not None
        tolerance = MOST_ERROR * max(1.0, abs(known.value))
        if found.trust.verdict not in ("certified", "checked") or not known.error <= tolerance:
            return None
        best = found.map()
        energy = best.energy if best.kind == "exact" else None
        return cls(Moments.of(found), known.value, known.error, energy)

    def rescaled(self, graph: hl.FactorGraph, offset: np.ndarray, scale: np.ndarray) -> Truth:
        """The truth about `rescaled(graph, offset, scale)`."""
        if self.moments is None:
            return self
        m = self.moments
        at = graph.variables.ids(m.name.tolist())
        moved = replace(m, mean=m.mean * scale[at] + offset[at], std=m.std * scale[at])
        measured = graph.evidence.variable[~graph.evidence.is_hard]  # with a density of its own
        of_density = float(np.log(scale[measured]).sum())
        log_z = self.log_z + float(np.log(scale[graph.is_hidden]).sum()) - of_density
        error = self.log_z_error + 1e-12 * abs(log_z - self.log_z)
        energy = None if self.energy is None else self.energy + of_density
        return Truth(moved, log_z, error, energy)


def judged(found: hl.Posterior, truth: Truth | None) -> Problem | None:
    """The worst problem of an answer."""
    problem = _odd(found)
    if problem is None and truth is not None:
        problem = _wrong(found, truth) or _beyond_bounds(found, truth)
    return problem


def _odd(found: hl.Posterior) -> Problem | None:
    """Numbers that no answer may have."""
    log_z = found.log_partition
    if log_z is not None and not (np.isfinite(log_z.value) and log_z.error >= 0):
        return Problem("non-finite", f"log Z is {log_z!r}", "log Z")
    if found.assignment is not None and not np.isfinite(found.assignment.energy):
        return Problem("non-finite", f"the MAP energy is {found.assignment.energy}", "MAP")
    if found.all_marginals is None:
        return None
    own = Moments.of(found)
    is_share = (own.probs >= 0) & (own.probs <= 1 + ROUNDING)
    totals = np.bincount(np.unique(own.owner.astype(str), return_inverse=True)[1], own.probs)
    if not is_share.all() or np.abs(totals - 1).max(initial=0.0) > 1e-6:
        return Problem("non-finite", f"probabilities {own.probs.tolist()}", "probabilities")
    if not (np.isfinite(own.mean) & np.isfinite(own.std) & (own.std >= 0)).all():
        return Problem("non-finite", f"means {own.mean}, deviations {own.std}", "moments")
    return None


def _wrong(found: hl.Posterior, truth: Truth) -> Problem | None:
    """Wrong marginals that are not flagged."""
    trust = found.trust
    if VERDICTS.index(trust.verdict) >= UNCHECKED:
        return None
    about = f"{found.solution.method} is {trust.verdict}: {trust.why}"
    if truth.is_impossible:
        return Problem("wrong and unflagged", f"nothing is possible, but {about}", "impossible")
    if found.all_marginals is None or truth.moments is None:
        return None
    error = wrong(Moments.of(found), truth.moments)
    key = f"{found.solution.method.partition('(')[0]} {trust.verdict}"
    return None if error is None else Problem("wrong and unflagged", f"{error}; {about}", key)


def _beyond_bounds(found: hl.Posterior, truth: Truth) -> Problem | None:
    """Bounds on log Z, energies and certified errors that do not hold."""
    method = found.solution.method
    log_z = found.log_partition
    rounding = truth.log_z_error + ROUNDING * max(1.0, abs(truth.log_z))
    if log_z is not None and not truth.is_impossible and (
        log_z.lower > truth.log_z + rounding or log_z.upper < truth.log_z - rounding
    ):  # fmt: skip
        text = f"{method}: log Z is {truth.log_z!r}, not in [{log_z.lower!r}, {log_z.upper!r}]"
        return Problem("bound violation", f"{text} ({log_z.kind})", f"log Z {method}")
    best = found.assignment
    if best is not None and truth.energy is not None:
        rounding = 1e-7 * max(1.0, abs(truth.energy))
        known = best.gap if best.kind == "exact" and np.isfinite(best.gap) else 0.0
        too_high = best.kind == "exact" and best.energy > truth.energy + known + rounding
        if too_high or best.energy < truth.energy - rounding:
            text = f"{method}: the least energy is {truth.energy!r}, not {best.energy!r}"
            return Problem("bound violation", f"{text} ({best.kind})", f"MAP {method}")
    if found.all_marginals is None or truth.moments is None:
        return None
    return _beyond_stated(found, truth.moments)


def _beyond_stated(found: hl.Posterior, exact: Moments) -> Problem | None:
    """A certified marginal whose error is larger than what is stated."""
    own, trust = Moments.of(found), found.trust
    names = trust.variables.names.render(trust.ids).to_pylist()
    stated = {
        name: (p, m, s, verdict)
        for name, p, m, s, verdict in zip(
            names, trust.prob_error, trust.mean_error, trust.std_factor, trust.verdict_id,
            strict=True,
        )
    }  # fmt: skip
    for name, p, q in zip(own.owner, own.probs, exact.probs, strict=True):
        if stated[name][3] == 0 and abs(p - q) > stated[name][0] + 1e-6:
            text = f"P of {name} is {q!r}, not {p!r} ± {stated[name][0]:.1e}"
            return Problem("bound violation", text, f"P {found.solution.method}")
    for name, mean, std, m, s in zip(
        own.name, own.mean, own.std, exact.mean, exact.std, strict=True
    ):
        _, of_mean, of_std, verdict = stated[name]
        factor = max(std / s, s / std) if std > 0 and s > 0 else np.inf
        # Means of components are floating-point numbers: far from 0 they have fewer digits.
        room = 1e-6 + float(np.spacing(abs(m))) / s if s > 0 else 1e-6
        if verdict == 0 and (abs(mean - m) > (of_mean + room) * s or factor > of_std + room):
            text = f"{name} is {m!r} ± {s!r}, not {mean!r} ± {std!r} up to {of_mean:.1e}"
            return Problem("bound violation", text, f"moments {found.solution.method}")
    return None


def difference(one: hl.Posterior, other: hl.Posterior) -> str | None:
    """The first part in which two answers are not the same to the last bit."""
    if one.all_marginals is not None and not one.marginals().equals(other.marginals()):
        return "marginals"
    if one.log_partition != other.log_partition:
        return f"log Z: {one.log_partition!r} and {other.log_partition!r}"
    if one.assignment is not None and (
        one.assignment.values.tobytes() != other.assignment.values.tobytes()
    ):
        return "assignments"
    if one.draws is not None and one.draws.values.tobytes() != other.draws.values.tobytes():
        return "draws"
    if (one.solution.result, one.solution.steps) != (other.solution.result, other.solution.steps):
        return f"steps: {one.solution} and {other.solution}"
    a, b = one.solution.history, other.solution.history
    if a is not None and a.objective.tobytes() != b.objective.tobytes():
        return "objectives"
    return None
