"""A posterior that was saved and loaded answers as before, whatever it is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import zoo
from hylift.grounding import ground
from hylift.inference import BP, BVI, EPBP, NPVI, Exact, GaBP, Gibbs, MaxWalkSAT, infer
from hylift.language import parse
from posterior import ask_loaded

EVERYTHING = ("marginals", "logz", "map")


def model() -> object:
    text = """
        person = {Ann, "Bob, jr"}
        Tall(person)
        height(person): real
        -1  (height(x) - 2*Tall(x))^2
        0.5 Tall(x) => Tall(y)
    """
    return ground(parse(text), {"height(Ann)": 1.2})


NEEDS_MODEL = {"exact": {"given", "joint", "density", "expectation", "sample"}, "bvi": set()}
"""Questions that need the model, which is not saved; of other methods only what is given."""


def test_another_process_gives_every_answer_of_every_method(tmp_path: Path) -> None:
    posteriors = {
        "exact": infer(zoo.coupled_bounded_reals(), Exact(), tasks=EVERYTHING),
        "bvi": infer(model(), BVI(2), tasks=EVERYTHING),
        "npvi": infer(model(), NPVI(2), tasks=EVERYTHING),
        "bp": infer(zoo.hidden_markov_model(), BP(), tasks=EVERYTHING),
        "gabp": infer(zoo.kalman_chain(), GaBP(), tasks=EVERYTHING),
        "epbp": infer(zoo.switching_regime(), EPBP(particles=20), tasks=("marginals", "map")),
        "gibbs": infer(model(), Gibbs(draws=30, warm_up=20), tasks=("marginals", "map")),
        "maxwalksat": infer(zoo.hidden_markov_model(), MaxWalkSAT(), tasks=("map",)),
    }
    paths = {name: str(tmp_path / f"{name}.npz") for name in posteriors}
    for name, posterior in posteriors.items():
        posterior.save(paths[name])

    run = subprocess.run(
        [sys.executable, ask_loaded.__file__, *paths.values()],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    for name, posterior in posteriors.items():
        expected = json.loads(json.dumps(ask_loaded.answers(posterior)))
        for question, answer in expected.items():
            told = found[paths[name]][question]
            if "needs the model" in str(told):
                assert question in NEEDS_MODEL.get(name, {"given"}), (name, question)
                continue
            assert told == answer, (name, question)
