"""What the user of a benchmark chooses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DATA = Path(os.environ.get("HYLIFT_DATA", "../shared/data"))


@dataclass(frozen=True, slots=True)
class Setting:
    """Where published data are, and where tables go beside the screen."""

    data: Path = DATA
    markdown: str | None = None
    """A page whose figures are written anew, or '-' for Markdown on the screen."""

    def has(self, folder: str) -> bool:
        """Whether there is a folder of published data; says so if not."""
        path = self.data / folder
        if not path.is_dir():
            print(f"skipped: there is no data folder {path}; name one with --data, or HYLIFT_DATA")
        return path.is_dir()
