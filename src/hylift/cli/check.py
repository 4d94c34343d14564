"""`hylift check`."""

from __future__ import annotations

import sys
from pathlib import Path

from hylift.cli.model import check_is_rules
from hylift.language import check, read_model
from hylift.words import counted


def run(model: Path, *, rewrite: bool) -> None:
    """Says what is wrong with a model, or how large its parts are; or writes it back, in order."""
    check_is_rules(model, "checked")
    parsed = read_model(model)
    warnings = check(parsed)
    for warning in warnings:
        print(f"hylift: warning: {warning}", file=sys.stderr)
    if rewrite:
        print(parsed, end="")
        return
    counts = (
        (len(parsed.type_by_name), "type"),
        (len(parsed.predicates), "predicate"),
        (len(parsed.rules), "rule"),
    )
    parts = ", ".join(counted(count, what) for count, what in counts)
    found = counted(len(warnings), "warning") if warnings else "no errors"
    print(f"{model}: {parts}; {found}")
