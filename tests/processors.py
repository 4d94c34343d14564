"""`python tests/processors.py`: runs tests as on processors other than this one.

The last bits of floating-point numbers depend on the vector instructions that compiled kernels,
NumPy and OpenBLAS find. Each setting turns some of them off, as far as this processor allows, and
keeps its own compiled kernels under .cache/processors.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "processors"
NUMERICAL = [
    "tests/inference/message",
    "tests/inference/test_conformance.py",
    "tests/inference/test_exact.py",
    "tests/potentials",
]
"""The tests that settings are tried on by default."""

LEVELS = {"X86_V3": 3, "X86_V4": 4, "AVX512_ICL": 4, "AVX512_SPR": 4}
"""Of x86-64, for what NumPy calls instructions that it can be told not to use."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What this processor is taken for."""

    cpu: str
    """Whose instructions Numba uses;"""
    features: str
    """with these changes."""
    blas: str
    """The kernels of OpenBLAS."""
    level: int
    """Of x86-64, for NumPy."""
    threads: int
    needs: tuple[str, ...] = ()
    """Instructions that the processor must have."""

    def is_possible(self) -> bool:
        found = llvm.get_host_cpu_features()
        return "x86_64" in llvm.get_process_triple() and all(found.get(f) for f in self.needs)

    def environment(self, cache: Path) -> dict[str, str]:
        found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]  # type: ignore[index]
        off = [feature for feature in found if LEVELS.get(feature, 0) > self.level]
        return os.environ | {
            "NUMBA_CPU_NAME": self.cpu,
            "NUMBA_CPU_FEATURES": self.features,
            "NUMBA_NUM_THREADS": str(self.threads),
            "NUMBA_CACHE_DIR": str(cache),
            "OPENBLAS_CORETYPE": self.blas,
            "NPY_DISABLE_CPU_FEATURES": " ".join(off),
        }


AVX2, AVX512 = ("avx2", "bmi2", "fma"), ("avx512f", "avx512bw", "avx512dq", "avx512vl")
SETTINGS = {
    "generic": Setting("generic", "", "Prescott", 2, threads=1),
    "no-fma": Setting("haswell", "-fma", "Zen", 3, threads=1, needs=AVX2),
    "haswell": Setting("haswell", "+fma", "Haswell", 3, threads=2, needs=AVX2),
    "skylake-x": Setting("skylake-avx512", "+fma", "SkylakeX", 4, threads=2, needs=AVX2 + AVX512),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("settings", nargs="*", help=f"some of {', '.join(SETTINGS)}; default: all")
    parser.add_argument("--tests", nargs="+", default=NUMERICAL, help="as pytest takes them")
    arguments = parser.parse_args()
    if unknown := set(arguments.settings) - set(SETTINGS):
        parser.error(f"no setting {sorted(unknown)}; there are {', '.join(SETTINGS)}")
    failed = []
    for name in arguments.settings or SETTINGS:
        if not SETTINGS[name].is_possible():
            print(f"{name}: this processor lacks its instructions; left out", flush=True)
            continue
        print(f"{name}:", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile"]
        environment = SETTINGS[name].environment(CACHE / name)
        if subprocess.call([*command, *arguments.tests], env=environment, cwd=ROOT):
            failed.append(name)
    if failed:
        print(f"tests failed as on {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
