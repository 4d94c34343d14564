"""Posteriors in files of our own and in other people's tools."""
