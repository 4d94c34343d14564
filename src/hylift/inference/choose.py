"""Default method selection."""

from __future__ import annotations

from hylift.errors import IntractableError, UnsupportedError
from hylift.inference.exact import Exact
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.variational import BVI
from hylift.posterior import Posterior
from hylift.words import worded

CHEAP_ENTRIES = 2**24
"""Largest table of exact inference that is cheap: about a second of work."""
CHEAP_FACTORS = 200_000
"""Factors of which exact inference is tried without being asked for."""
METHOD = BVI(components=3, restarts=3, tolerance=1e-5)
"""The method where exact inference is not cheap. Tighter settings change marginals little, and
take several times as long."""


def choose_and_solve(prepared: Prepared, request: Request) -> Posterior:
    """The posterior by exact inference where it is cheap, else by BVI, with a note that says so."""
    refused = _why_not_exact(prepared, request)
    if refused is None:
        try:
            posterior = Exact(max_entries=CHEAP_ENTRIES).solve(prepared, request)
        except (IntractableError, UnsupportedError) as error:
            refused = error.text
        else:
            return posterior.with_note("Exact inference was chosen, because it is cheap here.")
    return METHOD.solve(prepared, request).with_note(
        worded(f"{METHOD.name} was chosen, because exact inference is not cheap here: ", refused)
    )


def _why_not_exact(prepared: Prepared, request: Request) -> str | None:
    graph = prepared.source
    if request.start is not None:
        return "an earlier posterior is given to start from."
    if request.callback is not None:
        return "a callback is given, and exact inference has no steps."
    if (graph.variables.multiplicity != 1).any():
        return "the graph is lifted."
    if graph.num_factors > CHEAP_FACTORS:
        return f"the graph has {graph.num_factors:,} factors, more than {CHEAP_FACTORS:,}."
    return None
