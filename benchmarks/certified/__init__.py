"""Exact inference with a certificate, where joint states would be exponentially many."""

from benchmarks.certified.run import run

__all__ = ["run"]
