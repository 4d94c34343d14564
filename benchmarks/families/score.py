"""An answer beside the exact one: right or wrong, and with or without a warning."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from hylift.errors import DoubtWarning
from hylift.inference.method import Method
from hylift.posterior.trust import MOST_MEAN, MOST_PROB, MOST_STD, Trust, Verdict

ROUNDING = 1e-9
"""By which two exact answers may differ."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """The marginals of all hidden variables, in one order."""

    probs: NDArray[np.float64]  # (state of a discrete variable,)
    owner: NDArray[np.object_]  # (state,): the variable
    mean: NDArray[np.float64]  # (real,)
    std: NDArray[np.float64]
    name: NDArray[np.object_]  # (real,)

    @classmethod
    def of(cls, posterior: hl.Posterior) -> Moments:
        rows = posterior.marginals().select(["atom", "probs", "mean", "std"]).to_pylist()
        rows.sort(key=lambda row: row["atom"])
        discrete = [row for row in rows if row["probs"] is not None]
        reals = [row for row in rows if row["probs"] is None]
        return cls(
            np.array([p for row in discrete for p in row["probs"]]),
            np.array([row["atom"] for row in discrete for _ in row["probs"]], dtype=object),
            np.array([row["mean"] for row in reals], dtype=float),
            np.array([row["std"] for row in reals], dtype=float),
            np.array([row["atom"] for row in reals], dtype=object),
        )


@dataclass(frozen=True, slots=True)
class Score:
    """A method's answer about one model."""

    seconds: float  # of processors
    wrong: str | None = None
    """The largest error, in words; None where all are small."""
    verdict: Verdict = "unchecked"
    covered: float = np.nan
    """The share of true errors that are not larger than stated; nan where none is stated."""
    refused: str | None = None

    @property
    def is_flagged(self) -> bool:
        return self.verdict == "doubtful"

    @property
    def is_silent(self) -> bool:
        """Wrong without a warning."""
        return self.wrong is not None and not self.is_flagged


def is_flagged(posterior: hl.Posterior) -> bool:
    """True if the answer says that it may be wrong."""
    return posterior.trust.verdict == "doubtful"


def covered(found: Moments, exact: Moments, trust: Trust) -> float:
    """The share of true errors that are not larger than stated; nan where none is stated."""
    names = trust.variables.names.render(trust.ids).to_pylist()
    errors = zip(trust.prob_error, trust.mean_error, trust.std_factor, strict=True)
    stated = dict(zip(names, errors, strict=True))
    of_states = np.array([stated[name][0] for name in found.owner])
    of_means, of_stds = np.array([stated[name][1:] for name in found.name]).reshape(-1, 2).T
    factor = np.maximum(found.std / exact.std, exact.std / found.std)
    holds = np.concatenate([
        np.abs(found.probs - exact.probs) <= of_states + ROUNDING,
        np.abs(found.mean - exact.mean) <= (of_means + ROUNDING) * exact.std,
        factor <= of_stds + ROUNDING,
    ])  # fmt: skip
    is_stated = np.isfinite(np.concatenate([of_states, of_means, of_stds]))
    return float(holds[is_stated].mean()) if is_stated.any() else np.nan


class Limits(NamedTuple):
    """Errors that are still right: of a probability, of a mean in deviations, and of a deviation as
    a factor."""

    prob: float = MOST_PROB
    mean: float = MOST_MEAN
    std: float = MOST_STD


RIGHT = Limits()


def wrong(found: Moments, exact: Moments, most: Limits = RIGHT) -> str | None:
    """The worst error in words, or None; exact: the true moments."""
    with np.errstate(all="ignore"):
        factor = np.maximum(found.std / exact.std, exact.std / found.std)
        errors = (
            (found.owner, np.abs(found.probs - exact.probs), 0.0, most.prob, "P of {} by {:.2f}"),
            (found.name, np.abs(found.mean - exact.mean) / exact.std, 0.0, most.mean,
             "mean of {} by {:.2f} sd"),
            (found.name, factor, 1.0, most.std, "sd of {} by a factor {:.2f}"),
        )  # fmt: skip
    worst: tuple[float, str] = (1.0, "")
    for name, error, none, limit, text in errors:
        if len(error):
            error = np.nan_to_num(error, nan=np.inf)
            at = int(np.argmax(error))
            size = float((error[at] - none) / (limit - none))
            worst = max(worst, (size, text.format(name[at], error[at])))
    return worst[1] or None


def score(
    graph: hl.FactorGraph, method: Method | None, exact: Moments, seconds: float | None = None
) -> Score:
    """The score of a method; None is the default without exact inference."""
    began = time.process_time()
    try:
        is_named = method is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DoubtWarning)  # which the verdict says, too
            found = hl.infer(graph, method, exact=is_named, tasks="marginals", seconds=seconds)
    except (hl.HyliftError, ArithmeticError, MemoryError) as error:
        text = f"{type(error).__name__}: {error}"
        return Score(time.process_time() - began, refused=text.splitlines()[0])
    taken = time.process_time() - began
    own, trust = Moments.of(found), found.trust
    return Score(taken, wrong(own, exact), trust.verdict, covered(own, exact, trust))
