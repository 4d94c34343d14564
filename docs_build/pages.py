"""Pages of the documentation, and the figures that their own blocks draw."""

import re

from docs_build.runs import Block

FENCED = r"^```{}\n(.*?)^```$"
SNIPPET = re.compile(FENCED.format("python"), re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(FENCED.format("text"), re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"!\[[^\]]*\]\(images/([^)\s]+\.png)\)")


def snippets(text: str) -> list[Block]:
    """The ```python blocks of a page."""
    return [
        Block(found[1], text.count("\n", 0, found.start(1)) + 1) for found in SNIPPET.finditer(text)
    ]


def outputs(text: str) -> list[str]:
    """The ```text blocks of a page."""
    return OUTPUT.findall(text)


def figures(text: str) -> list[str]:
    """Names of the pictures under images/ that a page shows."""
    return list(dict.fromkeys(FIGURE.findall(text)))
