"""Compiled filters of wells, and parameters fitted with them.

What is reported of the relational model comes from the library's filter; these ones only serve to
fit parameters, for which a filter runs some hundred times.
"""
