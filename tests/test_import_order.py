"""A module imports hylift modules only from its own stage or an earlier one."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

STAGES = [
    "lazy", "words", "errors", "files", "archive", "progress", "numerics",
    "potentials", "graph", "rewrite", "formats", "language", "grounding", "lifting", "proper",
    "components", "posterior", "inference", "racing", "plot", "cli",
]  # fmt: skip
INFERENCE = [
    "capabilities", "settings", "prepared", "centring", "checkpoint", "held",
    "method", "control", "loop", "finish", "restored", "started", "terms", "curvature",
    "local", "search", "exact",
    "sampling", "smc", "message", "expectation", "variational", "bounds", "filtering",
    "solve", "attempts", "checking", "choice", "run",
]  # fmt: skip
"""Modules and folders of `inference/`."""
TOP_LEVEL = ["__init__", "__main__", "warm_up"]
"""May import every stage."""

SRC = Path(__file__).parents[1] / "src"


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything the file imports, inside functions too."""
    for node in ast.walk(ast.parse((SRC / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = file.parts[: -node.level] if node.level else ()  # one dot: the file's folder
            source = ".".join([*base, node.module] if node.module else base)
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def offenders(package: str, order: Sequence[str], free: Sequence[str]) -> list[str]:
    """Imports of a later part of a package; the parts are its modules and folders.

    The package itself, imported as a whole, counts as its last part.
    """
    depth = len(package.split("."))
    found = []
    for path in sorted((SRC / package.replace(".", "/")).rglob("*.py")):
        file = path.relative_to(SRC)
        own = file.with_suffix("").parts[depth]
        if own in free:
            continue
        if own not in order:
            found.append(f"src/{file}: '{own}' has no place in the order of {package}")
            continue
        for line, name in imports(file):
            if f"{name}.".startswith(f"{package}."):
                part = f"{name}.".split(".")[depth]
                rank = order.index(part) if part in order else len(order) - 1
                if rank > order.index(own):
                    found.append(f"src/{file}:{line}: '{own}' may not import {name}")
    return found


def test_a_stage_imports_only_earlier_ones() -> None:
    found = offenders("hylift", STAGES, TOP_LEVEL)

    assert not found, "\n".join(found)


def test_a_part_of_inference_imports_only_earlier_ones() -> None:
    found = offenders("hylift.inference", INFERENCE, ["__init__"])

    assert not found, "\n".join(found)
