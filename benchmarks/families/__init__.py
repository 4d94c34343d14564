"""Wrong answers, and wrong ones without a warning, on random models as practitioners write them."""

from benchmarks.families.run import run

__all__ = ["run"]
