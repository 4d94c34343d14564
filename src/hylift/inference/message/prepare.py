"""What all message passing asks before it starts: fitting settings, and the graph to pass in."""

from __future__ import annotations

from typing import Any

from hylift.errors import UnsupportedError
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared, View
from hylift.inference.settings import check_whole, is_number, refuse_start


def view_of(name: str, prepared: Prepared, request: Request, *, merge: bool = False) -> View:
    """The graph of hidden variables, lifted and with nested factors merged where asked for.

    Raises where message passing has no such view.
    """
    if request.lift == "coarse-to-fine":
        raise UnsupportedError(
            f"{name} passes messages between classes whose members are alike, which those of "
            "coarse-to-fine lifting are not: use lift='exact' or lift='none'"
        )
    refuse_start(name, request.start)
    if merge:
        prepared = prepared.with_merged_factors()
    return prepared.view(is_lifted=request.lift == "exact")


def check_settings(damping: Any, max_steps: Any, tolerance: Any, merge_factors: Any) -> None:
    """Raises unless the settings that all message passing has make sense."""
    if not is_number(damping) or not 0 <= float(damping) < 1:
        raise UnsupportedError(
            f"damping is the share of its old value that a message keeps, at least 0 and below 1, "
            f"not {damping!r}"
        )
    check_whole("max_steps", max_steps)
    if not is_number(tolerance) or not 0 < float(tolerance) < 1:
        raise UnsupportedError(f"tolerance is a number between 0 and 1, not {tolerance!r}")
    if not isinstance(merge_factors, bool):
        raise UnsupportedError(f"merge_factors is True or False, not {merge_factors!r}")
