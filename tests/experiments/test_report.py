"""What experiments print and write: figures beside the paper's, speeds, and answers."""

from __future__ import annotations

import csv
import json
from io import StringIO

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from experiments.report import Outcome, Printed, Row, Speed, Timing, summary
from experiments.report.answers import answers
from experiments.report.show import show, show_summary
from experiments.report.write import make_folder, write
from hylift.files import OutputError


def row(value: float, paper: str | None, **fields: object) -> Row:
    given = {"instance": "", "method": "L-BVI", "components": 3, "measure": "KL", **fields}
    return Row(value=value, paper=None if paper is None else Printed.of(paper), **given)  # type: ignore[arg-type]


def speed(ground: float, lifted: float, coarse: float | None = None) -> Speed:
    return Speed(
        "",
        "BVI(3)",
        Timing(ground, ground, 100),
        Timing(lifted, lifted, 10),
        None if coarse is None else Timing(2 * coarse, coarse, 10, 4),
    )


def printed(outcome: Outcome) -> str:
    out = StringIO()
    show(Console(file=out, width=200), outcome)
    return out.getvalue()


def test_a_printed_figure_keeps_its_spread_and_the_unit_of_its_last_digit():
    plain, spread = Printed.of("5.17e-2 ± 4.25e-2"), Printed.of("-4896.9")

    assert (plain.value, plain.spread) == (0.0517, 0.0425)
    assert plain.unit == pytest.approx(1e-4)
    assert (spread.value, spread.spread) == (-4896.9, 0.0)
    assert spread.unit == pytest.approx(0.1)


def test_text_that_is_no_figure_is_refused():
    with pytest.raises(ValueError, match="'about 3' is no printed figure"):
        Printed.of("about 3")


@pytest.mark.parametrize(
    ("value", "paper", "verdict"),
    [
        (0.0024, "0.004 ± 0.001", "beaten"),
        (0.0391, "0.039 ± 1e-5", "matched"),  # the same, as far as digits are printed
        (0.0402, "0.039 ± 1e-5", "not reached"),
        (3.6e-9, "3.32e-9 ± 1.12e-9", "within ±"),
        (5.0e-9, "3.32e-9 ± 1.12e-9", "not reached"),
        (-5020.5, "-4896.9", "beaten"),
        (1.0, None, ""),
    ],
)
def test_a_figure_is_beaten_matched_or_not_reached(value, paper, verdict):
    assert row(value, paper).verdict == verdict


def test_a_single_measurement_has_no_spread():
    assert summary([2.0]) == (2.0, None)
    assert summary([1.0, 3.0]) == (2.0, 1.0)


def test_answers_follow_from_figures_and_times():
    rows = [row(0.001, "0.004"), row(0.004, "0.004", components=5), row(9.0, "5.0", method="EPBP")]

    outcome = Outcome("", "no", tuple(rows), (speed(1.0, 0.1, 0.2),))

    found = {one.question: one.sentence for one in answers(outcome)}

    assert found == {
        "Q1": "Yes: of 2 figures of the paper 1 beaten, 1 matched.",
        "Q2": "Yes: BVI(3) 10 times as fast (100 hidden variables, 10 classes).",
        "Q3": "No: BVI(3) 0.5 times as fast as exact lifting (4 to 10 classes).",
    }


def test_answers_name_what_was_not_reached_and_where_lifting_does_not_help():
    rows = [row(0.001, "0.004"), row(0.3, "0.004", components=5)]

    outcome = Outcome("", "no", tuple(rows), (speed(1.0, 0.1), speed(1.0, 0.99)))

    found = [one.sentence for one in answers(outcome)]

    assert found[0] == (
        "In part: of 2 figures of the paper 1 beaten, 1 not reached (KL of L-BVI K=5)."
    )
    assert found[1].startswith("In 1 of 2 cases, 3.2 times on average: ")


def test_of_many_speeds_the_best_and_the_worst_are_told():
    found = answers(Outcome("", "no", (), (speed(1.0, 0.1), speed(1.0, 0.5), speed(1.0, 0.2))))

    assert found[0].sentence == (
        "Yes: at best BVI(3) 10 times as fast (100 hidden variables, 10 classes); "
        "at worst BVI(3) 2 times as fast (100 hidden variables, 10 classes)."
    )


def test_nothing_measured_is_nothing_answered():
    assert answers(Outcome("", "no", (row(1.0, None),))) == []


def test_a_table_has_ours_beside_the_papers_and_says_why_one_was_not_reached():
    outcome = Outcome(
        "A title",
        "generated",
        (row(0.001, "0.004 ± 0.001", spread=0.0002), row(0.3, "0.1", measure="l1", why="Because.")),
        (speed(1.0, 0.1, 0.02),),
        ("A note.",),
    )

    text = printed(outcome)

    assert "A title (generated evidence)" in text
    assert "0.001 ± 2.0e-4" in text
    assert "0.004 ± 0.001" in text
    assert "beaten" in text
    assert "l1 of L-BVI, K = 3: Because." in text
    assert "100 / 10 / 4→10" in text
    assert "A note." in text
    assert "Q3 Does coarse-to-fine lifting" in text


def test_the_summary_lists_what_was_not_reached():
    out = StringIO()

    show_summary(
        Console(file=out, width=200),
        [row(0.001, "0.004"), row(0.3, "0.1", measure="l1", why="Because."), row(1.0, None)],
    )

    assert "Of 2 figures of the paper: 1 beaten, 1 not reached." in out.getvalue()
    assert "l1 of L-BVI, K = 3: 0.3 against 0.1; Because." in out.getvalue()


def test_what_is_not_beside_a_figure_of_others_is_told_in_words():
    outcome = Outcome("", "no", (row(1.0, None),), accuracy="All at the optimum.")

    assert [one.sentence for one in answers(outcome)] == ["All at the optimum."]


def test_figures_of_others_than_the_paper_are_told_apart():
    authors = Row("", "BVI", 1, "energy", 2.0, paper=Printed.of("3.0", "authors' runs"))

    text = printed(Outcome("A title", "no", (authors,)))

    assert "authors' runs" in text
    assert "of 1 figures of the authors' runs 1 beaten" in text


def test_runs_that_end_higher_are_told():
    ends = Speed("", "BVI(3)", Timing(1, 1, 9, None, 5.0), Timing(0.5, 0.5, 3, None, 5.25))

    text = printed(Outcome("A title", "no", (), (ends,)))

    assert "0 / 0.25" in text


def test_who_never_gets_near_has_no_ratio(tmp_path):
    never = Speed("", "BVI(3)", Timing(1, float("inf"), 9), Timing(0.5, 0.5, 3))
    outcome = Outcome("A title", "no", (row(float("inf"), "0.1"),), (never, speed(1.0, 0.1)))

    text = printed(outcome)
    files = write(outcome, "toy", tmp_path)

    assert "never" in text
    assert "Yes: BVI(3) 10 times as fast" in text
    content = json.loads(files[0].read_text(), parse_constant=pytest.fail)
    assert content["figures"][0]["ours"] == "inf"


def test_measures_stand_below_each_other_where_a_terminal_is_narrow():
    out = StringIO()
    rows = tuple(
        row(0.001, "0.004 ± 0.001", spread=0.0002, measure=name) for name in ("KL", "l1", "third")
    )

    show(Console(file=out, width=60), Outcome("A title", "no", rows))

    lines = out.getvalue().splitlines()
    assert [line.split()[2] for line in lines if line.startswith("method")] == ["KL", "l1", "third"]
    assert sum("0.004 ± 0.001" in line for line in lines) == 3


def test_a_folder_that_cannot_be_written_is_found_at_once(tmp_path):
    path = tmp_path / "file"
    path.write_text("")

    with pytest.raises(OutputError, match="cannot be a folder for results"):
        make_folder(path)


def test_files_hold_figures_speeds_answers_and_pictures(tmp_path):
    outcome = Outcome(
        "A title",
        "published",
        (row(0.001, "0.004 ± 0.001"),),
        (speed(1.0, 0.1, 0.02),),
        figures={"curves": lambda: Figure(figsize=(1, 1))},
        tables={"curves": [{"seconds": 0.1, "objective": 2.0}]},
    )

    files = write(outcome, "toy", tmp_path / "new")

    assert [path.name for path in files] == [
        *("toy.json", "toy-figures.csv", "toy-speeds.csv", "toy-curves.csv", "toy-curves.png")
    ]
    content = json.loads(files[0].read_text())
    assert content["figures"][0]["verdict"] == "beaten"
    assert content["answers"]["Q2"].startswith("Yes")
    assert content["tables"]["curves"] == [{"seconds": 0.1, "objective": 2.0}]
    (line,) = csv.DictReader(files[1].read_text().splitlines())
    assert (line["ours"], line["paper"], line["paper_spread"]) == ("0.001", "0.004", "0.001")
    assert files[4].read_bytes().startswith(b"\x89PNG")
