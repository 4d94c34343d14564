"""Compiled loops of expectation propagation."""
