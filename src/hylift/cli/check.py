"""`hylift check`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hylift.cli.model import Given, as_text, check_is_rules, read_graph
from hylift.cli.render import print_notes, progress_bar
from hylift.errors import UnsupportedError
from hylift.language import check, read_model
from hylift.words import counted

if TYPE_CHECKING:
    from hylift.inference.boundedness import Densities

MAX_SHOWN = 5
"""Densities that are listed before the rest is only counted."""


def run(model: Path, given: Given, *, rewrite: bool, bethe: bool) -> None:
    """Says what is wrong with a model, or how large its parts are; or writes it back, in order;
    or says whether its Bethe free energy is bounded below."""
    if bethe:
        if rewrite:
            raise UnsupportedError("--format and --bethe ask for different things: choose one")
        _run_bethe(model, given)
        return
    check_is_rules(model, "checked")
    if given != Given():
        raise UnsupportedError("--evidence, --closed and --unmatched go with --bethe")
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


def _run_bethe(model: Path, given: Given) -> None:
    """Grounds a model, and prints the certificate of its Bethe free energy."""
    from hylift.inference.boundedness import bethe_certificate

    with progress_bar(quiet=False) as progress:
        graph, notes = read_graph(model, given, progress)
    print_notes(notes)
    found = bethe_certificate(graph)
    verdict = {True: "bounded below", False: "not bounded below", None: "not known"}[found.holds]
    print(f"{as_text(model)}: Bethe free energy {verdict}")
    print(found.sentence)
    for violation in found.violations[1:]:
        print(f"Also, {violation}.")
    for reason in found.undecided if found.violations else found.undecided[1:]:
        print(f"Not known: {reason}.")
    if found.densities is not None:
        _print_densities(found.densities)


def _print_densities(densities: Densities) -> None:
    """A few of the densities g of the reals; discrete variables have uniform ones."""
    shown = densities.to_dict(MAX_SHOWN)
    if not shown:
        return
    print("Divided by these densities of the reals, and uniform ones of all states, the model is")
    print("bounded:")
    for name, density in shown.items():
        print(f"  {name}: {_text(density)}")
    rest = densities.num_reals - len(shown)
    if rest:
        print(f"  … and {counted(rest, 'real')} more")


def _text(density: Mapping[str, Any]) -> str:
    match density["kind"]:
        case "uniform":
            return f"uniform on [{density['lower']:g}, {density['upper']:g}]"
        case "gaussian":
            return f"Gaussian, mean {density['mean']:.4g}, variance {density['var']:.4g}"
    return f"exponential, rate {density['rate']:.4g}"
