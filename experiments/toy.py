"""The toy hybrid MLN: Table 1 (accuracy) and Figure 1 (marginals of the positions)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import hylift as hl
from experiments import measure
from experiments.instances import toy
from experiments.report import Outcome, Printed, Row, Speed, summary
from experiments.setting import Setting
from hylift.inference import Lift
from hylift.plot.style import COLORS, DASHES, INK
from hylift.posterior import LogPartition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POSITIONS = ("posA(a0)", "posA(a1)", "posB(b0)", "posB(b1)", "posB(b2)")
COMPONENTS = (1, 3, 5)
LIFTS: tuple[Lift, ...] = ("none", "exact")
"""Nothing is observed, so there is nothing to coarsen."""

PAPER = {
    "KL": {
        "BVI": ("0.513 ± 0.947", "0.009 ± 0.006", "0.009 ± 0.007"),
        "L-BVI": ("0.039 ± 1e-5", "0.004 ± 0.001", "0.004 ± 0.002"),
        "NPVI": ("4.586 ± 2.977", "0.026 ± 0.007", "0.022 ± 0.003"),
        "L-NPVI": ("1.978 ± 3.878", "0.038 ± 0.002", "0.039 ± 0.001"),
    },
    "l1": {
        "BVI": ("0.227 ± 0.440", "0.059 ± 0.026", "0.049 ± 0.035"),
        "L-BVI": ("0.007 ± 1e-4", "0.049 ± 0.027", "0.020 ± 0.012"),
        "NPVI": ("1.641 ± 1.106", "0.007 ± 4e-4", "0.012 ± 0.009"),
        "L-NPVI": ("0.671 ± 1.327", "0.012 ± 0.006", "0.012 ± 0.006"),
    },
}
"""Table 1, for each number of components."""

ADAM_STEPS = 1000
"""At most, where the optimiser of the paper is used, from one start."""

AUTHORS_BOUND = (
    "The paper's figures of NPVI are of another objective than the bound in its text: the authors' "
    "code counts the distance between the means of two components once per variable too often."
)

Mixtures = hl.BVI | hl.NPVI


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A method with a kind of lifting, run with several seeds."""

    runs: tuple[measure.Run, ...]
    kl: NDArray[np.float64]  # (seed,): KL(p_i || q_i), the mean over the positions
    l1: NDArray[np.float64]  # (seed,): |mode of q_i - mode of p_i|, the mean over the positions

    @property
    def label(self) -> str:
        return self.runs[0].label

    @property
    def method(self) -> Mixtures:
        method = self.runs[0].method
        assert isinstance(method, Mixtures)
        return method

    @property
    def components(self) -> int:
        return self.method.components

    @property
    def seconds(self) -> float:
        """The median over seeds, each of them run once."""
        return float(np.median([one.seconds for one in self.runs]))

    @property
    def steps(self) -> int:
        return int(np.median([one.posterior.solution.steps for one in self.runs]))

    def distances(self, name: str) -> NDArray[np.float64]:
        """(seed,): 'KL' or 'l1'."""
        return {"KL": self.kl, "l1": self.l1}[name]

    @property
    def log_z(self) -> NDArray[np.float64]:
        """(seed,)"""
        return np.array([_log_partition(one.posterior).value for one in self.runs])

    @property
    def kind(self) -> str:
        """What its log Z is: 'estimate' or 'lower bound'."""
        return _log_partition(self.runs[0].posterior).kind

    @property
    def typical(self) -> hl.Posterior:
        """Of the seed with the median divergence."""
        return self.runs[np.argsort(self.kl)[len(self.kl) // 2]].posterior


def run(setting: Setting) -> Outcome:
    """KL and l1 of four methods with 1, 3 and 5 components, beside exact marginals."""
    graph = toy.instance().graph
    exact = hl.infer(graph, hl.Exact())
    kinds: tuple[type[Mixtures], ...] = (hl.BVI, hl.NPVI)
    cases, seeds = list(product(kinds, LIFTS, COMPONENTS)), range(setting.num_seeds)
    ours, adam, speeds = [], [], []
    for number, (kind, lift, components) in enumerate(cases):
        method = kind(components)
        what = measure.LABELS[lift].format(method.name)
        setting.part("accuracy", 0, 2)(number / len(cases), what)
        ours.append(measured(graph, exact, method, lift, seeds))
        adam.append(measured(graph, exact, with_adam(method), lift, seeds))
    for number, (kind, components) in enumerate(product(kinds, COMPONENTS)):
        method = kind(components)
        setting.part("times", 1, 2)(2 * number / len(cases), method.name)
        runs = measure.in_turn(graph, method, LIFTS, num_timed=setting.num_timed)
        speeds.append(measure.speed("", method.name, runs))
    return outcome(exact, ours, adam, speeds)


def with_adam(method: Mixtures) -> Mixtures:
    """The method with the paper's optimiser."""
    return replace(method, optimiser=measure.ADAM, restarts=1, max_steps=ADAM_STEPS)


def measured(
    graph: hl.FactorGraph,
    exact: hl.Posterior,
    method: Mixtures,
    lift: Lift,
    seeds: Iterable[int],
) -> Case:
    """A method's answers, and how far they are from the exact one."""
    runs = tuple(measure.run(graph, method, lift, seed=seed) for seed in seeds)
    true = measure.modes(exact, POSITIONS)
    kl = [exact.compare(one.posterior, POSITIONS).mean_kl for one in runs]
    l1 = [np.abs(measure.modes(one.posterior, POSITIONS) - true).mean() for one in runs]
    return Case(runs, np.array(kl), np.array(l1))


def outcome(
    exact: hl.Posterior, ours: Sequence[Case], adam: Sequence[Case], speeds: Sequence[Speed]
) -> Outcome:
    """What there is to show of our answers, and of those with the paper's optimiser."""
    rows = _rows(exact, ours, adam)
    return Outcome(
        title="Toy hybrid MLN (Table 1, Figure 1)",
        source="no",
        rows=rows,
        speeds=tuple(speeds),
        notes=(*_notes(exact, ours, adam, speeds), *_on_furthest(rows)),
        figures={
            "marginals": lambda: draw_marginals(exact, ours),
            "accuracy": lambda: draw_accuracy(ours),
        },
        tables={"log-z": _log_z(exact, ours), "adam": _beside(ours, adam)},
    )


def _log_partition(posterior: hl.Posterior) -> LogPartition:
    assert posterior.log_partition is not None
    return posterior.log_partition


def _rows(exact: hl.Posterior, ours: Sequence[Case], adam: Sequence[Case]) -> tuple[Row, ...]:
    rows = []
    for case, other in zip(ours, adam, strict=True):
        for name in PAPER:
            printed = Printed.of(PAPER[name][case.label][COMPONENTS.index(case.components)])
            value, spread = summary(case.distances(name))
            row = Row("", case.label, case.components, name, value, spread, printed)
            if row.verdict == "not reached":
                single = _find(ours, case.label, 1)
                row = replace(row, why=_why(exact, row, case, other, single))
            rows.append(row)
    return tuple(rows)


def _why(exact: hl.Posterior, row: Row, case: Case, adam: Case, single: Case) -> str:
    """What was measured about a figure that is not reached."""
    name, values, log_z = row.measure, case.distances(row.measure), case.log_z
    best, nearest = int(np.argmax(log_z)), int(np.argmin(values))
    starts = len(case.runs) * case.method.restarts
    parts = [
        f"the highest log Z ({case.kind}) of {starts} starts, {log_z[best]:.3f}, has {name} "
        f"{values[best]:.3f}; the paper's optimiser gets {adam.distances(name).mean():.3f}"
    ]
    if log_z[nearest] < log_z[best]:
        parts.append(f"the least {name}, {values[nearest]:.3f}, is at {log_z[nearest]:.3f}")
    if single is not case:
        alone = float(single.distances(name).mean())
        parts.append(f"a single Gaussian has {alone:.3f} at {single.log_z.max():.3f}")
        if alone < values[best] and single.log_z.max() < log_z[best]:
            parts.append(f"so a higher {case.kind} is no smaller {name} here")
    if name == "l1":
        parts.append(_on_largest_error(exact, case))
    return "; ".join(parts)


def _on_largest_error(exact: hl.Posterior, case: Case) -> str:
    """How probable the mode is that is furthest off."""
    true = measure.modes(exact, POSITIONS)
    found = np.array([measure.modes(one.posterior, POSITIONS) for one in case.runs])
    seed, place = np.unravel_index(np.argmax(np.abs(found - true)), found.shape)
    marginal = exact.marginal(POSITIONS[place])
    density, highest = marginal.pdf(np.array([found[seed, place], true[place]]))
    return (
        f"the mode that is furthest off, that of {POSITIONS[place]} by "
        f"{abs(found[seed, place] - true[place]):.2f}, is where the exact density is "
        f"{100 * density / highest:.4g} % of its highest"
    )


def _find(cases: Sequence[Case], label: str, components: int) -> Case:
    return next(one for one in cases if (one.label, one.components) == (label, components))


def _notes(
    exact: hl.Posterior, ours: Sequence[Case], adam: Sequence[Case], speeds: Sequence[Speed]
) -> tuple[str, ...]:
    most = max(one.components for one in ours)
    near = "; ".join(
        f"{one.label} {one.log_z.mean():.3f} ({one.kind})" for one in ours if one.components == most
    )
    notes = [
        f"log Z is {_log_partition(exact).value:.6f} (exact). With K = {most}: {near}.",
        _on_adam(ours, adam),
        AUTHORS_BOUND,
    ]
    ratios = [one.by_lifting for one in speeds if one.by_lifting is not None]
    ends = [one.ground.seconds / one.lifted.seconds for one in speeds]
    if ratios:
        notes.append(
            f"Lifted runs get near the same level {min(ratios):.2g} to {max(ratios):.2g} times as "
            f"fast as ground ones, and to their ends {min(ends):.2g} to {max(ends):.2g} times "
            "(seed 0); the paper says 1.3 to 1.4 times."
        )
    return tuple(notes)


def _on_furthest(rows: Sequence[Row]) -> list[str]:
    """A sentence on the figure that is furthest from the paper's, if one is not reached."""
    missed = {
        row.value / row.paper.value: row
        for row in rows
        if row.paper is not None and row.verdict == "not reached"
    }
    if not missed:
        return []
    ratio = max(missed)
    row = missed[ratio]
    return [
        f"Furthest from the paper is {row.measure} of {row.method} with K = {row.components}: "
        f"{row.value:.3g}, {ratio:.2g} times the paper's."
    ]


def _on_adam(ours: Sequence[Case], adam: Sequence[Case]) -> str:
    """The paper's optimiser beside ours, for what is no single product."""
    pairs = [pair for pair in zip(ours, adam, strict=True) if pair[0].components > 1]
    kl = [other.kl.mean() / own.kl.mean() for own, other in pairs]
    seconds = [other.seconds / own.seconds for own, other in pairs]
    return (
        f"The paper's {measure.ADAM.name}, one start and at most {ADAM_STEPS:,} steps, on our "
        f"objectives with K > 1: KL {min(kl):.2g} to {max(kl):.2g} times ours, in "
        f"{min(seconds):.2g} to {max(seconds):.2g} times the time."
    )


def _log_z(exact: hl.Posterior, cases: Sequence[Case]) -> list[dict[str, Any]]:
    true = _log_partition(exact).value
    return [
        {
            "method": case.label,
            "components": case.components,
            "seed": seed,
            "log_z": value,
            "kind": case.kind,
            "exact": true,
            "kl": float(case.kl[seed]),
            "l1": float(case.l1[seed]),
        }
        for case in cases
        for seed, value in enumerate(case.log_z.tolist())
    ]


def _beside(ours: Sequence[Case], adam: Sequence[Case]) -> list[dict[str, Any]]:
    """Our optimiser and the paper's on the same objective; means and medians over seeds."""
    return [
        {
            "method": case.label,
            "components": case.components,
            "optimiser": optimiser,
            "kl": float(case.kl.mean()),
            "l1": float(case.l1.mean()),
            "log_z": float(case.log_z.mean()),
            "seconds": case.seconds,
            "steps": case.steps,
        }
        for pair in zip(ours, adam, strict=True)
        for optimiser, case in zip(("ours", measure.ADAM.name), pair, strict=True)
    ]


def draw_marginals(exact: hl.Posterior, cases: Sequence[Case]) -> Figure:
    """Figure 1, ground and lifted: densities of two positions with 5 components."""
    from matplotlib.figure import Figure

    most = COMPONENTS[-1]
    figure = Figure(figsize=(9.0, 5.6), layout="constrained")
    panels = figure.subplots(2, 2, sharex="col", sharey="col")
    shown = ((POSITIONS[0], (-11, 9)), (POSITIONS[2], (-4, 7)))
    for row, prefix in enumerate(("", "L-")):
        found = [_find(cases, f"{prefix}{name}", most) for name in ("BVI", "NPVI")]
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
