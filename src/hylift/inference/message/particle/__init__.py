"""Belief propagation between particles of reals and states of discrete variables."""

from hylift.inference.message.particle.method import EPBP

__all__ = ["EPBP"]
