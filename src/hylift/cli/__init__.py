"""The command line."""

from hylift.cli.main import main

__all__ = ["main"]
