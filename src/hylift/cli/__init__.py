"""The command line."""

from hylift.cli.app import main

__all__ = ["main"]
