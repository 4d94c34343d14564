"""Arguments that several plots share: posteriors by label, true values, measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph.domains import as_float
from hylift.plot.style import INK
from hylift.posterior import Posterior

TRUTH: dict[str, Any] = {
    "linestyle": "",
    "marker": "v",
    "markersize": 7,
    "color": INK,
    "markeredgecolor": "white",
    "markeredgewidth": 0.7,
    "clip_on": False,
    "zorder": 6,
}
"""Marker style of true values."""
DOUBT = "(?)"


def by_label(
    posteriors: Posterior | Mapping[str, Posterior], name: str, most: int
) -> dict[str, Posterior]:
    """Posteriors by label, a single one by its method; an error if there are none or too many.

    name: of the plotting function.
    """
    if isinstance(posteriors, Posterior):
        posteriors = {posteriors.solution.method: posteriors}
    if not isinstance(posteriors, Mapping) or not all(
        isinstance(posterior, Posterior) for posterior in posteriors.values()
    ):
        raise UnsupportedError(
            f"{name} draws a posterior, or several as a mapping: {{'BVI': posterior, …}}"
        )
    if not 0 < len(posteriors) <= most:
        raise UnsupportedError(f"{name} draws 1 to {most} posteriors, not {len(posteriors)}")
    return {str(label): posterior for label, posterior in posteriors.items()}


def true_values(
    truth: Mapping[str, object] | None, posterior: Posterior, names: Iterable[str]
) -> dict[str, float]:
    """The true values of those names that have one: reals, or indices of states."""
    if truth is None:
        return {}
    if not isinstance(truth, Mapping):
        raise UnsupportedError(
            "truth is a mapping of atoms to values, such as {'posA(a0)': 1.5}, not a value of type "
            f"'{type(truth).__name__}'"
        )
    variables = posterior.variables
    # Names may be written with spaces, as where a marginal is asked for.
    known = dict(zip(variables.ids(list(truth)).tolist(), truth.values(), strict=True))
    found = {}
    for name in names:
        if (at := variables.names.id(name)) in known:
            domain = variables.domain(at)
            # The truth may lie outside of the model's bounds.
            encode = domain.encode if domain.is_discrete else as_float
            found[name] = encode(known[at], name)
    return found


def measurements(posteriors: Iterable[Posterior], name: str) -> list[tuple[float, float]]:
    """Values of a real that were measured with an error, and the sds of the errors.

    Loaded posteriors have none.
    """
    found = []
    for posterior in posteriors:
        if posterior.target is None:
            continue
        evidence = posterior.target.evidence
        at = (evidence.variable == posterior.variables.names.id(name)) & ~evidence.is_hard
        sds = np.sqrt(evidence.var[at])
        found += list(zip(evidence.value[at].tolist(), sds.tolist(), strict=True))
    return list(dict.fromkeys(found))


def doubt_mark(posteriors: Iterable[Posterior], name: str) -> str:
    """A mark behind the name of an atom whose marginal is doubtful in some posterior."""
    verdicts = [one.trust.verdicts_of(np.array([one.variables.id(name)]))[0] for one in posteriors]
    return f" {DOUBT}" if "doubtful" in verdicts else ""


def explained(handles: dict[str, Any], marks: Iterable[str]) -> dict[str, Any]:
    """Legend entries, with one for the mark of doubt where it is drawn."""
    from matplotlib.lines import Line2D

    if not any(marks):
        return handles
    mark = Line2D([], [], color=INK, linestyle="", marker=f"${DOUBT}$", markersize=11)
    return handles | {"doubtful": mark}
