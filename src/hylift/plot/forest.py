"""Many marginals in one picture, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.plot.several import by_label
from hylift.plot.style import COLORS, INK, LINE, figure_of, write_figure
from hylift.posterior import Categorical, PointMass, Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ATOMS = 100
MAX_POSTERIORS = 6
MARKS = ("o", "s", "D", "^", "v", "P")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Ends of the thin line, ends of the thick one, and the mark in the middle."""

LINE_HEIGHT = 0.26
"""Inches of an atom with one posterior."""
SPREAD = 0.5
"""How much of an atom's height several posteriors take."""


def plot_forest(
    posteriors: Posterior | Mapping[str, Posterior],
    atoms: str | Iterable[str] | None = None,
    ax: Axes | None = None,
    *,
    sort: bool = False,
    path: str | Path | None = None,
) -> Axes:
    """Marginals of many atoms below each other; a mapping of several posteriors labels them.

    Of a real the median, with a thick line for the middle half and a thin one for 90 %; of a
    Boolean the probability that it is true; of a categorical variable that of its most probable
    state, with its name. Crosses are observed values. `atoms` are names or patterns, all reals or
    all discrete; `sort` has the largest on top. With `path` the figure is written there.
    """
    from matplotlib.figure import Figure

    if path is not None:
        check_figure(path)
    labelled = by_label(posteriors, "plot_forest", MAX_POSTERIORS)
    first = next(iter(labelled.values()))
    names = _names(first, atoms)
    marginals = {
        label: [posterior.marginal(name) for name in names] for label, posterior in labelled.items()
    }
    if sort:
        heights = np.array([_height(one) for one in next(iter(marginals.values()))])
        order = np.argsort(-np.round(heights, 9), kind="stable")  # rounding sorts no look-alikes
        names = [names[at] for at in order]
        marginals = {label: [found[at] for at in order] for label, found in marginals.items()}
    if ax is None:
        height = 1.0 + LINE_HEIGHT * len(names) * (1 + 0.4 * (len(labelled) - 1))
        ax = Figure(figsize=(6.4, height), layout="constrained").add_subplot()
    places = np.arange(len(names), dtype=float)
    shifts = np.linspace(-SPREAD, SPREAD, len(labelled)) / 2 if len(labelled) > 1 else [0.0]
    for (label, found), shift, color, mark in zip(
        marginals.items(), shifts, cycle(COLORS), cycle(MARKS), strict=False
    ):
        _draw(ax, places + shift, found, color, mark, label)
    _label(ax, names, has_legend=len(labelled) > 1, is_real=not _is_discrete(first, names[0]))
    if path is not None:
        write_figure(figure_of(ax), path)
    return ax


def _names(posterior: Posterior, atoms: str | Iterable[str] | None) -> list[str]:
    """The atoms that are drawn: few enough, and of one kind."""
    ids = posterior.select(atoms)
    if not 0 < len(ids) <= MAX_ATOMS:
        raise UnsupportedError(
            f"a forest plot shows 1 to {MAX_ATOMS} atoms, not {len(ids):,}: name some of them"
        )
    discrete = posterior.variables.num_states[ids] > 0
    names: list[str] = posterior.variables.names.render(ids).to_pylist()
    if discrete.any() and not discrete.all():
        one, other = names[int(np.argmax(discrete))], names[int(np.argmin(discrete))]
        raise UnsupportedError(
            f"a forest plot has one axis for all atoms, but '{one}' is discrete and '{other}' is a "
            "real: name atoms of one kind"
        )
    return names


def _is_discrete(posterior: Posterior, name: str) -> bool:
    variables = posterior.variables
    return bool(variables.num_states[variables.names.id(name)] > 0)


def _height(marginal: Any) -> float:
    """What atoms are sorted by."""
    if isinstance(marginal, Categorical):
        return _probability(marginal)[0]
    return float(marginal.value if isinstance(marginal, PointMass) else marginal.quantile(0.5))


def _probability(marginal: Categorical) -> tuple[float, str]:
    """Of what is drawn, and its name; that of 'true' goes without saying."""
    states, probs = tuple(marginal.states), np.asarray(marginal.probs)
    if states == ("false", "true"):
        return float(probs[1]), ""
    best = int(np.argmax(probs))
    return float(probs[best]), states[best]


def _draw(
    ax: Axes, places: NDArray[np.float64], marginals: list[Any], color: str, mark: str, label: str
) -> None:
    for number, (y, marginal) in enumerate(zip(places.tolist(), marginals, strict=True)):
        name = label if number == 0 else None
        if isinstance(marginal, PointMass):
            ax.plot(float(marginal.value), y, "x", color=INK, markersize=5)
        elif isinstance(marginal, Categorical):
            probability, state = _probability(marginal)
            ax.plot([0, probability], [y, y], color=color, linewidth=1.2)
            ax.plot(probability, y, mark, color=color, markersize=5, label=name)
            ax.annotate(
                state, (probability, y), xytext=(6, 0), textcoords="offset points", va="center",
                fontsize=8, color=INK, parse_math=False,
            )  # fmt: skip
        else:
            low, inner_low, middle, inner_high, high = (marginal.quantile(p) for p in LEVELS)
            ax.plot([low, high], [y, y], color=color, linewidth=1.2)
            ax.plot([inner_low, inner_high], [y, y], color=color, linewidth=3.6)
            ax.plot(
                middle, y, mark, color=color, markersize=5.5, markeredgecolor="white", label=name
            )


def _label(ax: Axes, names: list[str], *, has_legend: bool, is_real: bool) -> None:
    ax.set_yticks(range(len(names)))
    for words, name in zip(ax.set_yticklabels(names, fontsize=8), names, strict=True):
        words.set_text(name)
        words.set_parse_math(False)
    ax.set_ylim(len(names) - 0.4, -0.6)  # the first on top
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=LINE, alpha=0.3, linewidth=0.6)
    if is_real:
        ax.set_xlabel("median, middle half and 90 %")
    else:
        ax.set_xlim(0, 1.02)
        ax.set_xlabel("probability")
    if has_legend:
        legend = ax.legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False, fontsize=9
        )
        for words in legend.get_texts():
            words.set_parse_math(False)
