"""Compiled loops of the local search."""
