"""Forest plot: many marginals, one line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.graph.domains import BOOLEAN_STATES
from hylift.plot.inputs import TRUTH, by_label, doubt_mark, explained, true_values
from hylift.plot.style import (
    COLORS,
    INK,
    LINE,
    as_written,
    dress,
    figure_of,
    shortened,
    write_figure,
    write_legend,
)
from hylift.posterior import Categorical, PointMass, Posterior
from hylift.words import Wording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ATOMS = 100
MAX_POSTERIORS = 6
MARKS = ("o", "s", "D", "^", "v", "P")
OBSERVED = {"label": "observed", "color": INK, "marker": "x", "markeredgecolor": INK}
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Ends of the thin line, ends of the thick one, and the mark in the middle."""

MAX_NAME = 44
"""Letters of an atom."""
LINE_HEIGHT = 0.26
"""Inches of an atom with one posterior."""
SPREAD = 0.5
"""Share of an atom's height that several posteriors take."""
BAND = "#F3F3F3"
"""Background of every other atom, with several posteriors."""


def plot_forest(
    posteriors: Posterior | Mapping[str, Posterior],
    atoms: str | Iterable[str] | None = None,
    *,
    sort: bool = False,
    truth: Mapping[str, object] | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Marginals of many atoms below each other; a mapping of several posteriors labels them.

    Of a real the median, with a thick line for the middle half and a thin one for 90 %; of a
    Boolean the probability that it is true; of a categorical variable that of its most probable
    state, with its name. Crosses are observed values. `atoms` are names, patterns, or predicates
    for their atoms that are not observed; all reals or all discrete. `sort` has the largest on top.
    `truth` has values that are known to be true, by atom: triangles mark them, or words where the
    state is another one. With `path` the figure is written there.
    """
    from matplotlib.figure import Figure

    if path is not None:
        check_figure(path)
    labelled = by_label(posteriors, "plot_forest", MAX_POSTERIORS)
    first = next(iter(labelled.values()))
    names = _names(first, atoms)
    true = true_values(truth, first, names)
    if sort:
        names = _sorted(first, names)
    is_new = ax is None
    if ax is None:
        height = 1.0 + LINE_HEIGHT * len(names) * (1 + 0.4 * (len(labelled) - 1))
        ax = Figure(figsize=(6.4, height), layout="constrained").add_subplot()
    places = np.arange(len(names), dtype=float)
    shifts = np.linspace(-SPREAD, SPREAD, len(labelled)) / 2 if len(labelled) > 1 else [0.0]
    for (label, posterior), shift, color, mark in zip(
        labelled.items(), shifts, cycle(COLORS), cycle(MARKS), strict=False
    ):
        look = {"label": label, "color": color, "marker": mark, "markeredgecolor": "white"}
        _draw(ax, places + shift, posterior, names, look, true)
    for y in places[1::2] if len(labelled) > 1 else []:
        ax.axhspan(y - 0.5, y + 0.5, color=BAND, linewidth=0, zorder=0)
    _mark_truth(ax, places - (0.3 if len(labelled) == 1 else 0.38), first, names, true)
    marks = [doubt_mark(labelled.values(), name) for name in names]
    _label(ax, names, marks, is_real=not _is_discrete(first, names[0]))
    handles = explained(_handles(ax, labelled), marks)
    write_legend(figure_of(ax) if is_new else ax, handles)
    write_figure(ax, path)
    return ax


def _names(posterior: Posterior, atoms: str | Iterable[str] | None) -> list[str]:
    """The atoms that are drawn: few enough, and of one kind."""
    ids = posterior.select(atoms)
    if not 0 < len(ids) <= MAX_ATOMS:
        raise UnsupportedError(
            f"a forest plot shows 1 to {MAX_ATOMS} atoms, not {len(ids):,}",
            Wording("name some of them", "name some with --query"),
        )
    discrete = posterior.variables.num_states[ids] > 0
    names: list[str] = posterior.variables.names.render(ids).to_pylist()
    if discrete.any() and not discrete.all():
        one, other = names[int(np.argmax(discrete))], names[int(np.argmin(discrete))]
        raise UnsupportedError(
            f"a forest plot has one axis for all atoms, but '{one}' is discrete and '{other}' is a "
            "real",
            Wording("name atoms of one kind", "name atoms of one kind with --query"),
        )
    return names


def _sorted(posterior: Posterior, names: list[str]) -> list[str]:
    """The largest first."""
    heights = np.array([_height(posterior.marginal(name)) for name in names])
    order = np.argsort(-np.round(heights, 9), kind="stable")  # rounding does not reorder equal ones
    return [names[at] for at in order]


def _is_discrete(posterior: Posterior, name: str) -> bool:
    variables = posterior.variables
    return bool(variables.num_states[variables.names.id(name)] > 0)


def _height(marginal: Any) -> float:
    """The sort key of an atom: its probability, value or median."""
    if isinstance(marginal, Categorical):
        return _probability(marginal)[0]
    return float(marginal.value if isinstance(marginal, PointMass) else marginal.quantile(0.5))


def _probability(marginal: Categorical) -> tuple[float, str]:
    """The probability that is drawn and the name of its state, empty for 'true'."""
    states, probs = tuple(marginal.states), np.asarray(marginal.probs)
    if states == BOOLEAN_STATES:
        return float(probs[1]), ""
    best = int(np.argmax(probs))
    return float(probs[best]), states[best]


def _draw(
    ax: Axes,
    places: NDArray[np.float64],
    posterior: Posterior,
    names: list[str],
    look: Mapping[str, Any],
    true: Mapping[str, float],
) -> None:
    """The marginals of one posterior, at their heights."""
    for y, name in zip(places.tolist(), names, strict=True):
        marginal = posterior.marginal(name)
        mark: dict[str, Any] = {"linestyle": "", "markersize": 5.5, "clip_on": False} | dict(look)
        if posterior.observed[posterior.variables.names.id(name)]:
            mark |= OBSERVED
        if isinstance(marginal, Categorical):
            probability, state = _probability(marginal)
            ax.plot([0, probability], [y, y], color=mark["color"], linewidth=1.2)
            ax.annotate(
                _with_truth(state, marginal, true.get(name)), (probability, y), xytext=(6, 0),
                textcoords="offset points", va="center", fontsize=8, color=INK, parse_math=False,
            )  # fmt: skip
        elif not isinstance(marginal, PointMass):
            low, inner_low, _, inner_high, high = (marginal.quantile(p) for p in LEVELS)
            ax.plot([low, high], [y, y], color=mark["color"], linewidth=1.2)
            ax.plot([inner_low, inner_high], [y, y], color=mark["color"], linewidth=3.6)
        ax.plot([_height(marginal)], [y], **mark)


def _with_truth(state: str, marginal: Categorical, truth: float | None) -> str:
    """The name of a state, with that of the true one if they differ."""
    if not state or truth is None or marginal.states[int(truth)] == state:
        return state
    return f"{state} (truth: {marginal.states[int(truth)]})"


def _mark_truth(
    ax: Axes,
    places: NDArray[np.float64],
    posterior: Posterior,
    names: list[str],
    true: Mapping[str, float],
) -> None:
    """Triangles above the lines: of reals at their values, of Booleans at 0 or 1."""
    for y, name in zip(places.tolist(), names, strict=True):
        marginal = posterior.marginal(name)
        is_worded = isinstance(marginal, Categorical) and marginal.states != BOOLEAN_STATES
        if name in true and not is_worded:
            ax.plot([true[name]], [y], **TRUTH | {"markersize": 5.5}, label="truth")


def _label(ax: Axes, names: list[str], marks: list[str], *, is_real: bool) -> None:
    ax.set_yticks(range(len(names)))
    told = [shortened(name, MAX_NAME) + mark for name, mark in zip(names, marks, strict=True)]
    as_written(ax.set_yticklabels(told))
    ax.set_ylim(len(names) - 0.4, -0.6)  # the first on top
    dress(ax)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0, labelsize=8)
    ax.grid(axis="x", color=LINE, alpha=0.3, linewidth=0.6)
    if is_real:
        ax.set_xlabel("median, middle half and 90 %")
    else:
        ax.set_xlim(0, 1.02)
        ax.set_xlabel("probability")


def _handles(ax: Axes, posteriors: Iterable[str]) -> dict[str, Any]:
    """Legend entries: labels of posteriors unless there is only one, then marks."""
    handles, labels = ax.get_legend_handles_labels()
    found = dict(zip(labels, handles, strict=True))  # each once
    shown = [label for label in posteriors if label in found]
    if len(shown) > 1:
        return {label: found[label] for label in dict.fromkeys([*shown, *found])}
    return {label: found[label] for label in ("observed", "truth") if label in found}
