"""Table 3: what is measured of Kalman filters, and what is said of the authors' answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hylift as hl
from experiments import measure
from experiments.instances import Variant, kalman
from experiments.kalman import experiment, run_cycle, trials
from experiments.kalman.figures import draw_accuracy, draw_levels
from experiments.kalman.levels import known_levels, levels_of
from experiments.kalman.notes import accuracy, compare_answers, on_answers
from experiments.kalman.printed import PRINTED, TENSORFLOW
from experiments.kalman.speeds import Timed
from experiments.kalman.trials import (
    METHODS,
    WITHOUT_REFERENCE,
    Trial,
    figures,
    name,
    rows,
    trial,
)
from experiments.report.show import number
from experiments.setting import Setting

QUICK = Setting(quick=True)


@pytest.fixture(scope="module")
def generated() -> Trial:
    return trial(QUICK, "tree", "paper", 0)


def test_no_figure_of_the_paper_on_accuracy_is_missed_on_generated_evidence(
    generated: Trial,
) -> None:
    found = rows("tree", "paper", [generated])

    verdicts = {row.method: row.verdict for row in found if row.measure == "l1" and row.paper}
    assert set(verdicts) == {"EPBP", "BVI", "L-BVI", "C2F-BVI"}
    assert set(verdicts.values()) == {"beaten"}


def test_all_printed_figures_stand_beside_ours_in_the_paper_variant(generated: Trial) -> None:
    printed = [row.paper for row in rows("tree", "paper", [generated]) if row.paper is not None]

    assert {paper.text for paper in printed} == {
        paper.text for paper in (*PRINTED["tree"].values(), *TENSORFLOW["tree"].values())
    }


def test_the_clean_variant_has_no_figure_of_the_paper_beside_it(generated: Trial) -> None:
    assert all(row.paper is None for row in rows("tree", "clean", [generated]))


def test_variational_means_are_exact_and_their_variances_too_small(generated: Trial) -> None:
    levels = levels_of("paper", generated, known_levels(generated.exact.posterior))
    exact, one, five = levels.bands

    for band in (one, five):
        np.testing.assert_allclose(band.mean, exact.mean, atol=1e-6)
    width, of_one, of_five = ((band.high - band.low)[:, 1:] for band in levels.bands)
    assert np.all(of_one < width)
    assert np.all(np.abs(of_five - width) < np.abs(of_one - width))


def test_figures_of_the_published_tree_are_those_that_are_known(data_dir: Path) -> None:
    graph = kalman.published(data_dir, "tree", 0, "paper").graph
    exact, gabp, lifted = (
        measure.run(graph, method, lift)
        for method, lift in ((hl.Exact(), "none"), (hl.GaBP(), "exact"), (hl.BVI(1), "exact"))
    )

    found = figures(Trial(graph, exact, (gabp, lifted)), lifted)

    assert found["KL"] == pytest.approx(0.053676, abs=1e-6)
    assert found["l1"] < 1e-10
    assert found["l1 exact"] < 1e-10


def test_it_is_said_how_far_the_answers_of_the_authors_are_from_exact_ones(data_dir: Path) -> None:
    graphs = [kalman.published(data_dir, "tree", number, "paper").graph for number in range(2)]
    found = [Trial(graph, measure.run(graph, hl.Exact(), "none"), ()) for graph in graphs]

    sentence = compare_answers(data_dir, "tree", found)

    assert sentence.startswith(
        "The authors' own answers for the last month (res of LRKF_tree.mat, a row per well) differ "
        "from the exact ones, at the well where they do most, by 9.8e-4 to "
    )
    assert sentence.endswith(", depending on the trial.")


@pytest.mark.parametrize(("variant", "num_known"), [("paper", 1520), ("clean", 16)])
def test_what_is_known_of_the_published_tree(
    data_dir: Path, variant: Variant, num_known: int
) -> None:
    graph = kalman.published(data_dir, "tree", 0, variant).graph

    levels = known_levels(hl.infer(graph, hl.Exact()))

    assert levels.shape == (76, 20)
    assert np.count_nonzero(~np.isnan(levels)) == num_known


def without_reference(trial: Trial) -> Trial:
    """The trial, as if Gaussian belief propagation had diverged."""
    reference = trial.runs[0]
    solution = replace(reference.posterior.solution, result="diverged")
    diverged = replace(reference, posterior=replace(reference.posterior, solution=solution))
    return replace(trial, runs=(diverged, *trial.runs[1:]))


def test_trials_in_which_the_reference_diverged_are_left_out(generated: Trial) -> None:
    found = rows("tree", "paper", [without_reference(generated), generated])

    expected = rows("tree", "paper", [generated])
    for measured in ("l1", "KL"):
        of_reference = {
            (row.method, row.components): row.value
            for row in expected
            if row.measure == measured and (measured == "l1" or row.method == "GaBP")
        }
        assert of_reference
        actual = {
            (row.method, row.components): row.value for row in found if row.measure == measured
        }
        assert {key: actual[key] for key in of_reference} == of_reference
    assert {row.paper.text for row in found if row.paper} == {
        row.paper.text for row in expected if row.paper
    }
    assert not any(row.why for row in found)
    sentence = on_answers("paper", [without_reference(generated), generated])[1]
    assert "converges in 1 of 2 trials; l1 and its own figures are of it alone." in sentence


def test_without_any_reference_distances_are_from_the_exact_answer(generated: Trial) -> None:
    found = rows("tree", "paper", [without_reference(generated)])

    exact = {(row.method, row.components): row.value for row in found if row.measure == "l1 exact"}
    near = [row for row in found if row.measure == "l1"]
    assert [row.method for row in near] == ["EPBP", "BVI", "L-BVI", "C2F-BVI"]
    assert all(row.paper is not None for row in near)
    assert all(row.why == WITHOUT_REFERENCE for row in near)
    assert all(row.value == exact[row.method, row.components] for row in near)
    assert [row.measure for row in found if row.method == "GaBP"] == ["seconds"]


def test_the_clean_variant_without_a_reference_has_no_distances_from_it(generated: Trial) -> None:
    found = rows("tree", "clean", [without_reference(generated)])

    assert not any(row.measure == "l1" for row in found)


def test_the_accuracy_of_the_clean_variant_is_told(generated: Trial) -> None:
    of_clean, of_paper = (rows("tree", variant, [generated]) for variant in ("clean", "paper"))

    sentence = accuracy([*of_paper, *of_clean], {"paper": [generated], "clean": [generated]})

    kl = [row.value for row in of_clean if row.measure == "KL" and row.components is not None]
    assert sentence.startswith("Clean variant, which the paper does not have: modes within ")
    assert sentence.endswith(f"KL {number(min(kl))} to {number(max(kl))}.")
    assert accuracy(of_paper, {"paper": [generated]}) == ""


def test_an_infinite_divergence_has_no_spread(
    generated: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = {"l1": 0.0, "l1 exact": 0.0, "KL": np.inf, "seconds": 1.0}
    monkeypatch.setattr(trials, "figures", lambda *_: measured)

    found = rows("tree", "clean", [generated, generated])

    divergences = {(row.value, row.spread) for row in found if row.measure == "KL"}
    assert divergences == {(np.inf, None)}


def test_all_wells_make_a_forest_that_lifts_well(data_dir: Path) -> None:
    published = kalman.published(data_dir, "forest", 0, "paper").graph
    generated = kalman.generated("forest", 0, "paper").graph

    found = hl.lift(published)

    assert found.ground.num_variables == hl.lift(generated).ground.num_variables == 3420 * 19
    assert found.num_classes == 304 * 19  # 303 wells with a measurement, and all the others


def test_speeds_know_how_many_classes_were_solved(generated: Trial) -> None:
    runs = measure.in_turn(generated.graph, hl.NPVI(3), num_timed=1)

    speed = measure.speed("", "NPVI(3)", runs)

    assert speed.coarse is not None
    assert speed.ground.num_classes == 1444
    assert speed.lifted.num_classes == speed.coarse.num_classes < 100
    assert speed.ground.end is not None


def test_curves_of_timed_runs_end_where_the_runs_do(generated: Trial) -> None:
    runs = measure.in_turn(generated.graph, hl.NPVI(3), num_timed=1)

    curves = Timed("paper variant", "NPVI(3)", runs).curves()

    assert {(one["instance"], one["method"]) for one in curves} == {("paper variant", "NPVI(3)")}
    for run in runs.values():
        objective = [one["objective"] for one in curves if one["lifting"] == run.label]
        assert len(objective) > 1
        assert objective[-1] == pytest.approx(run.posterior.solution.objective, abs=1e-6)


def test_pictures_have_a_well_a_row_and_the_paper_beside_ours(generated: Trial) -> None:
    graph = kalman.generated("tree", 0, "clean").graph
    levels = levels_of("paper", generated, known_levels(hl.infer(graph, hl.Exact())))

    wells = draw_levels([levels])
    accuracy = draw_accuracy(rows("tree", "paper", [generated]), "generated")

    assert len(wells.axes) == len(levels.shown()) == 3
    assert len(levels.table()) == 60
    assert np.count_nonzero(~np.isnan(levels.measured)) == 16
    labels = [text.get_text() for text in accuracy.axes[0].get_legend().get_texts()]
    assert labels == [
        "EPBP", "BVI", "L-BVI", "C2F-BVI", "full: ours (generated evidence)", "hollow: the paper",
    ]  # fmt: skip


def test_an_outcome_has_rows_speeds_notes_and_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    first = [trial(QUICK, "cycle", "paper", 0)]
    monkeypatch.setattr(experiment, "all_trials", lambda *_: first)
    monkeypatch.setattr(experiment, "all_timed", lambda *_: [])

    found = run_cycle(replace(QUICK, variants=("paper",)))

    assert found.source == "generated"
    assert {row.method for row in found.rows} == {"Exact", *map(name, first[0].runs)}
    assert len(found.tables["trials"]) == len(METHODS)
    assert list(found.figures) == ["levels", "accuracy"]
    assert found.notes[1].startswith("27 of 120 levels are measured")
    assert "those of its own" in found.notes[1]
    assert any("2.2 GHz" in note for note in found.notes)
    assert any("we take K = 1" in note for note in found.notes)
