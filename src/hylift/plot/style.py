"""Colours, dashes, fonts and legends shared by all plots, and writing figures to files."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from hylift.files import write_whole
from hylift.words import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#999999",
)  # Okabe-Ito, distinguishable for colour-blind readers
DASHES = ("-", "--", "-.", ":")
"""Line styles, so that lines differ without colour."""

INK = "#333333"
LINE = "#8C8C8C"

LETTER = 0.58
"""Mean width of a letter, in font sizes."""

FONT_SIZE, LABEL_SIZE = 8.5, 9.5
"""Font sizes of tick labels and legends, and of axis labels."""

DPI = 150
ROOM = 0.8
"""Labels of a logarithmic axis, as a share of those that matplotlib has room for on others."""


def dress(ax: Axes) -> None:
    """Apply the common fonts and spines to axes."""
    ax.tick_params(labelsize=FONT_SIZE)
    ax.xaxis.label.set_fontsize(LABEL_SIZE)
    ax.yaxis.label.set_fontsize(LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)


def looks_of(labels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour and line style of each label."""
    return {
        label: {"color": color, "linestyle": dash}
        for label, color, dash in zip(labels, cycle(COLORS), cycle(DASHES), strict=False)
    }


def figure_of(place: Axes | Figure) -> Figure:
    """The top-level figure of axes or of a subfigure."""
    whole: Any = place.figure.canvas.figure
    return whole


def width_of(place: Axes | Figure) -> float:
    """The width of axes or a figure, in points."""
    return float(place.get_window_extent().width) * 72 / figure_of(place).dpi


def write_legend(
    place: Axes | Figure,
    handles: Mapping[str, Any],
    *,
    where: Literal["above", "below", "inside"] = "above",
    font_size: float = FONT_SIZE,
) -> None:
    """A legend above or below axes, above a figure, or inside of axes, in as many columns as fit.

    Handles are by label; several of one label are a tuple.
    """
    from matplotlib.figure import Figure
    from matplotlib.legend_handler import HandlerTuple

    if not handles:
        return
    longest = max(len(label) for label in handles)
    fitting = (
        1 if where == "inside" else int(width_of(place) / (LETTER * font_size * (longest + 6)))
    )
    spot: dict[str, Any] = {"loc": "best"}
    if isinstance(place, Figure):
        spot = {"loc": "outside upper left"}  # above titles, whoever sets them later
    elif where == "above":
        spot = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    elif where == "below":
        spot = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
    legend = place.legend(
        handles=list(handles.values()), labels=list(handles), frameon=False, fontsize=font_size,
        ncols=max(1, min(fitting, len(handles), 6)), markerscale=font_size / FONT_SIZE,
        handler_map={tuple: HandlerTuple(ndivide=None)}, **spot,
    )  # fmt: skip
    as_written(legend.get_texts())


def label_log_time(ax: Axes) -> None:
    """Make the time axis logarithmic, with tick labels that do not overlap."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    @final
    class Ticks(LogLocator):
        """As many of 1, 2, 5, 10, … as have room for their labels."""

        def tick_values(self, vmin: float, vmax: float) -> list[float]:
            assert self.axis is not None  # set_major_locator sets it
            low, high = sorted((vmin, vmax))
            room = max(2, int(ROOM * self.axis.get_tick_space()))
            powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
            sets = [np.outer(powers, subs).ravel() for subs in ((1, 2, 5), (1, 3), (1,))]
            inside = [ticks[(low <= ticks) & (ticks <= high)] for ticks in sets]
            enough = [ticks for ticks in inside if len(ticks) > 1]
            if not enough:
                return [float(tick) for tick in MaxNLocator(room - 1).tick_values(low, high)]
            ticks = next((ticks for ticks in enough if len(ticks) <= room), enough[-1])
            return [float(tick) for tick in ticks[:: math.ceil(len(ticks) / room)]]

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(Ticks())
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def write_figure(place: Axes | Figure, path: str | Path | None) -> None:
    """Write the figure of axes in the format of the file's ending, if there is a path."""
    if path is None:
        return
    kind = Path(path).suffix.lstrip(".")
    with any_letters():
        figure = figure_of(place)
        write_whole(path, lambda stream: figure.savefig(stream, format=kind, dpi=DPI))


@contextmanager
def any_letters() -> Iterator[None]:
    """Suppress warnings about missing glyphs, such as Chinese ones, which are drawn as boxes.

    Set matplotlib's `font.family` to a font that has them to see the letters.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def as_written(texts: Iterable[Text]) -> None:
    """Turn off math mode, so that `$` and `_` in names are shown as they are."""
    for words in texts:
        words.set_parse_math(False)


def shortened(name: str, most: int) -> str:
    """A name shortened to at most so many letters by leaving out its middle, in one line."""
    name = printable(name, one_line=True)
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
