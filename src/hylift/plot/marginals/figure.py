"""The picture of some marginals, a panel each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hylift.errors import UnsupportedError
from hylift.files import check_figure
from hylift.plot.known import measurements, true_values
from hylift.plot.labels import LETTER
from hylift.plot.marginals.bars import draw_states
from hylift.plot.marginals.density import draw_reals
from hylift.plot.marginals.panel import Look, Panel
from hylift.plot.several import by_label
from hylift.plot.style import (
    COLORS,
    DASHES,
    dress,
    figure_of,
    shortened,
    write_figure,
    write_legend,
)
from hylift.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = ("90 % interval", "mean", "measured ± sd", "observed", "truth")
"""What panels explain besides labels, in the order of the legend."""
MAX_PANELS = 24
MAX_POSTERIORS = 6
COLUMNS = 4
WIDTH, HEIGHT = 3.2, 2.3
"""Inches of a panel."""
LEAST_WIDTH = 4.2
"""Of a figure, in which the legend has room."""
TITLE_SIZE = 10.0
TITLE_WIDTH = 0.8
"""Of a title at most, as a share of its panel's."""


def plot_marginals(
    posteriors: Posterior | Mapping[str, Posterior],
    atoms: str | Iterable[str] | None = None,
    *,
    truth: Mapping[str, object] | None = None,
    axes: Iterable[Axes] | None = None,
    path: str | Path | None = None,
) -> list[Axes]:
    """One panel per atom: a density with its mean and 90 % interval, or bars of probability.

    A mapping of several posteriors labels them; their densities lie over each other, and their bars
    stand beside each other. `atoms` are names, patterns, or predicates for their atoms that are not
    observed. `truth` has values that are known to be true, by atom: triangles mark them.
    Measurements with an error (`hl.Soft`) are marked as well, unless the posterior was loaded from
    a file. `axes` are drawn on, one per atom, in place of a new figure. With `path` the figure is
    written there.
    """
    if path is not None:
        check_figure(path)
    labelled = by_label(posteriors, "plot_marginals", MAX_POSTERIORS)
    first = next(iter(labelled.values()))
    ids = first.select(atoms)
    check_panels(len(ids))
    names: list[str] = first.variables.names.render(ids).to_pylist()
    panels = _panels(labelled, names, truth)
    if axes is None:
        figure, places = _grid(len(names))
    elif len(places := list(axes)) != len(names):
        raise UnsupportedError(f"{len(names)} marginals need as many axes, not {len(places)}")
    for ax, name, panel in zip(places, names, panels, strict=True):
        draw = draw_states if panel.is_discrete else draw_reals
        draw(ax, panel)
        letters = int(TITLE_WIDTH * 72 * WIDTH / (LETTER * TITLE_SIZE))
        ax.set_title(shortened(name, letters), fontsize=TITLE_SIZE, parse_math=False)
        dress(ax)
    handles = _handles([*labelled, *MARKS], panels)
    write_legend(figure if axes is None else places[0], handles, inside=axes is not None)
    if path is not None:
        write_figure(figure_of(places[0]), path)
    return places


def _grid(count: int) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels."""
    from matplotlib.figure import Figure

    rows = math.ceil(count / COLUMNS)
    columns = math.ceil(count / rows)
    size = (max(WIDTH * columns, LEAST_WIDTH), HEIGHT * rows + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1).tolist()
    for unused in grid[count:]:
        unused.set_visible(False)
    return figure, grid[:count]


def check_panels(count: int) -> None:
    """Raises unless a figure has room for so many marginals."""
    if not 0 < count <= MAX_PANELS:
        raise UnsupportedError(
            f"a figure shows 1 to {MAX_PANELS} marginals, not {count:,}: name some of the atoms"
            + (", or draw a forest plot" if count else "")
        )


def _panels(
    labelled: Mapping[str, Posterior], names: list[str], truth: Mapping[str, object] | None
) -> list[Panel]:
    looks = {
        label: Look(color, dash)
        for label, color, dash in zip(labelled, cycle(COLORS), cycle(DASHES), strict=False)
    }
    true = true_values(truth, next(iter(labelled.values())), names)
    return [
        Panel(
            {label: posterior.marginal(name) for label, posterior in labelled.items()},
            looks,
            all(one.observed[one.variables.names.id(name)] for one in labelled.values()),
            true.get(name),
            measurements(labelled.values(), name),
        )
        for name in names
    ]


def _handles(words: list[str], panels: list[Panel]) -> dict[str, Any]:
    """What the legend explains: a label has its line and its bar, where there are both."""
    handles: dict[str, Any] = {}
    for label in dict.fromkeys(words):
        drawn = [panel.legend[label] for panel in panels if label in panel.legend]
        if drawn:
            handles[label] = tuple({type(one): one for one in drawn}.values())
    return handles
