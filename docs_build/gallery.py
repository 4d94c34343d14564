"""Examples, which are scripts in the percent format, as pages of a gallery."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from docs_build.runs import Block, Run

CELL = re.compile(r"^# %%( \[markdown\])?.*\n", re.MULTILINE)


class FormatError(ValueError):
    """An example is not in the format of the gallery."""


@dataclass(frozen=True, slots=True)
class Example:
    """A script of text and code, in the order in which they stand there."""

    path: Path
    cells: tuple[str | Block, ...]
    """Markdown, or code."""

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def title(self) -> str:
        return _heading(self)[0]

    @property
    def question(self) -> str:
        """The first paragraph of the text."""
        return " ".join(_heading(self)[1].split("\n\n")[0].split())

    @property
    def blocks(self) -> list[Block]:
        return [cell for cell in self.cells if isinstance(cell, Block)]

    @property
    def picture(self) -> str:
        """The name of the one picture that it draws."""
        return f"{self.name}.png"


def read_example(path: Path) -> Example:
    """The cells of a script; raises unless it begins with a title and a question."""
    text = path.read_text(encoding="utf-8")
    marks = list(CELL.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    if not marks or text[: marks[0].start()].strip():
        raise FormatError(f"{path.name} has to begin with the line '# %% [markdown]'")
    cells: list[str | Block] = []
    for mark, end in zip(marks, ends, strict=True):
        body = text[mark.end() : end]
        if mark[1]:
            cells.append(_uncommented(body))
        elif body.strip():
            cells.append(Block(body.rstrip() + "\n", text.count("\n", 0, mark.end()) + 1))
    example = Example(path, tuple(cells))
    _heading(example)
    return example


def page(example: Example, run: Run) -> str:
    """A page with text and code, and after each piece of code what it printed and drew."""
    parts, done = [], zip(run.printed, run.drawn, strict=True)
    for cell in example.cells:
        if isinstance(cell, str):
            parts.append(cell)
            continue
        printed, drawn = next(done)
        parts.append(f"```python\n{cell.code}```")
        if output := printed.rstrip():
            parts.append(f"```text\n{output}\n```")
        if example.picture in drawn:
            parts.append(f"![{example.title}](../images/{example.picture})")
    parts.append(f"This page is a script: [{example.path.name}]({example.path.name}).")
    return "\n\n".join(parts) + "\n"


def index(examples: Sequence[Example]) -> str:
    """The page that leads to all others, with their pictures."""
    cards = [
        f"-   [![{one.title}](../images/{one.picture})]({one.name}.md)\n\n"
        f"    **[{one.title}]({one.name}.md)**\n\n"
        f"    {_sentence(one.question)}\n"
        for one in examples
    ]
    return (
        "# Gallery\n\n"
        "Worked problems, each a short script that generates its own data. Jupyter and VS Code "
        "open the scripts, which are in the folder `examples` of the project, as notebooks.\n\n"
        '<div class="grid cards" markdown>\n\n' + "\n".join(cards) + "\n</div>\n"
    )


def _heading(example: Example) -> tuple[str, str]:
    """Title and text of the first cell."""
    first = example.cells[0] if example.cells else ""
    found = re.match(r"# (.+)\n\n(.+)", first, re.DOTALL) if isinstance(first, str) else None
    if found is None:
        raise FormatError(
            f"{example.path.name} has to begin with a [markdown] cell of '# Title', an empty line "
            "and the question"
        )
    return found[1], found[2]


def _uncommented(body: str) -> str:
    return "\n".join(re.sub(r"^# ?", "", line) for line in body.strip().splitlines())


def _sentence(text: str) -> str:
    """The first one."""
    return re.split(r"(?<=[.?!]) ", text)[0]
