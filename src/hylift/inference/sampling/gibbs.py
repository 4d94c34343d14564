"""Gibbs sampling: discrete variables one at a time, reals in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.inference.control import Control
from hylift.inference.finish import Answer, finish
from hylift.inference.method import Request
from hylift.inference.prepared import Prepared
from hylift.inference.sampling.chains import Chains, Layout
from hylift.inference.sampling.groups import correlated, state_groups
from hylift.inference.sampling.marginals import (
    BATCHES,
    Recorded,
    check_bounds,
    room_to_warm_up,
)
from hylift.inference.sampling.smoothed import smoothed
from hylift.inference.sampling.starts import ROUNDS, dispersed
from hylift.inference.search import polish
from hylift.inference.settings import check_ground, check_whole, refuse_start
from hylift.posterior import Assignment, Mixture, Posterior, Result
from hylift.posterior.draws import Draws
from hylift.posterior.marginals import Batches
from hylift.posterior.mixing import Diagnostics, diagnosed
from hylift.rewrite.kinds import Kinds
from hylift.words import counted, doubt, listed, option

FloatArray = NDArray[np.float64]

MOST_STORED = 1 << 26
"""Numbers of eight bytes that are stored of all draws."""

LEAST_DRAWS = 4
"""Of a chain, even where time has run out."""

MIXED, HOPELESS = 1.02, 1.3
"""R-hat below which chains agree, and above which more draws would not help."""

LONG = 250_000_000
"""Nanoseconds, about and times `longer`, after which chains do not go on by themselves."""

LEAST_ESS, MOST_SD_ERROR = 400, 0.1
"""Effective draws that make a probability certain to .025, and the relative error of a deviation
that is small enough."""

SURE, SURE_MEAN, SURE_STD = 0.018, 0.09, 0.08
"""Standard errors of a probability, of a mean in deviations, and of a deviation relative to it,
that are small enough however few draws are effective."""

COARSE_SHARE = 0.01
"""Of a marginal that may be a histogram before a note says so."""

ENDED_BY: dict[Result | None, str] = {
    "stopped": "The callback ended it",
    "interrupted": "It was interrupted",
}


@dataclass(frozen=True, slots=True)
class Gibbs:
    """Draws from the posterior of a ground graph.

    Every sweep draws each discrete variable given all else, then all reals at once given the
    states, but for reals of functions, which are drawn by slices; some sweeps draw small groups of
    neighbours, and the reals near them, as one. Marginals are averages of these conditional
    distributions, or smoothed draws for reals of functions; `Posterior.draws` has what was drawn
    and the error of each mean. There is no log Z.
    """

    chains: int = 4
    """Independent runs from random starts: where they disagree, none is to be trusted."""
    draws: int = 1000
    """Of each chain."""
    warm_up: int = 500
    """Sweeps of each chain before its first draw."""
    thin: int = 1
    """Sweeps from one draw to the next."""
    longer: int = 8
    """Times as many draws that chains make at most, where they have not mixed before, but look as
    if they would. As many as asked for are stored; marginals use all."""

    def __post_init__(self) -> None:
        check_whole("chains", self.chains)
        check_whole("draws", self.draws, LEAST_DRAWS)
        check_whole("warm_up", self.warm_up)
        check_whole("thin", self.thin)
        check_whole("longer", self.longer)

    @property
    def name(self) -> str:
        return "Gibbs"

    def solve(self, prepared: Prepared, request: Request) -> Posterior:
        refuse_start(self.name, request.start)
        control = Control(request, "energy")
        closed = prepared.ground
        check_ground("Gibbs needs a ground graph", closed)
        check_bounds(closed.variables)
        control.enter_level(closed.num_variables)
        run = _Sampled.of(self, closed, request, control)
        variables = prepared.source.variables
        draws = Draws(variables, prepared.hidden, run.values, None, *run.errors)
        mixing = draws.diagnostics()
        doubts = _doubts(draws, mixing, run)

        def find(
            mixture: Mixture | None = None,
            seconds: float | None = None,
            go_on: Callable[[], bool] | None = None,
        ) -> Assignment:
            """From the best assignment that each chain has seen."""
            found = polish(
                closed, run.best, seconds=seconds, go_on=go_on, progress=request.progress
            )
            return prepared.assignment(found.values, -found.log_density)

        answer = Answer(
            control.ended or ("max_steps" if doubts else "converged"),
            run.energy,
            (*_mixing_notes(draws, mixing), *doubts, *run.notes(self, request, control)),
            find,
            marginals=run.batches(),
            draws=draws,
            steps=run.num_warm + self.thin * run.num_draws,
        )
        return finish(self.name, prepared, request, control, answer)


@dataclass(frozen=True, slots=True, eq=False)
class _Sampled:
    """The results of all chains."""

    recorded: Recorded
    values: NDArray[np.float64]  # (chain, stored draw, variable)
    best: NDArray[np.float64]  # (chain, variable)
    energy: float
    num_warm: int
    num_draws: int
    every: int
    """One in so many draws is stored."""
    errors: tuple[FloatArray, FloatArray]  # (variable,): see `Recorded.errors`
    is_connected: bool
    """True if draws are known to lead around all hard constraints."""

    @classmethod
    def of(cls, method: Gibbs, graph: FactorGraph, request: Request, control: Control) -> _Sampled:
        kinds = Kinds.of(graph)
        count = method.chains
        *seeds, own = np.random.SeedSequence(request.seed).spawn((ROUNDS + 1) * count + 1)
        layout = Layout.of(kinds, count, own)
        terms, blocks = layout.terms, layout.blocks
        total = method.warm_up + method.draws
        none = Chains(graph, layout, control, total, method.thin, [])
        control.check_fits(2 * LEAST_DRAWS * 1e-9 * none.work * count, "Gibbs")
        starts = dispersed(graph, layout, seeds[count:], count, control)
        chains = Chains.at(starts, seeds[:count], graph, layout, control, total, method.thin)
        room = MOST_STORED // max(method.chains * graph.num_variables, 1)
        room = min(max(room, LEAST_DRAWS), method.draws)
        values = np.empty((method.chains, room, graph.num_variables))
        warm = [
            room_to_warm_up(stored, terms.num_scores, blocks, method.chains) for stored in values
        ]
        num_warm = chains.warm_up(warm, method.warm_up, min(LEAST_DRAWS, method.warm_up))
        # Where there are too many, draws must show which ones matter.
        if not len(layout.together[0]) and control.should_continue():
            seen = np.concatenate(list(values[:, : min(num_warm, room)]))
            together = correlated(terms, blocks, seen)
            chains.regroup(state_groups(terms, blocks, layout.tied, together))
        recorded = Recorded.room(
            graph.variables, terms, blocks, chains.cut_components(), warm, values, 2 * BATCHES
        )
        num_states = graph.variables.num_states

        def go_on(stored: int, made: int, length: int) -> bool:
            """True if chains have not mixed, but look as if they would, and there is time."""
            if 2 * made > method.longer * method.draws:
                return False
            if request.seconds is None and made * chains.work > LONG * method.longer:
                return False
            if request.seconds is not None and 2 * control.elapsed - began > request.seconds:
                return False
            own = values[:, :stored]
            errors = recorded.errors(made // length, length)
            some = ~is_sure(*errors, own.std(axis=(0, 1)), num_states)
            mixing = Diagnostics(*diagnosed(own[..., some], num_states[some]))
            is_done = has_mixed(mixing) and np.isnan(errors[0][some]).all()
            return not is_done and bool(mixing.r_hat.max(initial=1.0) < HOPELESS)

        began = control.elapsed
        most = method.draws * max(method.longer, 1)
        num_draws, every, length = chains.draw(
            recorded.records, method.draws, most, LEAST_DRAWS, go_on
        )
        return cls(
            recorded,
            values[:, : -(-num_draws // every)],
            chains.best,
            chains.energy,
            num_warm,
            num_draws,
            every,
            recorded.errors(num_draws // length, length),
            layout.is_connected,
        )

    def batches(self) -> Batches:
        """Distributions of all variables, with the ids of those they are about."""
        record, variables = self.recorded.terms.variable, self.recorded.variables
        given = np.flatnonzero((record["num_states"] == 0) & (record["movable"] == 0))
        values = np.concatenate(list(self.values[..., given]))
        return [*self.recorded.batches(), *smoothed(variables, given, values)]

    def notes(self, method: Gibbs, request: Request, control: Control) -> list[str]:
        notes = []
        if self.num_warm < method.warm_up:
            why = ENDED_BY.get(control.ended, "Time ran out")
            notes.append(
                doubt(
                    f"{why} after {counted(self.num_warm, 'sweep')} of {method.warm_up:,} to "
                    "warm up: the draws may still depend on where the chains began."
                )
            )
        if self.every > 1:
            notes.append(
                f"One in {self.every:,} draws is stored; the marginals use all "
                f"{self.num_draws:,} of each chain."
            )
        coarse = self.recorded.coarse_share
        if coarse.max(initial=0.0) > COARSE_SHARE:
            steps = self.recorded.grid_step[np.argsort(-coarse, kind="stable")]
            name = self.recorded.variables.names[int(self.recorded.blocks.variable[steps[0]])]
            notes.append(
                f"Densities of {counted(int((coarse > COARSE_SHARE).sum()), 'real')}, such as "
                f"'{name}', are narrower than the panels of a grid: their marginals are "
                "histograms, exact to the width of a panel."
            )
        if "logz" in request.tasks:
            notes.append("Gibbs does not estimate log Z.")
        return notes


def has_mixed(mixing: Diagnostics) -> bool:
    """Return True if chains agree, and their draws are enough to judge all variables by."""
    is_agreed = mixing.r_hat.max(initial=1.0) < MIXED
    is_precise = mixing.sd_error.max(initial=0.0) <= MOST_SD_ERROR
    return bool(is_agreed and is_precise and mixing.ess.min(initial=np.inf) >= LEAST_ESS)


def is_sure(
    error: FloatArray, std_error: FloatArray, sd: FloatArray, num_states: NDArray[Any]
) -> NDArray[np.bool_]:
    """(variable,): True where the errors of a marginal, as of `Recorded.errors`, are small: chains
    then agree about it, whatever R-hat may be of one of many variables by chance.

    sd: (variable,), of the draws.
    """
    most = np.where(num_states > 0, SURE, SURE_MEAN * sd)
    return np.asarray((error <= most) & (std_error <= SURE_STD))


def _mixing_notes(draws: Draws, mixing: Diagnostics) -> list[str]:
    """The number of draws, and how far to trust them."""
    num_chains, num_draws, count = draws.values.shape
    notes = [f"{counted(num_chains, 'chain')} of {num_draws:,} draws each."]
    if not count:
        return notes
    names, worst = draws.variables.names, int(np.argmax(mixing.r_hat))
    is_real = draws.variables.num_states[draws.ids] == 0
    errors = []
    for kind, unit, has, size in (
        ("probability", "", ~is_real, mixing.mcse),
        ("mean", " deviations", is_real, mixing.mcse / np.maximum(mixing.sd, np.finfo(float).tiny)),
    ):
        if has.any():
            at = int(np.argmax(np.where(has, size, -1.0)))
            errors.append(
                f"of a {kind} at most {size[at]:.2g}{unit} ('{names[int(draws.ids[at])]}')"
            )
    notes.append(
        f"R-hat is at most {mixing.r_hat[worst]:.3f} ('{names[int(draws.ids[worst])]}'), the "
        f"effective number of draws at least {mixing.ess.min():,.0f}, and the standard error "
        f"{listed(errors)}."
    )
    return notes


def _doubts(draws: Draws, mixing: Diagnostics, run: _Sampled) -> list[str]:
    """Reasons not to trust the draws, however they look."""
    doubts: list[str] = []
    unsure = ~is_sure(*run.errors, mixing.sd, draws.variables.num_states[draws.ids])
    rest = Diagnostics(*(column[unsure] for column in astuple(mixing)))
    if has_mixed(rest):
        pass
    elif not rest.r_hat.max(initial=1.0) < MIXED:
        doubts.append(
            doubt("The chains disagree: use more draws, or a longer ", option("warm_up"), ".")
        )
    else:
        doubts.append(
            doubt(
                f"Fewer than {LEAST_ESS} draws are effective for some variable, or its deviation "
                "is uncertain: answers may be off by some hundredths. Use more ",
                option("draws"),
                ".",
            )
        )
    if len(draws.values) == 1 and len(draws.ids):
        doubts.append(doubt("One chain cannot show whether another would agree: run two or more."))
    is_stuck = (draws.variables.num_states[draws.ids] == 0) & (mixing.sd == 0.0)
    if is_stuck.any():
        name = draws.variables.names[int(draws.ids[np.argmax(is_stuck)])]
        doubts.append(
            doubt(f"'{name}' never changed, which a real cannot but do: no draw is to be used.")
        )
    if not run.is_connected:
        doubts.append(
            doubt(
                "Hard constraints may keep apart states between which no draw of a few variables "
                "at a time can move: then a chain sees its own side only, and R-hat may not show "
                "it."
            )
        )
    return doubts
