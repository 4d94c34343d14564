"""Checks of the numbers that `poisson` is about, which are observed counts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hylift.errors import EvidenceError
from hylift.graph import Evidence, FactorGroup, Variables
from hylift.language.lowering.formula import Formula
from hylift.language.syntax import Atom, Density
from hylift.language.text.formatter import shown
from hylift.language.walk import atoms, nodes
from hylift.potentials import Function
from hylift.words import Wording, worded


def check_counts(groups: Iterable[FactorGroup], evidence: Evidence, variables: Variables) -> None:
    """Raise if the value of a `poisson` is hidden, or is no count."""
    for group in groups:
        formula = group.potential.log_potential if isinstance(group.potential, Function) else None
        if not isinstance(formula, Formula):
            continue
        for node in nodes(formula.formula):
            if isinstance(node, Density) and node.name == "poisson":
                for atom in atoms(node.value):
                    _check(node, atom, group, formula, evidence, variables)


def _check(
    node: Density,
    atom: Atom,
    group: FactorGroup,
    formula: Formula,
    evidence: Evidence,
    variables: Variables,
) -> None:
    source = dict(formula.sources)[atom]
    if source.slot is None or not source.is_real:
        return
    value = np.full(len(variables), np.nan)
    value[evidence.variable[evidence.is_hard]] = evidence.value[evidence.is_hard]
    ids = group.scope[:, source.slot]
    stated = value[ids]
    if np.isnan(stated).any():
        hidden = variables.names[int(ids[np.argmax(np.isnan(stated))])]
        name = atom.predicate
        raise EvidenceError(
            f"'{shown(node)}' is about an observed count, but {hidden} is hidden",
            worded(
                "give its value, without an error, or leave its row out and pass ",
                Wording(f"only_rows=['{name}']", f"--only-rows {name}"),
                ", so that groundings without a row do not exist",
            ),
        )
    wrong = (stated < 0) | (stated != np.floor(stated))
    if node.value == atom and wrong.any():
        at = int(np.argmax(wrong))
        raise EvidenceError(
            f"{variables.names[int(ids[at])]} is {stated[at]:g}, but the value of "
            f"'{shown(node)}' is a count: 0, 1, 2, …"
        )
