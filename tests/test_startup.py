"""The command line answers before the heavy libraries are loaded."""

import subprocess
import sys

HEAVY = {"numpy", "scipy", "numba", "pyarrow", "matplotlib"}


def test_help_imports_no_heavy_library() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "hylift", "--help"]

    run = subprocess.run(command, capture_output=True, text=True, check=False)

    # One line per module on stderr: "import time: <self> | <cumulative> | <name>".
    lines = run.stderr.splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time")}
    errors = [line for line in lines if not line.startswith("import time")]
    assert run.returncode == 0, "\n".join(errors)
    assert "hylift.cli" in imported
    assert not HEAVY & imported
