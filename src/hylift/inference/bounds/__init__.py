"""Certified bounds on log Z where exact inference is too wide."""

from hylift.inference.bounds.method import MiniBuckets as MiniBuckets

__all__ = ["MiniBuckets"]
