"""The warm-up compiles what a first answer needs."""

import subprocess
import sys

import pytest

from hylift.progress import _announce

FIRST_USE = '''
import sys
import numpy as np
import hylift as hl
import hylift.warm_up
from numba.core.dispatcher import Dispatcher

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("hylift")]
    kernels = {id(k): k for module in modules for k in vars(module).values()
               if isinstance(k, Dispatcher)}
    return {(k.py_func.__qualname__, signature) for k in kernels.values()
            for signature in k.signatures}

hylift.warm_up._solve_exactly()
hylift.warm_up._sum_over_lattices()
before = compiled()
model = hl.parse("""
    In(sensor, room)
    Faulty(sensor)
    offset(room): real
    reading(sensor): real
    temperature(room): real
    -3  Faulty(s)
    normal(temperature(r) | 20, 9)
    normal(offset(r) | temperature(r), 1)
    normal(temperature(r) | temperature(q), 4)  where r < q
    In(s, r) * normal(reading(s) | temperature(r)*!Faulty(s), 0.25 + 100*Faulty(s))
""")
reading = np.random.default_rng(0).normal(20, 1, 60)
evidence = {
    "In": [(str(i), str(i % 2)) for i in range(60)],
    "reading": [(str(i), value) for i, value in enumerate(reading)],
}
found = hl.infer(hl.ground(model, evidence, closed=["In"]), hl.Exact())
assert any("lattices" in note for note in found.solution.notes), found.solution.notes
print(compiled() - before)
'''


def test_sums_over_lattices_wait_for_no_compiler() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIRST_USE], capture_output=True, text=True, check=False
    )

    assert run.stdout == "set()\n", run.stderr


def test_the_notice_of_compilation_promises_no_time(caplog: pytest.LogCaptureFixture) -> None:
    _announce.__wrapped__()

    (record,) = caplog.records
    assert "some minutes in all, more on a busy machine" in record.message
    assert "a limit of time does not stop it" in record.message
