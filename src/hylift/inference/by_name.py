"""Methods by the names that commands and races know them by."""

from __future__ import annotations

from hylift import inference
from hylift.inference.method import Method

CLASS = {
    "exact": "Exact",
    "mean-field": "MeanField",
    "bvi": "BVI",
    "npvi": "NPVI",
    "bp": "BP",
    "gabp": "GaBP",
    "epbp": "EPBP",
    "gibbs": "Gibbs",
    "maxwalksat": "MaxWalkSAT",
}
"""The classes of `hylift.inference`; only those that are used are imported."""


def method_by_name(name: str) -> Method:
    """The method with the settings that it has by default."""
    found: Method = getattr(inference, CLASS[name])()
    return found
