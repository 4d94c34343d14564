"""What all pictures share: colours, dashes, letters, and how they become files."""

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
"""Lines differ in these too, so that they are told apart without colours."""

INK = "#333333"
LINE = "#8C8C8C"

FONT_SIZE, LABEL_SIZE = 8.5, 9.5
"""Of numbers and legends, and of the words along an axis."""

DPI = 150


def dress(ax: Axes) -> None:
    """Gives axes the letters and lines that all pictures have."""
    ax.tick_params(labelsize=FONT_SIZE)
    ax.xaxis.label.set_fontsize(LABEL_SIZE)
    ax.yaxis.label.set_fontsize(LABEL_SIZE)
    ax.spines[["top", "right"]].set_visible(False)


def figure_of(place: Axes | Figure) -> Figure:
    """The whole figure of axes, which may stand in a part of it."""
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
    """Writes a picture in the format of its name's ending."""
    kind = Path(path).suffix.lstrip(".")
    with any_letters():
        write_whole(path, lambda stream: figure.savefig(stream, format=kind, dpi=DPI))


@contextmanager
def any_letters() -> Iterator[None]:
    """Draws letters that no font has, such as Chinese ones, as boxes, without a warning for each.

    Whoever names a font that has them, in matplotlib's `font.family`, sees the letters.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def as_written(texts: Iterable[Text]) -> None:
    """Has names stand as they are: `$` and `_` in them are no mathematics."""
    for words in texts:
        words.set_parse_math(False)


def shortened(name: str, most: int) -> str:
    """A name of so many letters at most, without its middle if need be."""
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
