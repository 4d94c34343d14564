"""Compiled loops over messages."""
