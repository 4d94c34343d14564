"""Gaussian models along time."""

from hylift.inference.filtering.filter import kalman_filter
from hylift.inference.filtering.filtered import Filtered

__all__ = ["Filtered", "kalman_filter"]
