"""Local search for the most probable assignment: polish for all methods, and MaxWalkSAT."""

from hylift.inference.search.polish import Polished, polish

__all__ = ["Polished", "polish"]
