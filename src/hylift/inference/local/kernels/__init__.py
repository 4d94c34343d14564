"""Kernels of local moves, and the ways to compile them.

Numba compiles every function together with all that it calls: in a tree of calls the leaves are
compiled once per level. So functions with one caller are parts of it, and the tree stays flat.
"""

from numba import njit

entry = njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True)
"""Called from Python. Without reference counts, which take long to compile in small kernels."""

entry_with_views = njit(cache=True, nogil=True, no_cfunc_wrapper=True)
"""The same for kernels that allocate arrays, or take views of them."""

inner = njit(cache=True, nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Called from kernels only: a wrapper for Python takes as long to compile as the kernel itself."""

inner_with_views = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""The same for kernels that take views of arrays."""

part = njit(cache=True, nogil=True, inline="always")
"""A part of the one kernel that calls it: compiled with it, and not by itself."""
