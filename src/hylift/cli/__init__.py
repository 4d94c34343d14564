"""The command line."""

import os
import sys


def main() -> None:
    """Runs the command line; Ctrl-C is told in one line even while modules are being loaded."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever called
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        from hylift.cli.main import main as run
    except KeyboardInterrupt:
        print("hylift: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


__all__ = ["main"]
