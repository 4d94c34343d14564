"""`hylift plot`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hylift.cli import outputs
from hylift.cli.method import check_word
from hylift.cli.model import queried
from hylift.cli.render import progress_bar
from hylift.errors import HyliftError, UnsupportedError
from hylift.plot import plot_convergence, plot_forest, plot_marginals
from hylift.plot.marginals import MAX_PANELS
from hylift.posterior import Posterior

KINDS = ("marginals", "forest", "convergence")


@dataclass(frozen=True, slots=True)
class PlotOptions:
    """What the options of the command say about the figure."""

    kind: str | None = None
    """None: marginals where there is room for them, and else a forest."""
    query: Sequence[str] = ()
    sort: bool = False

    def __post_init__(self) -> None:
        """Finds all that is wrong with the options, before any work."""
        if self.kind is not None:
            check_word("kind of figure", self.kind, KINDS)
        if self.sort and self.kind != "forest":
            raise UnsupportedError("--sort goes with --kind forest")
        if self.query and self.kind == "convergence":
            raise UnsupportedError("--query is not for --kind convergence, which draws no atoms")


def run(results: Sequence[Path], *, how: PlotOptions, output: Path | None, quiet: bool) -> None:
    """Draws posteriors that were saved into one figure."""
    outputs.check_outputs([outputs.figure(output)], results)
    with progress_bar(quiet) as progress:
        posteriors = {}
        for number, (label, path) in enumerate(zip(_labels(results), results, strict=True)):
            progress(number / len(results), f"reading {path}")
            posteriors[label] = Posterior.load(path)
        atoms = _atoms(results, posteriors, how.query)
    kind = how.kind or _fitting(posteriors, atoms)
    drawn = outputs.figure(output or _free(f"{results[0].stem}-{kind}.png"))
    outputs.check_outputs([drawn], results)
    # One alone needs no label.
    shown = posteriors if len(posteriors) > 1 else next(iter(posteriors.values()))
    draw: dict[str, outputs.Write] = {
        "marginals": lambda path: plot_marginals(shown, atoms, path=path),
        "forest": lambda path: plot_forest(shown, atoms, sort=how.sort, path=path),
        "convergence": lambda path: plot_convergence(shown, path=path),
    }
    nothing = outputs.Answer(lambda out: None)
    outputs.deliver(nothing, outputs.figure(None), [(drawn, draw[kind])], quiet=quiet)


def _labels(results: Sequence[Path]) -> list[str]:
    """The stems of the files; where several are equal, with as much of their folders as tells
    them apart, and of one file that is named twice with a number."""
    labels = [path.stem for path in results]
    if len(set(labels)) < len(labels):
        labels = [str(path.with_suffix("")) for path in results]
    seen: Counter[str] = Counter()
    unique = []
    for label in labels:
        seen[label] += 1
        unique.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return unique


def _atoms(
    results: Sequence[Path], posteriors: dict[str, Posterior], query: Sequence[str]
) -> list[str] | None:
    """Names of what is asked for, which all posteriors must have; None: all that is hidden."""
    first = next(iter(posteriors.values()))
    if not query:
        return None
    ids = queried(first.variables, query)
    atoms: list[str] = first.variables.names.render(ids).to_pylist()
    for path, posterior in zip(results, posteriors.values(), strict=True):
        try:
            posterior.variables.names.ids(atoms)
        except HyliftError as error:
            raise UnsupportedError(f"{path}: {error}") from None
    return atoms


def _fitting(posteriors: dict[str, Posterior], atoms: list[str] | None) -> str:
    """Marginals where there is room for all of them, and else a forest."""
    first = next(iter(posteriors.values()))
    return "marginals" if len(first.select(atoms)) <= MAX_PANELS else "forest"


def _free(name: str) -> Path:
    """The name, or where there is such a file the name with a number: what nobody has named is
    not replaced."""
    path = Path(name)
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return path if not path.exists() else next(one for one in numbered if not one.exists())
