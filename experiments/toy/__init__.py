"""The toy hybrid MLN: Table 1 and Figure 1."""

from experiments.toy.experiment import run

__all__ = ["run"]
