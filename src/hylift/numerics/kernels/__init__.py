"""Compiled loops over flat arrays; their callers say what the arrays hold."""

from numba import njit

inner = njit(cache=True, nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Called from kernels only: a wrapper for Python takes as long to compile as the kernel itself, and
references to arrays need no counting where none is made."""
