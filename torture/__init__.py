"""Deliberate breaking: damaged files, random models with random settings, and runs cut short."""
