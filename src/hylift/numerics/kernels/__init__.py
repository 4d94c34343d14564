"""Compiled loops over flat arrays; their callers say what the arrays hold."""
