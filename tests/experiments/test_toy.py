"""Table 1 and Figure 1: the toy hybrid MLN."""

from __future__ import annotations

import pytest

import hylift as hl
from experiments import toy
from experiments.instances import toy as instances
from experiments.report import Outcome
from experiments.toy import Case, measured, outcome, with_adam

Found = tuple[hl.Posterior, list[Case], list[Case]]


@pytest.fixture(scope="module")
def found() -> Found:
    """The experiment with a single seed, so that it is quick."""
    graph = instances.instance().graph
    exact = hl.infer(graph, hl.Exact())
    kinds = [
        (kind(components), lift)
        for kind in (hl.BVI, hl.NPVI)
        for lift in ("none", "exact")
        for components in toy.COMPONENTS
    ]
    ours = [measured(graph, exact, method, lift, [0]) for method, lift in kinds]
    quick = [hl.BVI(1), hl.NPVI(1)]
    adam = [measured(graph, exact, with_adam(method), "exact", [0]) for method in quick]
    earlier = [adam[0]] * 6 + [adam[1]] * 6
    return exact, ours, earlier


@pytest.fixture(scope="module")
def shown(found: Found) -> Outcome:
    return outcome(*found)


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


def test_every_figure_that_is_not_reached_has_a_reason(shown):
    missed = [row for row in shown.rows if row.verdict == "not reached"]

    assert {(row.measure, row.method.removeprefix("L-")) for row in missed} <= {("l1", "NPVI")}
    assert all("the best bound of 10 starts" in row.why for row in missed)
    assert all(row.why == "" for row in shown.rows if row not in missed)


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

    assert [one.method for one in shown.speeds] == ["BVI(3)", "BVI(5)", "NPVI(3)", "NPVI(5)"]
    assert sizes == {(21, 5)}
    assert all(one.coarse is None for one in shown.speeds)  # nothing is observed


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
        if line.get_fillstyle() == "none"
    ]
    assert hollow[0] == [0.513, 0.009, 0.009]
    assert hollow[-1] == [0.671, 0.012, 0.012]
    assert len(hollow) == 8
