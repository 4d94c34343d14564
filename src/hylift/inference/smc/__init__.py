"""Sequential Monte Carlo over discrete states, with the reals integrated out."""

from hylift.inference.smc.method import SMC

__all__ = ["SMC"]
