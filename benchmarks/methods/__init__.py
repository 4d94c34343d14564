"""Which method for which model: time and accuracy of all of them, on models of every kind."""

from benchmarks.methods.run import run

__all__ = ["run"]
