"""Compiled loops of the filter."""
