"""Checks of answers by runs that start from nowhere in particular."""
