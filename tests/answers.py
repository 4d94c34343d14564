"""Answers as most tests ask for them."""

from __future__ import annotations

import functools

import hylift.inference
from hylift.posterior import Posterior

infer = functools.partial(hylift.inference.infer, check=False)
"""Without the quick check of the answer, which tests in `inference/checking` look at: it takes much
longer than small models take otherwise."""


def log_z(posterior: Posterior) -> float:
    assert posterior.log_partition is not None
    return posterior.log_partition.value
