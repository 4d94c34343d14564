"""All that can be asked of a posterior, as JSON: `python ask_loaded.py FILE` asks a saved one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from hylift.errors import HyliftError
from hylift.posterior import Posterior


def answers(posterior: Posterior) -> dict[str, Any]:
    """The answer to each question, or the text of its refusal; energies need the model."""
    hidden = posterior.variables.names.render(posterior.select()).to_pylist()
    some = hidden[:3]
    first = hidden[0]
    domain = posterior.variables.domain(posterior.variables.names.id(first))
    value = 0.1 if domain.states is None else domain.states[0]
    questions: dict[str, Callable[[], Any]] = {
        "repr": lambda: repr(posterior),
        "marginal": lambda: repr(posterior.marginal(first)),
        "marginals": lambda: posterior.marginals(observed=True).to_pylist(),
        "table": lambda: posterior.table(first.partition("(")[0], observed=True).to_pylist(),
        "joint": lambda: posterior.joint(some).sample(5, seed=1).to_pylist(),
        "density": lambda: posterior.joint([first]).pdf({first: value}),
        "given": lambda: posterior.given({first: value}).marginals().to_pylist(),
        "expectation": lambda: posterior.expect(lambda x: x**2, first).value,
        "sample": lambda: posterior.sample(5, seed=2).to_pylist(),
        "map": lambda: [posterior.map().energy, posterior.map().kind, posterior.map().to_dict()],
        "marginal_map": lambda: posterior.marginal_map().to_dict(),
        "log_partition": lambda: repr(posterior.log_partition),
        "solution": lambda: repr(posterior.solution),
        "history": lambda: (
            [
                posterior.solution.history.measure,
                posterior.solution.history.to_arrow().to_pylist(),
            ]
            if posterior.solution.history
            else None
        ),
        "summary": lambda: posterior.draws.summary().to_pylist() if posterior.draws else None,
    }
    return {question: _asked(ask) for question, ask in questions.items()}


def _asked(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except HyliftError as refusal:
        return str(refusal)


if __name__ == "__main__":
    np.seterr(all="ignore")
    print(json.dumps({path: answers(Posterior.load(path)) for path in sys.argv[1:]}))
