"""Better assignments by local search on the true log-density."""

from hylift.inference.search.polish import Polished, polish

__all__ = ["Polished", "polish"]
