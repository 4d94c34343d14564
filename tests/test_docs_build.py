"""The docs build runs pages and examples, puts what they draw on the site, and names what fails."""

from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from docs_build.cache import Cache
from docs_build.gallery import FormatError, read_example
from docs_build.runs import Block

HOOK = Path(__file__).parents[1] / "mkdocs_hooks.py"
DRAW = """\
from matplotlib.figure import Figure
Figure(figsize=(1, 1)).savefig("{}.png")
"""
PAGE = f"# A page\n\n```python\n{DRAW.format('line')}```\n\n![A line](images/line.png)\n"
EXAMPLE = f"""\
# %% [markdown]
# # How many?
#
# Are there two? Or
# three?

# %%
numbers = [1, 2]
print(f"{{len(numbers)}} numbers")

# %% [markdown]
# Here they are:

# %%
{DRAW.format("count")}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one page and one example."""
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    (tmp_path / "docs").mkdir()
    (tmp_path / "examples").mkdir()
    (tmp_path / "docs" / "index.md").write_text(PAGE)
    (tmp_path / "examples" / "count.py").write_text(EXAMPLE)
    (tmp_path / "mkdocs.yml").write_text(
        f"site_name: test\nstrict: true\nuse_directory_urls: false\nhooks: ['{HOOK}']\n"
        "nav:\n  - Home: index.md\n  - Gallery: gallery/index.md\n"
    )
    return tmp_path


def built(project: Path) -> Path:
    build(load_config(str(project / "mkdocs.yml")))
    return project / "site"


def test_figures_of_pages_and_examples_are_on_the_site(project: Path) -> None:
    site = built(project)

    assert (site / "images" / "line.png").read_bytes().startswith(b"\x89PNG")
    assert (site / "images" / "count.png").read_bytes().startswith(b"\x89PNG")
    assert not (project / "docs" / "images").exists()


def test_an_example_becomes_a_page_of_text_code_output_and_picture(project: Path) -> None:
    site = built(project)

    html = (site / "gallery" / "count.html").read_text()
    places = [html.index(part) for part in ("numbers = [1, 2]", "2 numbers", "Here they", "<img")]
    assert places == sorted(places)
    assert (site / "gallery" / "count.py").read_text() == EXAMPLE


def test_the_gallery_has_the_title_and_first_sentence_of_each_example(project: Path) -> None:
    site = built(project)

    html = (site / "gallery" / "index.html").read_text()
    assert 'href="count.html"' in html
    assert "How many?" in html
    assert "Are there two?" in html
    assert "three" not in html


def test_a_figure_that_no_block_draws_is_named_with_its_page(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "docs" / "index.md").write_text(PAGE + "\n![A circle](images/circle.png)\n")

    with pytest.raises(Abort):
        built(project)

    assert (
        "docs/index.md shows images/circle.png, but its code does not write circle.png"
        in caplog.text
    )


def test_an_error_in_a_block_is_told_with_page_and_line(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "docs" / "index.md").write_text(PAGE.replace("from", "1 / 0\nfrom"))

    with pytest.raises(Abort):
        built(project)

    assert "docs/index.md does not run: division by zero" in caplog.text
    assert f'"{project}/docs/index.md", line 4' in caplog.text


def test_figures_of_one_name_on_two_pages_are_refused(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "docs" / "other.md").write_text(PAGE)

    with pytest.raises(Abort):
        built(project)

    assert "images/line.png is made by docs/index.md and by docs/other.md" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print(1)\n", "count.py has to begin with the line '# %% [markdown]'"),
        (
            "# %% [markdown]\n# No title\n",
            "count.py has to begin with a [markdown] cell of '# Title', an empty line and the "
            "question",
        ),
    ],
)
def test_a_script_in_another_format_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "count.py").write_text(text)

    with pytest.raises(FormatError) as error:
        read_example(tmp_path / "count.py")

    assert str(error.value) == message


def test_blocks_are_run_again_only_if_they_have_changed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    first = Cache(tmp_path / "kept").run([Block("print(1)", 1)], page)

    again = Cache(tmp_path / "kept").run([Block("print(1)", 1)], page)
    changed = Cache(tmp_path / "kept").run([Block("print(2)", 1)], page)

    assert (first[1], again[1], changed[1]) == (True, False, True)
    assert again[0] == first[0]
    assert changed[0].printed == ("2\n",)


def test_runs_that_were_not_asked_for_are_dropped(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    Cache(tmp_path / "kept").run([Block("print(1)", 1)], page)
    cache = Cache(tmp_path / "kept")
    cache.run([Block("print(2)", 1)], page)

    cache.drop_others()

    assert cache.run([Block("print(2)", 1)], page)[1] is False
    assert Cache(tmp_path / "kept").run([Block("print(1)", 1)], page)[1] is True
