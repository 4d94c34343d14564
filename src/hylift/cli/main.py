"""The entry to the command line, and its exit codes."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, NoReturn

import typer

import hylift.cli.app as commands
from hylift.cli.stderr import InterruptedAnswerError, complain
from hylift.errors import HyliftError

USAGE_ERROR: type[Exception] = typer.BadParameter.mro()[1]
"""The parent of all errors about commands and options; Typer has no name for it."""


def main() -> NoReturn:
    """Run the command line."""
    run(commands.app, "hylift")


def run(app: typer.Typer, name: str) -> NoReturn:
    """Run commands under the name by which users call them, and exit with a code.

    0: it worked; 1: the reader closed the output; 2: bad input or a full disk, with one line on
    stderr; 130: interrupted, perhaps with an answer.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may have no bars or Greek letters
    try:
        code = app(prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except HyliftError as error:
        _end(2, name, error.cli)
    except InterruptedAnswerError:
        sys.exit(130)  # the command has said so, and shown what it had
    except USAGE_ERROR as error:
        _end(2, name, _usage(error))
    except MemoryError:
        _end(2, name, "there is not enough memory")
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except OSError as error:
        if error.filename is not None:  # reported where files are read and written
            raise
        _drop_output()
        _end(2, name, f"standard output cannot be written: {error.strerror or error}")
    except SystemError as error:
        # Ctrl-C while a compiled kernel is loaded or called comes as the cause of another error.
        if not _is_interrupt(error):
            raise
        code = 130
    if code == 130:
        _end(130, name, "interrupted")
    sys.exit(code)


def _drop_output() -> None:
    """Discard buffered output, which would fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_interrupt(error: BaseException) -> bool:
    """Return whether Ctrl-C led to an error."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, KeyboardInterrupt):
        found = found.__cause__ or found.__context__
    return found is not None


def _end(code: int, name: str, line: str) -> NoReturn:
    if line:
        complain(f"{name}: {line}")
    sys.exit(code)


def _usage(error: Any) -> str:
    """An error about commands and options in one line; nothing where help was shown instead."""
    text = " ".join(error.format_message().split())
    return f"{text} (see '{error.ctx.command_path} --help')" if text and error.ctx else text
