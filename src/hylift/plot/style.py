"""Colours, dashes, fonts and legends shared by all plots, and writing figures to files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hylift.files import write_whole
from hylift.plot.labels import LETTER

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
)  # Okabe-Ito, told apart by colour-blind readers
DASHES = ("-", "--", "-.", ":")
"""Line styles, so that lines differ without colour."""

INK = "#333333"
LINE = "#8C8C8C"

FONT_SIZE, LABEL_SIZE = 8.5, 9.5
"""Of tick labels and legends, and of axis labels."""

DPI = 150


def dress(ax: Axes) -> None:
    """Apply the common fonts and spines to axes."""
    ax.tick_params(labelsize=FONT_SIZE)
    ax.xaxis.label.set_fontsize(LABEL_SIZE)
    ax.yaxis.label.set_fontsize(LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)


def figure_of(place: Axes | Figure) -> Figure:
    """The top-level figure of axes or of a subfigure."""
    whole: Any = place.figure.canvas.figure
    return whole


def write_legend(place: Axes | Figure, handles: Mapping[str, Any], *, inside: bool = False) -> None:
    """A legend above axes or above a whole figure, in as many columns as fit, or inside of axes.

    Handles are by label; several of one label are a tuple.
    """
    from matplotlib.figure import Figure
    from matplotlib.legend_handler import HandlerTuple

    if not handles:
        return
    width = place.get_window_extent().width * 72 / figure_of(place).dpi
    longest = max(len(label) for label in handles)
    fitting = 1 if inside else int(width / (LETTER * FONT_SIZE * (longest + 6)))
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    if inside:
        where = {"loc": "best"}
    elif isinstance(place, Figure):
        where = {"loc": "outside upper left"}  # above titles, whoever sets them later
    legend = place.legend(
        handles=list(handles.values()), labels=list(handles), frameon=False, fontsize=FONT_SIZE,
        ncols=max(1, min(fitting, len(handles))),
        handler_map={tuple: HandlerTuple(ndivide=None)}, **where,
    )  # fmt: skip
    as_written(legend.get_texts())


def write_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the file's ending."""
    kind = Path(path).suffix.lstrip(".")
    with any_letters():
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
    """A name shortened to at most so many letters by leaving out its middle."""
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
