"""Compiled loops of the walk."""
