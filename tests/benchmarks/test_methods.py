"""The benchmark of methods: what it measures on a small model, and how it writes a page anew."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hylift as hl
from benchmarks.methods.measured import measure
from benchmarks.methods.models import MODELS, Model
from benchmarks.methods.page import BEGIN, END, check_page, rewrite
from benchmarks.methods.run import as_markdown
from benchmarks.methods.tables import tables
from hylift.errors import FormatError

pytestmark = pytest.mark.filterwarnings("ignore:.*hard rules say that exactly one")

ROOT = Path(__file__).parents[2]


def rooms() -> hl.FactorGraph:
    model = hl.parse("""
        room = {0, ..., 2}
        Heated(room)
        temperature(room): real
        -0.5  Heated(r)
        normal(temperature(r) | 12 + 8*Heated(r), 4)
        -0.3  (temperature(r) - temperature(r+1))^2
    """)
    return hl.ground(model)


def test_methods_are_measured_beside_exact_inference_lifted_and_ground():
    model = Model("rooms", "heated rooms", rooms, seconds=5.0)

    measured = measure(model, [hl.Exact(), hl.MeanField(), hl.GaBP()])

    found = measured.results["mean field"]
    exact = hl.infer(rooms(), hl.Exact())
    expected = exact.compare(hl.infer(rooms(), hl.MeanField()))
    assert measured.race.yardstick.label == "exact"
    assert found.finish.mean_kl == pytest.approx(expected.mean_kl, abs=1e-10)
    assert found.ground_seconds is not None
    assert measured.results["exact"].ground_seconds is None
    assert found.width < 1
    assert "GaBP" not in measured.results


def test_tables_have_a_row_per_method_and_a_column_per_model():
    model = Model("rooms", "heated rooms", rooms, seconds=5.0)
    measured = measure(model, [hl.Exact(), hl.MeanField()])

    found = {table.title: table for table in tables([measured])}

    assert [*found] == ["Models", "Divergence", "Worst error", "Width", "log Z", "Seconds", "MAP"]
    assert found["Divergence"].header == ("method", "rooms")
    assert found["Divergence"].rows[0] == ("exact", "trusted")
    assert found["log Z"].rows[0] == ("exact", "exact")
    assert found["log Z"].rows[1][1].startswith("≥ -")
    assert found["MAP"].rows[0] == ("exact", "= 0")
    assert "| mean field |" in as_markdown([found["Divergence"]])


def test_figures_of_a_page_are_replaced_and_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n", encoding="utf-8")

    rewrite(str(page), "new")

    assert page.read_text(encoding="utf-8") == f"# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nThe end.\n"


def test_a_page_without_a_place_for_figures_is_refused_before_anything_is_measured(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n", encoding="utf-8")

    with pytest.raises(FormatError, match=re.escape("page.md: has no place for figures")):
        check_page(str(page))


def test_the_page_on_methods_has_the_figures_of_all_models():
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")

    figures = page.partition(BEGIN)[2].partition(END)[0]

    header = "| method | " + " | ".join(model.name for model in MODELS) + " |"
    assert figures.count(header) == 5
    assert all(f"| {model.name} | {model.about} |" in figures for model in MODELS)


@pytest.mark.parametrize(
    "name",
    [
        "toy",
        "pumps",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("tree", "grid", "recession")),
    ],
)
def test_figures_on_the_page_are_those_of_today_where_that_is_quick_to_see(name: str) -> None:
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    printed = page.partition("**Divergence.**")[2].partition("**Worst error.**")[0]
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("|")]
    column = rows[0].index(name)
    on_the_page = {row[0]: row[column] for row in rows[2:]}
    model = next(model for model in MODELS if model.name == name)

    measured = measure(model, [hl.Exact(), hl.MeanField(), hl.BVI(3), hl.BP(), hl.GaBP()])

    today = {table.title: table for table in tables([measured])}["Divergence"]
    assert dict(today.rows).items() <= on_the_page.items()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["method"], "no benchmark 'method'; there are methods, bounds, budgets"),
        (["uai", "--markdown", "page.md"], "--markdown is for 'methods'"),
        (["methods", "--markdown", "missing.md"], "missing.md: no such file"),
    ],
)
def test_bad_input_is_a_line_on_the_error_stream(arguments, sentence):
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert ran.returncode != 0
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr
