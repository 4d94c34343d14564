"""What print and a notebook show of an answer, warnings about doubts, and the order of atoms."""

import csv
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hylift as hl
from hylift.errors import (
    ArgumentError,
    DoubtWarning,
    HyliftWarning,
    UnknownNameError,
    UnsupportedError,
)
from hylift.posterior import Posterior
from hylift.words import TextTable, doubt

MODEL = """
    thing = {a, b, c, d}
    Hot(thing)
    Kind(thing, kind!)
    kind = {red, green, blue}
    level(thing): real
    1.5  Hot("a")
    -1   Hot("b")
    0.3  Kind("c", "red")
    2    Kind("d", "blue")
    normal(level(x) | 3*Hot(x), 1)
"""


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return hl.infer(hl.ground(hl.parse(MODEL), {"Hot(c)": True}))


def with_notes(posterior: Posterior, *notes: str) -> Posterior:
    return replace(posterior, solution=replace(posterior.solution, notes=notes))


# Notes


def test_a_posterior_ends_in_its_notes_the_most_serious_first(posterior: Posterior) -> None:
    none = with_notes(posterior)
    one = with_notes(posterior, "Exact inference was chosen.")
    some = with_notes(posterior, "Exact inference was chosen.", doubt("It may be off."))

    assert repr(none).endswith(", certified)")
    assert repr(one).endswith(", certified; 1 note: Exact inference was chosen.)")
    assert repr(some).endswith(", doubtful; 2 notes, above all: It may be off.)")
    assert str(some) == repr(some)


# Warnings


def two_sided() -> hl.FactorGraph:
    """Mean field takes one of two modes of it for all."""
    return hl.ground(hl.parse("n = {0, ..., 9}\nR(n)\nS(n)\n2 R(x) v S(y)\n"), {})


def test_a_doubtful_answer_is_a_warning_that_says_why_and_what_to_do() -> None:
    with pytest.warns(DoubtWarning) as caught:
        found = hl.infer(two_sided(), hl.MeanField())

    assert found.trust.verdict == "doubtful"
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("The answer of mean field is doubtful. This answer may be off: ")
    assert "hl.check_answer(posterior, graph)" in text
    assert Path(warning.filename).name == Path(__file__).name
    assert issubclass(DoubtWarning, HyliftWarning)


def test_other_answers_are_no_warning(posterior: Posterior) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert hl.infer(two_sided()).trust.verdict == "certified"
        assert hl.infer(two_sided(), "gibbs").trust.verdict == "unchecked"


def test_a_run_that_the_user_stops_is_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        found = hl.infer(two_sided(), hl.BP(), callback=lambda step: True, check=False)

    assert found.solution.result == "stopped"


def test_a_race_shows_verdicts_and_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtWarning)

        found = hl.race(two_sided(), [hl.MeanField()], seconds=5)

    assert found.finishes[0].posterior.trust.verdict == "doubtful"


# Summaries


def test_a_summary_has_the_verdict_the_top_atoms_and_the_notes(posterior: Posterior) -> None:
    summary = posterior.summary(top=3)

    hot = 1 / (1 + np.exp(-1.5))
    assert str(summary).splitlines() == [
        f"9 hidden variables, method exact, log Z = {posterior.log_partition.value:.6g} (exact), "
        "certified: Nothing was approximated, and the numerical error is bounded.",
        "atom     state    prob  verdict",
        f"Hot(a)   true   {hot:.4f}  certified",
        f"Kind(d)  blue   {np.exp(2) / (np.exp(2) + 2):.4f}  certified",
        "Hot(d)   true   0.5000  certified",
        "… and 6 more",
        "Note: Exact inference was chosen, because it is cheap here.",
    ]


def test_a_summary_of_reals_has_their_intervals(posterior: Posterior) -> None:
    lines = str(posterior.summary("level", by="std", top=1)).splitlines()

    assert lines[1].split() == ["atom", "mean", "std", "90", "%", "verdict"]
    found = posterior.marginal("level(d)")
    low, high = found.interval(0.9)
    assert lines[2].split() == [
        "level(d)", f"{found.mean:.4g}", f"{found.std:.4g}", f"{low:.4g}", "to", f"{high:.4g}",
        "certified",
    ]  # fmt: skip


def test_a_summary_in_a_notebook_has_no_markup_of_names(posterior: Posterior) -> None:
    shown = with_notes(posterior, "a < b").summary()._repr_html_()

    assert shown.startswith("<b>9 hidden variables, method exact")
    assert "Note: a &lt; b" in shown


def test_a_summary_needs_no_marginals() -> None:
    found = hl.infer(two_sided(), tasks="logz").summary()

    assert found.atoms.rows == ()
    assert "certified: It is proven how far log Z is off." in str(found)


# Order


def test_atoms_are_in_the_order_of_a_number(posterior: Posterior, tmp_path: Path) -> None:
    posterior.write(tmp_path / "top.csv", ["Kind", "level", "Hot"], by="prob", top=4)

    with open(tmp_path / "top.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(row["atom"] for row in rows))
    assert names == ["Hot(a)", "Kind(d)", "Hot(d)", "Kind(c)"]


def test_what_has_no_such_number_is_last(posterior: Posterior, tmp_path: Path) -> None:
    posterior.write(tmp_path / "all.parquet", ["Hot", "level"], by="mean")

    found = pa.parquet.read_table(tmp_path / "all.parquet").to_pandas()
    assert found["atom"].tolist()[4:] == ["Hot(a)", "Hot(b)", "Hot(d)"]
    assert (np.diff(found["mean"][:4]) <= 0).all()


def test_a_column_per_argument(posterior: Posterior, tmp_path: Path) -> None:
    posterior.write(tmp_path / "hot.csv", "Hot", arguments=True, by="prob")
    posterior.write(tmp_path / "kind.csv", ["Kind(d)", "Kind(c)"], arguments=True)

    with open(tmp_path / "hot.csv", encoding="utf-8") as file:
        hot = list(csv.DictReader(file))
    with open(tmp_path / "kind.csv", encoding="utf-8") as file:
        kind = list(csv.DictReader(file))
    assert [row["thing"] for row in hot] == ["a", "d", "b"]
    assert float(hot[0]["prob"]) == pytest.approx(1 / (1 + np.exp(-1.5)))
    assert [(row["thing"], float(row["blue"])) for row in kind] == [
        ("d", pytest.approx(np.exp(2) / (np.exp(2) + 2))),
        ("c", pytest.approx(1 / (np.exp(0.3) + 2))),
    ]


def test_columns_of_arguments_are_of_one_predicate(posterior: Posterior, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        posterior.write(tmp_path / "both.csv", ["Hot", "level"], arguments=True)
    with pytest.raises(UnsupportedError, match=r"\.json: only a table has a column per argument"):
        posterior.write(tmp_path / "hot.json", "Hot", arguments=True)

    assert str(refusal.value) == (
        "a column per argument needs atoms of one predicate: 'level(a)' is not of 'Hot'. Ask for "
        "one predicate at a time"
    )


def test_other_orders_are_refused(posterior: Posterior) -> None:
    with pytest.raises(UnsupportedError) as wrong:
        posterior.summary(by="probs")
    with pytest.raises(ArgumentError) as none:
        posterior.summary(top=0)

    assert str(wrong.value) == (
        "there is no number to sort by 'probs': choose among prob, mean, std, mode, q05, q50, q95."
        " Did you mean 'prob'?"
    )
    assert str(none.value) == "top must be an integer of at least 1, not 0"


# Assignments


def test_an_assignment_is_a_data_frame(posterior: Posterior) -> None:
    best = posterior.map()

    frame = best.to_pandas().set_index("atom")

    assert frame.loc["Kind(d)", "state"] == "blue"
    assert frame.loc["level(a)", "value"] == pytest.approx(3.0)
    assert best.to_polars()["atom"].to_list() == list(best.to_dict())


def test_an_assignment_of_a_predicate_has_a_column_per_argument(posterior: Posterior) -> None:
    best = posterior.map()

    kinds, levels, hot = (best.to_pandas(name) for name in ("Kind", "level", "Hot"))

    assert kinds.set_index("thing").loc["d", "state"] == "blue"
    assert levels.set_index("thing").loc["a", "value"] == pytest.approx(3.0)
    assert hot.thing.tolist() == ["a", "b", "d"]  # 'c' was observed
    assert best.to_polars("level")["value"].to_list() == levels["value"].tolist()
    with pytest.raises(UnknownNameError, match="Did you mean 'level'"):
        best.table("levl")


def test_columns_of_wide_letters_are_straight() -> None:
    table = TextTable(("name", "n"), (("李明", "1"), ("Łukasz", "20"), ("e\u0301", "3")), (1,))

    assert str(table).splitlines() == [
        "name     n", "李明     1", "Łukasz  20", "e\u0301        3"
    ]  # fmt: skip
