"""The command line."""

import atexit
import contextlib
import gc
import os
import sys
from typing import NoReturn

ALLOCATIONS = 1_000_000
"""New objects after which Python looks for cycles. Loading modules makes many, which stay; with
Python's own setting, a tenth of a short run is spent on looking at them."""


class WithoutPandas:
    """A finder of modules that finds no pandas.

    PyArrow would load it, where it is installed, to make its first array: a quarter of a second for
    nothing, as no command has a data frame.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def show_pandas() -> None:
    """Let libraries that need pandas find it again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not WithoutPandas]


def process() -> NoReturn:
    """Run the command line as a process of its own."""
    gc.set_threshold(ALLOCATIONS)
    sys.meta_path.insert(0, WithoutPandas)
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    # The error that led here is gone, and with it what it held: databases remove their files.
    atexit._run_exitfuncs()  # so do temporary folders
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # its reader has closed it
            stream.flush()
    # Freeing one by one what ends with the process anyway would take half a second.
    os._exit(code)


def main() -> NoReturn:
    """Run the command line; Ctrl-C prints one line even while modules are being loaded."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        from hylift.cli.main import main as run
    except KeyboardInterrupt:
        print("hylift: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


__all__ = ["main", "process", "show_pandas"]
