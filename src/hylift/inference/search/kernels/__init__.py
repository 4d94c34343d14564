"""Compiled loops of local search, and how such loops are compiled."""

from numba import njit

entry = njit(cache=True, nogil=True, _nrt=False)
"""Called from Python. Without reference counts, which take long to compile in small kernels."""

inner = njit(cache=True, nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Called from kernels only: a wrapper for Python takes as long to compile as the kernel itself."""

inner_with_views = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""The same for kernels that take views of arrays."""

part = njit(cache=True, nogil=True, inline="always")
"""A part of the one kernel that calls it: compiled with it, and not by itself."""
