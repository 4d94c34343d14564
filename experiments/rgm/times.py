"""What lifting does to times, on the graph of the paper and on larger ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import hylift as hl
from experiments import measure
from experiments.instances import rgm
from experiments.instances.instance import Instance
from experiments.measure import Run
from experiments.report import Speed
from hylift.inference import Lift, Method

SHARE = 0.2
"""Observed in Figure 3, and wherever time is measured."""

EARLIER = hl.BVI(1, optimiser=measure.ADAM)
"""The paper's optimiser, with one component."""
FIRST_STEPS = hl.BVI(3, max_steps=10)
"""As many with each of two quadratures, after 20 that tell starts apart."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many markets and banks there are."""

    num_markets: int = rgm.NUM_MARKETS
    num_banks: int = rgm.NUM_BANKS

    def __str__(self) -> str:
        return f"{self.num_markets:,} × {self.num_banks}"

    def instance(self, seed: int, share: float) -> Instance:
        return rgm.generated(seed, share, num_markets=self.num_markets, num_banks=self.num_banks)


@dataclass(frozen=True, slots=True)
class Case:
    """A method that is timed on a graph of some size."""

    size: Size
    name: str
    method: Method
    lifts: tuple[Lift, ...] = measure.LIFTS
    from_prior: bool = False
    """Whether it starts from the answer without evidence. Otherwise one product takes no steps, as
    the best one is known in closed form."""


PAPERS, MARKETS, BANKS = Size(), Size(2_000, 5), Size(400, 25)
ADAM = "BVI(1), Adam"
CASES = (
    Case(PAPERS, ADAM, EARLIER, from_prior=True),
    Case(PAPERS, "BVI(1)", hl.BVI(1)),
    Case(PAPERS, "NPVI(1)", hl.NPVI(1)),
    Case(PAPERS, "NPVI(3)", hl.NPVI(3)),
    Case(PAPERS, "BVI(3)", hl.BVI(3)),
    Case(MARKETS, ADAM, EARLIER, from_prior=True),
    Case(MARKETS, "BVI(1)", hl.BVI(1)),
    Case(MARKETS, "NPVI(3)", hl.NPVI(3)),
    Case(MARKETS, "BVI(3), 40 steps", FIRST_STEPS, ("none", "exact")),
    Case(BANKS, "BVI(1)", hl.BVI(1)),
    Case(BANKS, "NPVI(3)", hl.NPVI(3)),
)


Runs = Mapping[Lift, Run]
"""Of one case, with each kind of lifting."""


def timed(case: Case, count: int) -> Runs:
    """The method with each kind of lifting."""
    graph = case.size.instance(0, SHARE).graph
    start = None
    if case.from_prior:
        start = hl.infer(case.size.instance(0, 0.0).graph, hl.BVI(1))
    return measure.in_turn(graph, case.method, case.lifts, num_timed=count, start=start)


def notes_on_times(speeds: Mapping[Case, Speed]) -> list[str]:
    if not speeds:
        return []
    notes = [
        f"Times and pictures: generated evidence on {100 * SHARE:.0f} % of the variables, as in "
        "the paper's Figure 3 (the published files have less); sizes are markets × banks, "
        f"{PAPERS} in the paper.",
    ]
    for case, speed in speeds.items():
        if case.name == ADAM and speed.by_coarseness is not None:
            notes.append(
                f"'{ADAM}', {case.size}: coarse to fine gets near the end "
                f"{speed.by_coarseness:.3g} times as fast as exact lifting here; in the "
                "paper's Figure 3 it is faster."
            )
    if any(case.from_prior for case in speeds):
        notes.append(
            f"'{ADAM}': the paper's optimiser, from the answer without evidence. Elsewhere K = 1 "
            "takes no steps but solves a linear system, where coarse to fine has nothing to save."
        )
        notes.append(
            "The paper's sawtooth is gone: the objective of a coarse graph is that of the ground "
            "graph with the members of each class alike, so no division of evidence raises it."
        )
    if any(case.method == FIRST_STEPS for case in speeds):
        notes.append(
            "'BVI(3), 40 steps': its first steps alone; to the end it takes too long on the ground "
            "graph."
        )
    return notes


def curves(found: Mapping[Case, Runs]) -> list[dict[str, Any]]:
    """The runs of all cases, step by step."""
    return [
        step
        for case, runs in found.items()
        for step in measure.curves(str(case.size), case.name, runs)
    ]


def runs_of(found: Mapping[Case, Runs], size: Size, name: str) -> list[Run]:
    """Of a case, with each kind of lifting; none if it was not run."""
    return [
        each
        for case, runs in found.items()
        if case.size == size and case.name == name
        for each in runs.values()
    ]
