"""Every Python snippet in the README and the documentation runs as printed."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snippets = SNIPPET.findall(page.read_text(encoding="utf-8"))
    namespace = {}

    with redirect_stdout(io.StringIO()):
        for number, snippet in enumerate(snippets):
            code = compile(snippet, f"{page.name}, snippet {number}", "exec")
            exec(code, namespace)


def test_the_readme_example_prints_what_the_readme_says():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    printed = io.StringIO()

    with redirect_stdout(printed):
        exec(compile(SNIPPET.findall(text)[0], "README.md", "exec"), {})

    expected = re.escape(OUTPUT.findall(text)[0]).replace(r"\.\.\.", r"\d*")
    assert re.fullmatch(expected, printed.getvalue())


def test_the_page_on_lifting_shows_what_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "lifting.md").read_text(encoding="utf-8")
    namespace, printed = {}, []

    for snippet in SNIPPET.findall(page):
        with redirect_stdout(io.StringIO()) as stream:
            exec(compile(snippet, "lifting.md", "exec"), namespace)
        printed.append(stream.getvalue())

    assert [text for text in printed if text] == OUTPUT.findall(page)
