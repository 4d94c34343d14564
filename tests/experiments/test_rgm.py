"""The relational Gaussian model: its table, its times, its pictures."""

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import hylift as hl
from experiments import rgm
from experiments.report import Outcome, Speed, Timing
from experiments.rgm.accuracy import (
    GABP,
    NOT_KNOWN,
    PAPER,
    TABLE,
    Accuracy,
    Distance,
    Entry,
    notes_on_accuracy,
    why,
)
from experiments.rgm.figures import FIGURES
from experiments.rgm.times import ADAM, EARLIER, FIRST_STEPS, Case, Size, notes_on_times
from experiments.setting import Setting

SMALL = Size(12, 2)


def figure(outcome: Outcome, method: str, measure: str, components: int | None = 1) -> float:
    """The value in the row of a method."""
    (row,) = (
        row
        for row in outcome.rows
        if (row.method, row.components, row.measure) == (method, components, measure)
    )
    return row.value


def curve(outcome: Outcome, method: str, lifting: str, column: str) -> np.ndarray:
    """A column of the curve of a method, step by step."""
    return np.array(
        [
            step[column]
            for step in outcome.tables["curves"]
            if (step["method"], step["lifting"]) == (method, lifting)
        ]
    )


@pytest.fixture(scope="module")
def small() -> Iterator[Outcome]:
    """The table on generated evidence, and times and the first picture on a small graph."""
    cases = (
        Case(SMALL, ADAM, EARLIER, from_prior=True),
        Case(SMALL, "BVI(1)", hl.BVI(1)),
        Case(SMALL, "BVI(3)", hl.BVI(3)),
        Case(SMALL, "BVI(3), 40 steps", FIRST_STEPS, ("none", "exact")),
    )
    panels = tuple(replace(panel, size=SMALL) for panel in FIGURES["figure-3"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FIGURES, "figure-3", panels)
        further = (Entry("L-BVI", hl.BVI(3), "exact"),)
        yield rgm.run(Setting(quick=True), cases, further)


def test_published_evidence_has_the_figures_of_the_paper_or_better(data_dir: Path) -> None:
    outcome = rgm.run(Setting(data_dir), cases=(), further=())

    assert len(outcome.rows) == 2 * len(PAPER)
    assert {row.verdict for row in outcome.rows} == {"beaten", "within ±"}
    for method in ("BVI", "L-BVI", "C2F-BVI", "NPVI", "L-NPVI"):
        # The factorised optimum, known from linear algebra.
        best = (4.955136e-4 + 5.424277e-4) / 2
        assert figure(outcome, method, "KL") == pytest.approx(best, rel=1e-6)
        assert figure(outcome, method, "l1") < 1e-10


def test_generated_evidence_has_the_figures_of_the_paper_or_better(small: Outcome) -> None:
    assert small.source == "generated"
    assert {row.instance for row in small.rows} == {"5 generated settings of evidence"}
    assert "not reached" not in {row.verdict for row in small.rows}
    assert all(row.spread is not None for row in small.rows)


def test_three_components_of_bvi_are_a_hundred_times_as_accurate_as_one(small: Outcome) -> None:
    one, three = (figure(small, "L-BVI", "KL", components) for components in (1, 3))

    assert three < one / 100
    assert any("Three components divide the KL of L-BVI by" in note for note in small.notes)


def test_figures_that_are_not_reached_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAPER, "GaBP", ("2.26e-6", "1e-12"))
    monkeypatch.setitem(PAPER, "NPVI", ("3.22e-5", "1e-5"))

    outcome = rgm.run(Setting(), cases=(), further=())

    reasons = {(row.method, row.measure): row.why for row in outcome.rows if row.why}
    assert set(reasons) == {("GaBP", "KL"), ("NPVI", "KL")}
    assert "error of Bethe's variances" in reasons["GaBP", "KL"]
    assert "the best product of independent Gaussians" in reasons["NPVI", "KL"]


def accuracy(**changes: Distance) -> Accuracy:
    """Of the entries in the table; `changes` by their labels, with '_' for '-'."""
    usual = Distance(l1=1e-9, kl=5e-4, kl_of_variances=5e-4, converged=True, objective=1.0)
    found = {entry: changes.get(entry.label.replace("-", "_"), usual) for entry in TABLE}
    return Accuracy(found, best_product=5e-4)


def entry(label: str) -> Entry:
    return next(one for one in TABLE if one.label == label)


def test_a_reason_is_given_only_where_it_is_true() -> None:
    usual = Distance(l1=1e-9, kl=3e-9, kl_of_variances=3e-9, converged=True, objective=None)
    other_means = replace(usual, kl=3e-8)
    unfinished = replace(usual, converged=False)
    no_product = replace(usual, kl=6e-4)

    assert "messages have converged on all evidence" in why(GABP, "KL", [accuracy(GaBP=usual)])
    assert why(GABP, "KL", [accuracy(GaBP=other_means)]) == NOT_KNOWN
    assert why(GABP, "KL", [accuracy(GaBP=usual), accuracy(GaBP=unfinished)]) == NOT_KNOWN
    assert why(GABP, "l1", [accuracy(GaBP=usual)]) == NOT_KNOWN
    assert "best product" in why(entry("BVI"), "KL", [accuracy()])
    assert why(entry("BVI"), "KL", [accuracy(BVI=no_product)]) == NOT_KNOWN
    assert why(entry("BVI"), "l1", [accuracy()]) == NOT_KNOWN
    assert "has a KL of 3e-09: the rest comes with 20 particles" in why(
        entry("EPBP"), "KL", [accuracy(GaBP=usual)]
    )
    assert why(entry("EPBP"), "KL", [accuracy(GaBP=unfinished)]) == NOT_KNOWN


def test_worse_ends_of_five_components_are_counted() -> None:
    three, five = (Entry("L-BVI", hl.BVI(components), "exact") for components in (3, 5))
    near = Distance(l1=0.0, kl=1e-6, kl_of_variances=1e-6, converged=True, objective=1.0)
    far, above = replace(near, kl=3e-6), replace(near, kl=3e-6, objective=2.0)

    counted = notes_on_accuracy(
        [Accuracy({three: near, five: far}, 1e-3), Accuracy({three: near, five: above}, 1e-3)]
    )
    better = notes_on_accuracy([Accuracy({three: far, five: near}, 1e-3)])

    assert counted[-1] == (
        "Five components of L-BVI have 3 times the KL of three; their objective ends above that of "
        "three in 1 of 2 settings of evidence."
    )
    assert not any("Five components" in note for note in better)


def test_it_is_told_how_coarse_to_fine_does_with_the_optimiser_of_the_paper() -> None:
    case = Case(SMALL, ADAM, EARLIER, from_prior=True)
    speed = Speed("12 × 2", ADAM, Timing(4, 3, 30), Timing(2, 1, 20), Timing(4, 2, 20, 5))

    notes = notes_on_times({case: speed})

    assert (
        "'BVI(1), Adam', 12 × 2: coarse to fine gets near the end 0.5 times as fast as exact "
        "lifting here; in the paper's Figure 3 it is faster." in notes
    )


def test_our_reading_of_the_number_of_components_is_told(small: Outcome) -> None:
    assert any("does not say how many components" in note for note in small.notes)
    assert any("5 of 5 entries with K = 1 have it on all evidence" in note for note in small.notes)


def test_every_kind_of_lifting_is_timed(small: Outcome) -> None:
    for speed in (small.speeds[0], small.speeds[2]):
        assert speed.instance == "12 × 2"
        assert speed.coarse is not None
        assert speed.ground.num_classes >= speed.lifted.num_classes
        assert speed.coarse.num_classes == speed.lifted.num_classes
        assert speed.coarse.first_classes is not None
        assert speed.coarse.first_classes <= speed.lifted.num_classes
        assert "thousandth" in speed.nearness
        for timing in (speed.ground, speed.lifted, speed.coarse):
            assert np.isfinite(timing.near)


def test_a_closed_form_leaves_nothing_to_coarsen(small: Outcome) -> None:
    assert small.speeds[1].method == "BVI(1)"
    assert small.speeds[1].coarse is None


def test_a_few_steps_are_timed_without_coarse_to_fine(small: Outcome) -> None:
    speed = small.speeds[3]

    assert speed.method == "BVI(3), 40 steps"
    assert speed.coarse is None
    assert "thousandth" in speed.nearness
    for lifting in ("BVI", "L-BVI"):
        assert len(curve(small, "BVI(3), 40 steps", lifting, "objective")) == 40
    assert any("40 steps" in note for note in small.notes)


def test_curves_are_told_step_by_step(small: Outcome) -> None:
    curves = small.tables["curves"]

    assert {step["instance"] for step in curves} == {"12 × 2"}
    assert {step["method"] for step in curves} == {speed.method for speed in small.speeds}
    assert {step["lifting"] for step in curves} == {"BVI", "L-BVI", "C2F-BVI"}
    assert {"seconds", "objective", "num_classes", "level"} < set(curves[0])


def test_dividing_evidence_raises_no_objective(small: Outcome) -> None:
    objective, level = (curve(small, ADAM, "C2F-BVI", column) for column in ("objective", "level"))

    begins = np.flatnonzero(np.diff(level)) + 1

    assert len(begins) > 2
    assert (objective[begins] <= objective[begins - 1] + 1e-10).all()


def test_pictures_are_drawn_of_what_was_run(small: Outcome) -> None:
    picture = small.figures["figure-3"]()
    picture.savefig(BytesIO())

    assert set(small.figures) == {"figure-3"}
    titles = [ax.get_title(loc="left") for ax in picture.axes]
    assert "as in the paper" in titles[0]
    assert "in closed form" in titles[0]
    assert "K = 3" in titles[1]
