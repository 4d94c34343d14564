"""`hylift plot`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hylift.cli import outputs
from hylift.cli.model import queried
from hylift.cli.render import progress_bar, tell_drawn
from hylift.errors import HyliftError, UnsupportedError, check_word
from hylift.plot import plot_convergence, plot_forest, plot_marginals
from hylift.plot.forest import MAX_ATOMS
from hylift.plot.marginals import MAX_PANELS
from hylift.posterior import Posterior
from hylift.words import counted, worded

KINDS = ("marginals", "forest", "convergence")


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """The atoms that a figure shows, and its kind."""

    kind: str
    ids: NDArray[np.int64]  # in the first posterior
    told: str = ""
    """Description of the atoms, where there is no room for all and the user has not chosen."""

    @classmethod
    def of(
        cls, posteriors: Mapping[str, Posterior], kind: str | None, query: Sequence[str]
    ) -> Chosen:
        """The atoms of the query; without one as many hidden ones as there is room for.

        Marginals are drawn where there is room for all of them, and else a forest. Of one that
        nobody has chosen atoms for, reals have the axis where there are any.
        """
        first = next(iter(posteriors.values()))
        ids = queried(first.variables, query, first.observed) if query else first.select()
        kind = kind or ("marginals" if len(ids) <= MAX_PANELS else "forest")
        if query:
            return cls(kind, ids)
        room = MAX_PANELS if kind == "marginals" else MAX_ATOMS
        reals = ids[first.variables.num_states[ids] == 0]
        if kind == "marginals" or not 0 < len(reals) < len(ids):
            some, told = ids, f"{len(ids):,} atoms"
        else:
            some, told = reals, f"{counted(len(reals), 'real')} among {len(ids):,} atoms"
        if len(some) > room:
            return cls(kind, some[:room], f"the first {room} of {told}")
        return cls(kind, some, f"the {told}" if len(some) < len(ids) else "")

    def names(self, results: Sequence[Path], posteriors: Mapping[str, Posterior]) -> list[str]:
        """Names of the atoms, which all posteriors must have."""
        first = next(iter(posteriors.values()))
        atoms: list[str] = first.variables.names.render(self.ids).to_pylist()
        for path, posterior in zip(results, posteriors.values(), strict=True):
            try:
                posterior.variables.names.ids(atoms)
            except HyliftError as error:
                raise UnsupportedError(worded(f"{path}: ", error.text)) from None
        return atoms


def run(
    results: Sequence[Path],
    *,
    kind: str | None,
    query: list[str] | None,
    sort: bool,
    output: Path | None,
    max_bytes: int | None,
    quiet: bool,
) -> None:
    """Draw saved posteriors into one figure."""
    if kind is not None:
        check_word("kind of figure", kind, KINDS)
    if sort and kind != "forest":
        raise UnsupportedError("--sort goes with --kind forest")
    if query and kind == "convergence":
        raise UnsupportedError("--query is not for --kind convergence, which draws no atoms")
    outputs.check_outputs([outputs.figure(output)], results)
    with progress_bar(quiet) as progress:
        posteriors = {}
        for number, (label, path) in enumerate(zip(_labels(results), results, strict=True)):
            progress(number / len(results), f"reading {path}")
            posteriors[label] = Posterior.load(path, max_bytes=max_bytes)
    chosen = None if kind == "convergence" else Chosen.of(posteriors, kind, query or ())
    kind = "convergence" if chosen is None else chosen.kind
    atoms = [] if chosen is None else chosen.names(results, posteriors)
    drawn = outputs.figure(output or _free(f"{results[0].stem}-{kind}.png"))
    outputs.check_outputs([drawn], results)
    # One alone needs no label.
    shown = posteriors if len(posteriors) > 1 else next(iter(posteriors.values()))
    draw: dict[str, outputs.Write] = {
        "marginals": lambda path: plot_marginals(shown, atoms, path=path),
        "forest": lambda path: plot_forest(shown, atoms, sort=sort, path=path),
        "convergence": lambda path: plot_convergence(shown, path=path),
    }
    if chosen is not None and chosen.told and not quiet:
        tell_drawn(chosen.told)
    nothing = outputs.CommandResult(lambda out: None)
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


def _free(name: str) -> Path:
    """The name, or where there is such a file the name with a number: what nobody has named is
    not replaced."""
    path = Path(name)
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return path if not path.exists() else next(one for one in numbered if not one.exists())
