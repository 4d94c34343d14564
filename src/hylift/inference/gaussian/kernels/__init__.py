"""Compiled loops over reals."""
