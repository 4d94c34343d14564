"""Every Python snippet in the README and the documentation runs as printed, and the site builds."""

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest
from matplotlib.testing.compare import compare_images
from mkdocs.commands.build import build
from mkdocs.config import load_config

from docs_build.cache import Cache
from docs_build.pages import figures, outputs, snippets
from docs_build.runs import Block, Run, run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
TIMED = {"race.md"}
"""Pages on which outputs have times, which are never the same."""


def shows_outputs(path: Path) -> bool:
    return path.name not in TIMED and bool(outputs(path.read_text(encoding="utf-8")))


@functools.cache
def result(path: Path) -> Run:
    """What the snippets of a page do, run once for all tests."""
    return run(snippets(path.read_text(encoding="utf-8")), path)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_snippets_run_one_after_the_other_and_draw_the_figures_of_the_page(path: Path) -> None:
    shown = figures(path.read_text(encoding="utf-8"))

    drawn = result(path).pictures

    kept = {file.name for file in (DOCS / "images").glob("*.png")}
    assert set(shown) <= drawn.keys() | kept


@pytest.mark.parametrize(
    "path", [path for path in PAGES if shows_outputs(path)], ids=lambda path: path.name
)
def test_a_page_shows_all_that_its_snippets_print(path: Path) -> None:
    printed = [text for text in result(path).printed if text]

    assert printed == outputs(path.read_text(encoding="utf-8"))


def test_the_figure_of_the_readme_is_what_its_example_draws(tmp_path: Path) -> None:
    drawn = tmp_path / "readme.png"
    drawn.write_bytes(result(README).pictures["readme.png"])

    # An RMS of 2 in 255: other versions of FreeType smooth letters in another way.
    difference = compare_images(str(DOCS / "images" / "readme.png"), str(drawn), tol=2.0)

    assert difference is None, (
        "docs/images/readme.png is out of date: run the README's example, and put there what it "
        f"draws. {difference}"
    )


def test_the_site_is_built_out_of_what_pages_and_examples_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    monkeypatch.setattr(Cache, "run", known_or_blank)
    monkeypatch.setattr(Cache, "drop_others", lambda cache: None)
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True)

    build(config)

    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert {path.stem for path in (tmp_path / "gallery").glob("*.html")} == names | {"index"}
    for path in PAGES[1:]:
        for name in figures(path.read_text(encoding="utf-8")):
            assert (tmp_path / "images" / name).is_file()


def known_or_blank(cache: Cache, blocks: Sequence[Block], path: Path) -> tuple[Run, bool]:
    """Of pages what the other tests here have run; examples are run in test_examples.py."""
    if path in PAGES:
        return result(path), True
    name = f"{path.stem}.png"
    return Run(("",) * len(blocks), ((name,),) * len(blocks), {name: b"drawn there"}), True
