"""Figure 1, and Table 1 as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import hylift as hl
from experiments.report import Printed, summary
from experiments.toy.cases import COMPONENTS, PAPER, POSITIONS, Case, find
from hylift.plot.style import COLORS, DASHES, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_marginals(exact: hl.Posterior, cases: Sequence[Case]) -> Figure:
    """Figure 1, ground and lifted: densities of two positions with 5 components."""
    from matplotlib.figure import Figure

    most = COMPONENTS[-1]
    figure = Figure(figsize=(9.0, 5.6), layout="constrained")
    panels = figure.subplots(2, 2, sharex="col", sharey="col")
    shown = ((POSITIONS[0], (-11, 9)), (POSITIONS[2], (-4, 7)))
    for row, prefix in enumerate(("", "L-")):
        found = [find(cases, f"{prefix}{name}", most) for name in ("BVI", "NPVI")]
        for panel, (name, (low, high)) in zip(panels[row], shown, strict=True):
            x = np.linspace(low, high, 600)
            true = exact.marginal(name).pdf(x)
            panel.fill_between(x, true, color="#DDDDDD", linewidth=0)
            panel.plot(x, true, color=INK, linewidth=1.0, label="exact")
            for case, color, dash in zip(found, COLORS, DASHES[1:], strict=False):
                density = case.typical.marginal(name).pdf(x)
                panel.plot(x, density, dash, color=color, linewidth=1.9, label=case.label)
            _bare(panel)
            panel.set_xlim(low, high)
            if row == 0:
                panel.set_title(name, fontsize=11)
            else:
                panel.set_xlabel("position")
        panels[row, 0].set_ylabel(f"{'lifted' if prefix else 'ground'}: density")
        panels[row, 0].legend(frameon=False, loc="upper left")
    for panel in panels[0]:  # which share their scale with those below
        panel.set_ylim(bottom=0)
    figure.suptitle(f"Toy hybrid MLN: marginals, K = {most}", fontsize=12)
    return figure


def draw_accuracy(cases: Sequence[Case]) -> Figure:
    """KL and l1 against the number of components: ours filled, the paper's hollow."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.8), layout="constrained")
    panels = figure.subplots(1, 2)
    labels = list(dict.fromkeys(one.label for one in cases))
    titles = {"KL": "mean KL(exact ‖ found), in nats", "l1": "mean error of the modes (l1)"}
    for panel, (name, title) in zip(panels, titles.items(), strict=True):
        lowest = np.inf
        for place, label in enumerate(labels):
            ours = [summary(one.distances(name)) for one in cases if one.label == label]
            paper = [Printed.of(text) for text in PAPER[name][label]]
            _draw_side(panel, place, label, ours)
            _draw_side(panel, place, "", [(one.value, one.spread) for one in paper])
            lowest = min(lowest, *(value for value, _ in ours), *(one.value for one in paper))
        # A spread below 0 ends at the lower edge, as there is no 0 on a logarithmic axis.
        panel.set(yscale="log", ylim=(lowest / 3, None), title=title, xlim=(0.2, 6.0))
        panel.set_xlabel("number of components K")
        panel.set_xticks(COMPONENTS)
        panel.grid(axis="y", color="#E5E5E5", linewidth=0.6)
        panel.set_axisbelow(True)
        _bare(panel)
    panels[0].legend(frameon=False, fontsize=9, ncols=2)
    title = (
        "Toy hybrid MLN: ours (filled) beside the paper's (hollow); bars are standard deviations"
    )
    figure.suptitle(title, fontsize=12)
    return figure


def _draw_side(
    panel: Axes, place: int, label: str, figures: Sequence[tuple[float, float | None]]
) -> None:
    """A method's figures, ours joined by a line; the paper's, which have no label, beside them."""
    x = np.array(COMPONENTS) + 0.36 * (place - 1.5) + (0 if label else 0.14)
    color, marker = COLORS[place], "os^D"[place]
    panel.errorbar(
        x,
        [value for value, _ in figures],
        yerr=[spread or 0.0 for _, spread in figures],
        linestyle=DASHES[place] if label else "",
        marker=marker,
        color=color,
        fillstyle="full" if label else "none",
        markersize=6 if label else 8,
        linewidth=1.2,
        elinewidth=0.7,
        label=label or None,
    )


def _bare(panel: Axes) -> None:
    panel.spines[["top", "right"]].set_visible(False)
