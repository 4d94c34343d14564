"""Results of runs that are kept, so that a page is run again only when something has changed."""

import hashlib
import json
import platform
import shutil
import tempfile
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from docs_build.runs import Block, Run, run

ROOT = Path(__file__).parents[1]
SOURCES = ("src/hylift", "examples/models", "docs_build")


class Cache:
    """Runs in a folder, under a digest of all that they depend on: the blocks, the sources of
    hylift, the models of the examples, Python, and every package that is installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._used: set[str] = set()
        self._surroundings = _surroundings()

    def run(self, blocks: Sequence[Block], path: Path) -> tuple[Run, bool]:
        """What the blocks did, and whether they were run for it just now."""
        text = json.dumps([self._surroundings, str(path), [block.code for block in blocks]])
        key = hashlib.sha256(text.encode()).hexdigest()
        self._used.add(key)
        kept = self._folder / key
        if kept.is_dir():
            return _read(kept), False
        result = run(blocks, path)
        _write(kept, result)
        return result, True

    def drop_others(self) -> None:
        """Removes what was not asked for."""
        for kept in self._folder.glob("*"):
            if kept.name not in self._used:
                shutil.rmtree(kept)


def _surroundings() -> str:
    digest = hashlib.sha256(platform.python_version().encode())
    for line in sorted(f"{one.name} {one.version}" for one in distributions()):
        digest.update(line.encode())
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _read(folder: Path) -> Run:
    printed, drawn = json.loads((folder / "blocks.json").read_text(encoding="utf-8"))
    pictures = {path.name: path.read_bytes() for path in folder.glob("*.png")}
    return Run(tuple(printed), tuple(tuple(names) for names in drawn), pictures)


def _write(folder: Path, result: Run) -> None:
    """All of it or nothing."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
    blocks = json.dumps([result.printed, result.drawn])
    (unfinished / "blocks.json").write_text(blocks, encoding="utf-8")
    for name, content in result.pictures.items():
        (unfinished / name).write_bytes(content)
    unfinished.rename(folder)
