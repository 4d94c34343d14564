"""Pictures of how far energies are above the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from experiments.energies.curves import Curve
from experiments.energies.study import Study
from experiments.report.show import number
from hylift.plot.style import COLORS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


@dataclass(frozen=True, slots=True)
class _Look:
    """How a method is drawn; told apart without colours by its marker."""

    color: str
    marker: str


LOOKS = {
    "HMWS": _Look(COLORS[5], "X"),
    "BVI with Adam": _Look(COLORS[3], "v"),
    "BVI": _Look(COLORS[0], "o"),
    "L-BVI": _Look(COLORS[1], "s"),
    "C2F-BVI": _Look(COLORS[2], "D"),
}
"""Each has a lane at the optimum too, the first at the top."""

AT_OPTIMUM = "at the\noptimum\n(a line per\nmethod)"

SHIFT = 0.006
"""By which lines of two methods are drawn apart, as a share of the height of the axes: methods may
have the same energies."""

BAND_HEIGHT = 0.3
"""Of the band of the optimum, as a share of the height of the axes."""

APART = 0.05
"""Distance of two labels, as a share of the height of the axes."""

BAND_COLOR = "#EEEEEE"

WIDE = 2.5
"""Powers of ten, from which on an axis has marks at these only."""


def draw(studies: Sequence[Study]) -> Figure:
    """How far the energies of all methods are above the optimum, against time; a panel each."""
    from matplotlib.figure import Figure

    columns = min(len(studies), 2)
    rows = -(-len(studies) // columns)
    figure = Figure(figsize=(5.6 * columns, 3.9 * rows + 0.8), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True)
    for ax, study in zip(panels.flat, studies, strict=False):
        _draw_panel(ax, study)
    for ax in panels.flat[len(studies) :]:
        ax.set_axis_off()
    handles = _handles(studies)
    figure.legend(
        handles=handles, loc="outside upper center", frameon=False, fontsize=9,
        ncols=4 if columns > 1 else 3,
    )  # fmt: skip
    figure.supxlabel("Lines of equal energies are drawn a little apart.", fontsize=8, color=INK)
    return figure


def _draw_panel(ax: Axes, study: Study) -> None:
    from matplotlib.ticker import LogLocator

    marks = {method: float(text) - study.optimum for method, text in study.problem.recorded.items()}
    gaps = np.concatenate([curve.gaps(study.optimum) for curve in study.curves])
    positive = np.concatenate([gaps[gaps > 0], list(marks.values())])
    low, high = (0.5 * positive.min(), 2 * positive.max()) if len(positive) else (0.1, 1.0)
    bottom = low * (low / high) ** (BAND_HEIGHT / (1 - BAND_HEIGHT))
    ax.set(xscale="log", yscale="log", ylim=(bottom, high), xlabel="seconds")
    ax.set_ylabel("energy above the optimum")
    title = (
        f"{study.problem.name}: optimum {study.optimum:,.4f}\nModes end above it: {_ends(study)}"
    )
    ax.set_title(title, loc="left", fontsize=7.5)
    ax.axhspan(bottom, low, color=BAND_COLOR, linewidth=0, zorder=0)
    shares = (np.arange(len(LOOKS)) + 0.5) / len(LOOKS)
    lanes = dict(zip(LOOKS, low * (bottom / low) ** shares, strict=True))
    middle = (len(LOOKS) - 1) / 2
    for place, (method, lane) in enumerate(lanes.items()):
        shift = (bottom / high) ** (SHIFT * (place - middle))
        for curve in study.curves:
            if curve.method == method:
                gaps = curve.gaps(study.optimum)
                _draw_curve(ax, curve, np.where(gaps > 0, gaps * shift, lane))
    _draw_marks(ax, marks)
    ticks = _round_numbers(low, high)
    ax.set_yticks(
        [float(np.sqrt(bottom * low)), *ticks], [AT_OPTIMUM, *(f"{tick:,g}" for tick in ticks)]
    )
    ax.minorticks_off()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_tick_params(labelbottom=True)
    ax.spines[["top", "right"]].set_visible(False)


def _round_numbers(low: float, high: float) -> list[float]:
    """Powers of ten in a range; 2 and 5 times as much too, where there are few."""
    first, last = np.floor(np.log10([low, high]))
    powers = 10.0 ** np.arange(first, last + 1)
    factors = [1.0] if np.log10(high / low) > WIDE else [1.0, 2.0, 5.0]
    found = np.outer(powers, factors).ravel()
    return [float(one) for one in found[(found >= low) & (found <= high)]]


def _draw_curve(ax: Axes, curve: Curve, height: NDArray[np.float64]) -> None:
    look = LOOKS[curve.method]
    # Markers at 1, 2, 4, … steps, and at the last.
    marked = np.unique(np.searchsorted(curve.work[:-1], 2 ** np.arange(32)))
    ax.plot(
        curve.history.seconds, height, color=look.color, linestyle="--" if curve.polished else "-",
        linewidth=1.4, marker=look.marker, markersize=5, markevery=marked.tolist(),
        markerfacecolor="white" if curve.polished else look.color, zorder=3,
    )  # fmt: skip


def _ends(study: Study) -> str:
    """How far above the optimum modes end, methods that end equally together."""
    together: dict[str, list[str]] = {}
    for curve in study.curves[1:]:
        if not curve.polished:
            gap = number(float(curve.gaps(study.optimum)[-1]))
            together.setdefault(gap, []).append(curve.method)
    return ", ".join(f"{' = '.join(methods)} {gap}" for gap, methods in together.items())


def _draw_marks(ax: Axes, marks: Mapping[str, float]) -> None:
    """Lines across at what the authors recorded, with labels to their right."""
    low, high = np.log(ax.get_ylim())
    methods = sorted(marks, key=lambda method: marks[method])
    height = np.array([(np.log(marks[method]) - low) / (high - low) for method in methods])
    # Labels move as little as keeps them apart.
    apart = APART * np.arange(len(methods))
    height = isotonic_regression(height - apart).x + apart if methods else height
    for method, at in zip(methods, height, strict=True):
        ax.axhline(marks[method], color=LOOKS[method].color, linestyle=":", linewidth=1.6, zorder=2)
        ax.annotate(
            f"authors' {method}", (1.01, at), xycoords="axes fraction", color=INK, fontsize=8,
            va="center", annotation_clip=False,
        )  # fmt: skip


def _handles(studies: Sequence[Study]) -> list[Line2D]:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=look.color, marker=look.marker, markersize=5, label=method)
        for method, look in LOOKS.items()
    ]
    for label, is_polished in (
        ("filled: mode, or least on a walk", False),
        ("hollow: polished", True),
    ):
        handles.append(
            Line2D(
                [], [], color=INK, linestyle="--" if is_polished else "-", marker="o",
                markersize=5, markerfacecolor="white" if is_polished else INK, label=label,
            )
        )  # fmt: skip
    if any(study.problem.recorded for study in studies):
        handles.append(
            Line2D(
                [], [], color=INK, linestyle=":", linewidth=1.6, label="best the authors recorded"
            )
        )
    return handles
