"""The most probable assignment: tables where they fit, and what to do where they do not."""

from hylift.inference.exact.maximum.search import maximise

__all__ = ["maximise"]
