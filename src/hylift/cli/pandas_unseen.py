"""pandas, hidden from PyArrow: it would load it, where it is installed, for nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

ASKING = ("hylift", "pyarrow")
"""Who asks where PyArrow does: it is compiled, and whoever called it seems to."""


class PandasUnseen:
    """A finder of modules that lets PyArrow find no pandas, and everybody else find it.

    PyArrow looks for it as soon as it makes an array, which takes a quarter of a second. No command
    has a data frame; where one writes NetCDF, xarray loads pandas for itself.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas" and _asking() in ASKING:
            raise ModuleNotFoundError("pandas is not needed here", name="pandas")
        return None


def _asking() -> str:
    """The package whose code runs the import."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name != __name__ and "importlib" not in name:
            return name.partition(".")[0]
        frame = frame.f_back
    return ""
