"""What all pictures share: colours, dashes, and how they become files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hylift.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

DPI = 150


def figure_of(ax: Axes) -> Figure:
    """The whole figure of axes, which may stand in a part of it."""
    whole: Any = ax.figure.canvas.figure
    return whole


def write_figure(figure: Figure, path: str | Path) -> None:
    """Writes a picture in the format of its name's ending."""
    kind = Path(path).suffix.lstrip(".")
    write_whole(path, lambda stream: figure.savefig(stream, format=kind, dpi=DPI))
