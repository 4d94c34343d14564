"""Compiled kernels: made on first use, kept by Numba on disk."""

from __future__ import annotations

import functools
import logging
from pathlib import Path

logger = logging.getLogger("hylift")


@functools.cache
def announce_compilation() -> None:
    """Says, once a process, that kernels will be compiled now, if none are on disk yet."""
    from hylift.inference.exact.kernels.elimination import greedy

    cache = Path(greedy.stats.cache_path)
    if not any(cache.glob("elimination.greedy-*.nbi")):
        logger.warning(
            "hylift compiles its kernels on the first use after installation: "
            "this takes about half a minute, once."
        )
