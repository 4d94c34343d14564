"""Compiled kernels: made on first use, kept by Numba on disk."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Any

logger = logging.getLogger("hylift")


@functools.cache
def announce_compilation(kernel: Any) -> None:
    """Says, once a process, that kernels will be compiled now, if this one is not on disk yet."""
    cache, function = Path(kernel.stats.cache_path), kernel.py_func
    stem = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
    if not any(cache.glob(f"{stem}-*.nbi")):
        _say()


@functools.cache
def _say() -> None:
    logger.warning(
        "hylift compiles its kernels on the first use after installation: "
        "this takes up to a minute or two, once."
    )
