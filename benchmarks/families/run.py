"""The benchmark: each method on many models, and a table of what was wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from rich.progress import track

import hylift as hl
from benchmarks.families.practice import PRACTICE, written
from benchmarks.families.score import Moments, Score, score
from benchmarks.families.traps import trapped
from benchmarks.setting import Setting
from hylift.errors import check_word
from hylift.inference.method import Method
from hylift.posterior.trust import VERDICTS

LIMIT = 5.0
"""Predicted seconds of exact inference; models that should take longer are left out."""
METHODS: Mapping[str, Method | None] = {
    "bvi3": hl.BVI(3),
    "bvi5": hl.BVI(5),
    "mean-field": hl.MeanField(),
    "npvi3": hl.NPVI(3),
    "epbp": hl.EPBP(),
    "bp": hl.BP(),
    "ep": hl.EP(),
    "gibbs": hl.Gibbs(),
    "smc": hl.SMC(),
    "default": None,
}
Found = list[tuple[str, int, dict[str, Score]]]


def run(setting: Setting) -> None:
    """wrong answers, and wrong ones without a warning, on random models of twelve families"""
    for name in setting.methods:
        check_word("method", name, tuple(METHODS))
    for name in setting.families:
        check_word("family", name, tuple(PRACTICE))
    chosen = [name for name in METHODS if not setting.methods or name in setting.methods]
    models = list(cases(setting))
    found: Found = []
    for family, seed in track(models, description="models"):
        graph = written(family, seed).graph()
        try:
            exact = Moments.of(hl.infer(graph, hl.Exact(), seconds=LIMIT, tasks="marginals"))
        except (hl.HyliftError, MemoryError):
            continue
        scores = {name: score(graph, METHODS[name], exact) for name in chosen}
        found.append((family, seed, scores))
    print(f"{len(found)} models; wrong / wrong without a warning / right with one, in percent")
    for name in chosen:
        print(f"{name:12} {line([by[name] for _, _, by in found])}")
    print("\nwrong / wrong without a warning, by family")
    print(*by_family(found, chosen), sep="\n")
    for name in chosen:
        print(f"\n{name}: verdicts by family, and the share of errors that are as stated or less")
        print(*verdicts(found, name), sep="\n")
    if not setting.families and "default" in chosen:
        print("\ntraps: the default beside the truth")
        print(*trapped(), sep="\n")
    if setting.lists_failures:
        print(*failures(found), sep="\n")


def cases(setting: Setting) -> Iterator[tuple[str, int]]:
    """So many models, from each family in turn."""
    families = setting.families or tuple(PRACTICE)
    numbers = range(setting.first, setting.first + setting.models)
    return ((families[i % len(families)], i // len(families)) for i in numbers)


def by_family(found: Found, methods: list[str]) -> Iterator[str]:
    """A line per family, a column per method."""
    yield " ".join([f"{'':12}", *(f"{method:>11}" for method in methods)])
    for family in dict.fromkeys(family for family, _, _ in found):
        columns = [
            _shares([by[method] for other, _, by in found if other == family]) for method in methods
        ]
        yield " ".join([f"{family:12}", *(f"{column:>11}" for column in columns)])


def verdicts(found: Found, method: str) -> Iterator[str]:
    """A line per family, a column per verdict."""
    yield " ".join([f"{'':12}", *(f"{word:>10}" for word in (*VERDICTS, "covered"))])
    for family in dict.fromkeys(family for family, _, _ in found):
        own = [by[method] for other, _, by in found if other == family]
        counts = [sum(one.verdict == word for one in own) for word in VERDICTS]
        shares = [one.covered for one in own if not np.isnan(one.covered)]
        share = f"{100 * np.mean(shares):.1f} %" if shares else "-"
        yield " ".join([f"{family:12}", *(f"{count:>10}" for count in (*counts, share))])


def _shares(scores: list[Score]) -> str:
    answered = [one for one in scores if one.refused is None]
    if not answered:
        return "refused"
    share = 100 / len(answered)
    wrong, silent = (
        sum(one.wrong is not None for one in answered),
        sum(one.is_silent for one in answered),
    )
    return f"{share * wrong:.0f} / {share * silent:.0f}"


def line(scores: list[Score]) -> str:
    answered = [one for one in scores if one.refused is None]
    if not answered:
        return "refused all"
    share = 100 / len(answered)
    wrong = share * sum(one.wrong is not None for one in answered)
    silent = share * sum(one.is_silent for one in answered)
    flagged = share * sum(one.wrong is None and one.is_flagged for one in answered)
    seconds = np.array([one.seconds for one in answered])
    refused = len(scores) - len(answered)
    return (
        f"{wrong:5.1f} / {silent:5.1f} / {flagged:5.1f}   median {np.median(seconds):6.3f} s, "
        f"most {seconds.max():6.2f} s"
        + (f"; refused {refused} of {len(scores)}" if refused else "")
    )


def failures(found: Found) -> Iterator[str]:
    """A line per wrong answer and per refusal."""
    for family, seed, by in found:
        for method, one in by.items():
            if one.refused is not None:
                yield f"{method:12} {family} {seed}: refused, {one.refused[:150]}"
            elif one.wrong is not None:
                silent = "SILENT, " if one.is_silent else ""
                yield f"{method:12} {family} {seed}: {silent}{one.wrong}"
