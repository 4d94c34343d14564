"""Packages that hylift works without, imported when they are asked for."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from hylift.errors import UnsupportedError

PROPER = {"arviz": "ArviZ", "xarray": "xarray", "pandas": "pandas", "polars": "Polars"}
"""Packages, by the name they give themselves."""
EXTRA = {"xarray": "arviz"}
"""Where it has another name than the package."""


def extra(package: str) -> Any:
    """The package, or an error that says how to install it."""
    try:
        with warnings.catch_warnings():
            # ArviZ announces its next major version, once a day.
            warnings.simplefilter("ignore", FutureWarning)
            return importlib.import_module(package)
    except ImportError:
        raise UnsupportedError(
            f"this needs {PROPER[package]}, which is not installed: install the extra "
            f"'{EXTRA.get(package, package)}' of hylift, or the package itself"
        ) from None
