"""Table 1 and Figure 1: the toy hybrid MLN."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hylift as hl
from experiments import measure
from experiments.instances import toy as instances
from experiments.report import Outcome
from experiments.toy.cases import COMPONENTS, LIFTS, Case, measured, with_adam
from experiments.toy.experiment import outcome

Found = tuple[hl.Posterior, list[Case], list[Case]]


@pytest.fixture(scope="module")
def found() -> Found:
    """The experiment with a single seed, so that it is quick."""
    graph = instances.instance().graph
    exact = hl.infer(graph, hl.Exact())
    kinds = [
        (kind(components), lift)
        for kind in (hl.BVI, hl.NPVI)
        for lift in LIFTS
        for components in COMPONENTS
    ]
    ours = [measured(graph, exact, method, lift, [0]) for method, lift in kinds]
    adam = [measured(graph, exact, with_adam(method), lift, [0]) for method, lift in kinds]
    return exact, ours, adam


@pytest.fixture(scope="module")
def shown(found: Found) -> Outcome:
    graph = instances.instance().graph
    speeds = [
        measure.speed("", method.name, measure.in_turn(graph, method, LIFTS, num_timed=1))
        for method in (hl.BVI(3), hl.NPVI(3))
    ]
    return outcome(*found, speeds)


def test_the_table_has_the_rows_of_the_paper(shown):
    lines = [(row.method, row.components) for row in shown.rows if row.measure == "KL"]

    assert lines == [
        (method, components)
        for method in ("BVI", "L-BVI", "NPVI", "L-NPVI")
        for components in (1, 3, 5)
    ]
    assert len(shown.rows) == 24
    assert all(row.paper is not None for row in shown.rows)


def test_no_divergence_of_the_paper_is_missed(shown):
    verdicts = {row.verdict for row in shown.rows if row.measure == "KL"}

    assert verdicts <= {"beaten", "matched"}


def test_every_figure_that_is_not_reached_has_a_measured_reason(shown):
    missed = [row for row in shown.rows if row.verdict == "not reached"]

    assert missed
    assert {(row.measure, row.method.removeprefix("L-")) for row in missed} == {("l1", "NPVI")}
    assert all("the highest log Z (lower bound) of 10 starts" in row.why for row in missed)
    assert all("% of its highest" in row.why for row in missed)
    assert all(row.why == "" for row in shown.rows if row not in missed)


def test_a_reason_has_the_numbers_of_its_row(found, shown):
    _, ours, adam = found
    place = next(
        place for place, one in enumerate(ours) if (one.label, one.components) == ("NPVI", 5)
    )

    (row,) = (
        row for row in shown.rows if (row.method, row.components, row.measure) == ("NPVI", 5, "l1")
    )

    case, single = ours[place], ours[place - 2]
    assert f"{case.log_z[0]:.3f}, has l1 {case.l1[0]:.3f}" in row.why
    assert f"the paper's optimiser gets {adam[place].l1[0]:.3f}" in row.why
    assert f"a single Gaussian has {single.l1[0]:.3f} at {single.log_z[0]:.3f}" in row.why
    assert single.l1[0] < case.l1[0]
    assert single.log_z[0] < case.log_z[0]
    assert "so a higher lower bound is no smaller l1 here" in row.why


def test_the_figure_furthest_from_the_paper_is_named(shown):
    (row,) = (
        row for row in shown.rows if (row.method, row.components, row.measure) == ("NPVI", 3, "l1")
    )

    assert shown.notes[-1] == (
        f"Furthest from the paper is l1 of NPVI with K = 3: {row.value:.3g}, "
        f"{row.value / 0.007:.2g} times the paper's."
    )


def test_a_conclusion_is_drawn_only_where_the_numbers_say_so(found):
    exact, ours, adam = found
    single = next(one for one in ours if (one.label, one.components) == ("NPVI", 1))
    worse = replace(single, l1=single.l1 + 1.0)
    cases = [worse if one is single else one for one in ours]

    shown = outcome(exact, cases, adam, [])

    reasons = [row.why for row in shown.rows if row.method == "NPVI" and row.why]
    assert reasons
    assert not any("no smaller l1" in why for why in reasons)


def test_a_single_gaussian_is_the_same_ground_and_lifted(found):
    _, ours, _ = found
    single = {one.label: one for one in ours if one.components == 1}

    assert single["L-BVI"].kl == pytest.approx(single["BVI"].kl, abs=1e-6)
    assert single["L-NPVI"].l1 == pytest.approx(single["NPVI"].l1, abs=1e-6)
    # Of the factorised optimum; both objectives have it.
    assert single["BVI"].kl == pytest.approx([0.0391], abs=5e-5)  # as many digits as are known


def test_the_error_of_modes_is_measured_from_the_exact_ones(found):
    exact, ours, _ = found
    case = ours[0]
    names = ("posA(a0)", "posA(a1)", "posB(b0)", "posB(b1)", "posB(b2)")

    modes = [case.typical.marginal(name).mode for name in names]

    assert exact.marginal("posA(a0)").mode == pytest.approx(-0.002877, abs=1e-6)
    assert exact.marginal("posB(b0)").mode == pytest.approx(1.656191, abs=1e-6)
    expected = [-0.002877] * 2 + [1.656191] * 3
    error = [abs(mode - true) for mode, true in zip(modes, expected, strict=True)]
    assert case.l1[0] == pytest.approx(sum(error) / 5, abs=1e-6)


def test_lower_bounds_are_below_the_exact_value_and_told_as_such(found, shown):
    exact, _, _ = found
    assert exact.log_partition is not None

    bounds = [row for row in shown.tables["log-z"] if "NPVI" in row["method"]]

    assert {row["kind"] for row in bounds} == {"lower bound"}
    assert all(row["log_z"] < exact.log_partition.value for row in bounds)
    assert shown.notes[0].startswith("log Z is 13.344035 (exact). With K = 5: BVI 13.33")


def test_speeds_are_of_21_variables_and_5_classes(shown):
    sizes = {(one.ground.num_classes, one.lifted.num_classes) for one in shown.speeds}

    assert [one.method for one in shown.speeds] == ["BVI(3)", "NPVI(3)"]
    assert sizes == {(21, 5)}
    assert all(one.coarse is None for one in shown.speeds)  # nothing is observed
    assert any("times as fast" in note and "1.3 to 1.4 times" in note for note in shown.notes)


def test_the_optimiser_of_the_paper_stands_beside_ours(found, shown):
    _, ours, adam = found
    rows = shown.tables["adam"]

    assert [row["optimiser"] for row in rows] == ["ours", "Adam(0.2)"] * 12
    assert [row["kl"] for row in rows[::2]] == [one.kl[0] for one in ours]
    assert [row["kl"] for row in rows[1::2]] == [one.kl[0] for one in adam]
    assert [(one.label, one.components) for one in adam] == [
        (one.label, one.components) for one in ours
    ]
    ratios = [
        other.kl[0] / own.kl[0] for own, other in zip(ours, adam, strict=True) if own.components > 1
    ]
    sentence = f"KL {min(ratios):.2g} to {max(ratios):.2g} times ours"
    assert sum(sentence in note for note in shown.notes) == 1


def test_adam_is_the_optimiser_of_the_paper():
    method = with_adam(hl.BVI(3))

    assert method.components == 3
    assert (method.optimiser, method.restarts, method.max_steps) == (hl.Adam(0.2), 1, 1000)


def test_the_figure_shows_the_exact_marginal_and_both_methods_ground_and_lifted(shown):
    figure = shown.figures["marginals"]()

    lines = [[line.get_label() for line in panel.get_lines()] for panel in figure.axes]
    assert lines == [["exact", "BVI", "NPVI"]] * 2 + [["exact", "L-BVI", "L-NPVI"]] * 2
    assert [panel.get_title() for panel in figure.axes[:2]] == ["posA(a0)", "posB(b0)"]


def test_the_figure_of_accuracy_has_every_figure_of_the_paper(shown):
    figure = shown.figures["accuracy"]()

    hollow = [
        line.get_ydata().tolist()
        for panel in figure.axes
        for line in panel.get_lines()
        if line.get_fillstyle() == "none" and len(line.get_ydata()) == len(COMPONENTS)
    ]
    assert hollow[0] == [0.513, 0.009, 0.009]
    assert hollow[-1] == [0.671, 0.012, 0.012]
    assert len(hollow) == 8


def test_the_figure_of_accuracy_has_the_spreads_of_the_paper(shown):
    figure = shown.figures["accuracy"]()

    bars = [
        np.diff([end for _, end in segment])[0]
        for lines in figure.axes[0].collections
        for segment in lines.get_segments()
    ]

    assert len(bars) == 24
    for spread in (0.947, 0.006, 3.878):  # on both sides of the mean
        assert np.isclose(bars, 2 * spread).any()
