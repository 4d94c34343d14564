"""What the user of a benchmark chooses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "HYLIFT_DATA"
"""The environment variable that names a folder of published data."""


def named_data() -> Path | None:
    """The folder of published data that the environment names, if it does."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


@dataclass(frozen=True, slots=True)
class Setting:
    """Where published data are, and where tables go beside the screen."""

    data: Path | None = None
    markdown: str | None = None
    """A page whose figures are written anew, or '-' for Markdown on the screen."""
    methods: tuple[str, ...] = ()
    """Of 'families'; by default all."""
    families: tuple[str, ...] = ()
    models: int = 120
    first: int = 0
    """The number of the first model."""
    lists_failures: bool = False
    records: Path | None = None
    """A folder in which 'calibration' keeps its records; by default it keeps none."""

    def published(self, name: str) -> Path | None:
        """A folder of published data; where there is none, says so."""
        if self.data is None:
            print(f"skipped: needs published data; name their folder with --data or {VARIABLE}")
            return None
        folder = self.data / name
        if not folder.is_dir():
            print(f"skipped: there is no data folder {folder}")
            return None
        return folder
