"""Figures in a page, between two marks, where they are written anew."""

from __future__ import annotations

from hylift.errors import FormatError
from hylift.files import check_target, read_text, write_whole

BEGIN = "<!-- figures: python -m benchmarks methods --markdown docs/methods.md -->"
END = "<!-- end of figures -->"


def check_page(path: str) -> None:
    """Raises unless there is a page with a place for figures, before anything is measured."""
    check_target(path)
    _parts(path)


def rewrite(path: str, content: str) -> None:
    """Puts other figures in the place of those in the page."""
    before, after = _parts(path)
    text = f"{before}{BEGIN}\n\n{content}\n\n{END}{after}"
    write_whole(path, lambda stream: stream.write(text.encode()))


def _parts(path: str) -> tuple[str, str]:
    """The text before the figures, and that after them."""
    text = read_text(path)
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise FormatError(path, f"has no place for figures: the lines '{BEGIN}' and '{END}'")
    return before, after
