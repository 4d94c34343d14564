"""A module imports hylift modules only from its own stage or an earlier one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

STAGES = [
    "lazy",
    "words",
    "errors",
    "files",
    "archive",
    "progress",
    "compilation",
    "numerics",
    "potentials",
    "graph",
    "rewrite",
    "formats",
    "language",
    "grounding",
    "lifting",
    "proper",
]
STAGES += ["components", "posterior", "inference", "racing", "plot", "cli"]
TOP_LEVEL = ["__init__", "__main__", "warm_up"]  # may import every stage

SRC = Path(__file__).parents[1] / "src"
FILES = [path.relative_to(SRC) for path in sorted((SRC / "hylift").rglob("*.py"))]


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything the file imports, inside functions too."""
    for node in ast.walk(ast.parse((SRC / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = file.parts[: -node.level] if node.level else ()  # one dot: the file's folder
            source = ".".join([*base, node.module] if node.module else base)
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def rank(stage: str) -> int:
    """Place in the order; the top level, `import hylift` included, stands with the last stage."""
    return STAGES.index(stage) if stage in STAGES else len(STAGES) - 1


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_module_imports_only_from_its_own_stage_or_an_earlier_one(file: Path) -> None:
    stage = file.with_suffix("").parts[1]
    assert stage in STAGES + TOP_LEVEL, f"src/{file}: '{stage}' has no place in {STAGES}"

    too_late = []
    for line, name in imports(file):
        package, _, rest = name.partition(".")
        if package == "hylift" and rank(rest.partition(".")[0]) > rank(stage):
            too_late.append(f"src/{file}:{line}: stage '{stage}' may not import {name}")

    assert not too_late, "\n".join(too_late)
