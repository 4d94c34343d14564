"""`hylift check`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from hylift.cli.model import Given, as_text, check_is_rules, read_graph
from hylift.cli.outputs import CommandResult, Output, check_outputs, deliver
from hylift.cli.stderr import tell
from hylift.errors import ModelError, UnsupportedError
from hylift.language import Model, check, read_model
from hylift.language.report import Problem
from hylift.words import counted, printable

if TYPE_CHECKING:
    from hylift.proper.certificate import BetheCertificate, Densities

MAX_SHOWN = 5
"""Densities that are listed before the rest is only counted."""


def run(
    model: Path,
    *,
    rewrite: bool,
    bethe: bool,
    given: Given,
    output: str | None,
    quiet: bool,
) -> None:
    """Report problems of a model, or print it in canonical form, or certify its Bethe energy."""
    report = Output(output, "a report", (".json",), can_print=True)
    if rewrite and (bethe or output is not None):
        other = "--bethe" if bethe else "--output"
        raise UnsupportedError(f"--format and {other} ask for different things: choose one")
    check_outputs([report], given.read(model))
    if bethe:
        _run_bethe(model, given, report, quiet=quiet)
        return
    check_is_rules(model, "checked")
    if given != Given():
        raise UnsupportedError("--evidence, --closed, --only-rows and --unmatched go with --bethe")
    parsed, found = _read(model, report)
    if not quiet:
        for problem in found:
            tell(f"warning: {problem}")
    if rewrite:
        text = str(parsed)
        print(printable(text) if sys.stdout.isatty() else text, end="")
        return
    counts = _counts(parsed)
    parts = ", ".join(counted(count, what[:-1]) for what, count in counts.items())
    end = counted(len(found), "warning") if found else "no errors"
    answer = CommandResult(
        lambda out: out.print(f"{model}: {parts}; {end}", markup=False, highlight=False),
        lambda: _report(model, found, counts),
    )
    deliver(answer, report, quiet=quiet)


def _read(model: Path, report: Output) -> tuple[Model, Sequence[Problem]]:
    """The model and its warnings; its errors are reported before they are raised."""
    counts = {}
    try:
        parsed = read_model(model)
        counts = _counts(parsed)
        return parsed, check(parsed)
    except ModelError as error:
        found = error.problems or (Problem("error", str(error)),)
        content = _report(model, found, counts)
        deliver(CommandResult(lambda out: None, lambda: content), report, quiet=True)
        raise


def _counts(model: Model) -> dict[str, int]:
    return {
        "types": len(model.type_by_name),
        "predicates": len(model.predicates),
        "rules": len(model.rules),
    }


def _report(model: Path, found: Sequence[Problem], counts: Mapping[str, int]) -> dict[str, Any]:
    """The JSON of a check."""
    return {
        "model": as_text(model),
        **counts,
        "errors": [_placed(problem) for problem in found if problem.severity == "error"],
        "warnings": [_placed(problem) for problem in found if problem.severity == "warning"],
    }


def _placed(problem: Problem) -> dict[str, Any]:
    place = problem.place
    return {
        "file": None if place is None else as_text(place.source.name),
        "line": None if place is None else place.line,
        "column": None if place is None else place.column,
        "message": problem.message,
    }


def _run_bethe(model: Path, given: Given, report: Output, *, quiet: bool) -> None:
    """Grounds a model, and shows or writes the certificate of its Bethe free energy."""
    from hylift.proper.certificate import bethe_certificate

    graph, notes = read_graph(model, given, quiet=quiet)
    found = bethe_certificate(graph)
    answer = CommandResult(
        lambda out: _show_bethe(out, as_text(model), found),
        lambda: {"model": as_text(model), "bethe": found.to_dict(), "notes": list(notes)},
    )
    deliver(answer, report, quiet=quiet)


def _show_bethe(out: Console, model: str, found: BetheCertificate) -> None:
    verdict = {True: "bounded below", False: "not bounded below", None: "not known"}[found.holds]
    lines = [f"{model}: Bethe free energy {verdict}", found.sentence]
    lines += [f"Also, {violation}." for violation in found.violations[1:]]
    undecided = found.undecided if found.violations else found.undecided[1:]
    lines += [f"Not known: {reason}." for reason in undecided]
    if found.densities is not None:
        lines += _densities(found.densities)
    for line in lines:
        out.print(line, markup=False, highlight=False)


def _densities(densities: Densities) -> list[str]:
    """A few of the densities g of the reals; discrete variables have uniform ones."""
    shown = densities.to_dict(MAX_SHOWN)
    if not shown:
        return []
    lines = [
        "Divided by these densities of the reals, and uniform ones of all states, the model is",
        "bounded:",
    ]
    lines += [f"  {name}: {_text(density)}" for name, density in shown.items()]
    rest = densities.num_reals - len(shown)
    return [*lines, f"  … and {counted(rest, 'real')} more"] if rest else lines


def _text(density: Mapping[str, Any]) -> str:
    match density["kind"]:
        case "uniform":
            return f"uniform on [{density['lower']:g}, {density['upper']:g}]"
        case "gaussian":
            return f"Gaussian, mean {density['mean']:.4g}, variance {density['var']:.4g}"
    return f"exponential, rate {density['rate']:.4g}"
