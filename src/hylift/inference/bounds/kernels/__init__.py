"""Compiled loops of mini-buckets."""
