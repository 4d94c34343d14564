"""Methods by the names that commands and races know them by."""

from __future__ import annotations

from collections.abc import Callable

from hylift.inference.exact import Exact
from hylift.inference.message import BP, EPBP, GaBP
from hylift.inference.method import Method
from hylift.inference.sampling import Gibbs
from hylift.inference.variational import BVI, NPVI, MeanField
from hylift.inference.walk import MaxWalkSAT

BY_NAME: dict[str, Callable[[], Method]] = {
    "exact": Exact,
    "mean-field": MeanField,
    "bvi": BVI,
    "npvi": NPVI,
    "bp": BP,
    "gabp": GaBP,
    "epbp": EPBP,
    "gibbs": Gibbs,
    "maxwalksat": MaxWalkSAT,
}
"""With the settings that they have by default."""
