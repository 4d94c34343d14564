"""What the user of an experiment chooses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.instances import Variant
from hylift.progress import Progress, part_of, silent


@dataclass(frozen=True, slots=True)
class Setting:
    """Where evidence comes from, and how much work is done."""

    data: Path | None = None
    """Folder of the published data; without one evidence is generated."""
    quick: bool = False
    """Fewer repetitions; nothing else changes."""
    variants: tuple[Variant, ...] = ("paper", "clean")
    progress: Progress = silent

    @property
    def num_seeds(self) -> int:
        """Of random starts, and of generated evidence."""
        return 5

    @property
    def num_timed(self) -> int:
        """Runs of which the median time is taken."""
        return 3 if self.quick else 9

    @property
    def source(self) -> Literal["published", "generated"]:
        return "generated" if self.data is None else "published"

    def part(self, name: str, number: int, total: int) -> Progress:
        """The progress of one of several pieces of work, as a part of all."""
        return part_of(self.progress, name, number, total)
