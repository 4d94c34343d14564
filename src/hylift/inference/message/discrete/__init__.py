"""Belief propagation between discrete variables."""

from hylift.inference.message.discrete.method import BP

__all__ = ["BP"]
