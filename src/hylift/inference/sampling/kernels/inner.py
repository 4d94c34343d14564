"""How kernels are compiled that only other kernels call."""

from numba import njit

inner = njit(cache=True, nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Without a way in from Python, which takes as long to compile as the kernel itself, and without
counting references, which takes long in small kernels."""

inner_with_views = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""The same for kernels that look at parts of arrays."""

part = njit(cache=True, nogil=True, inline="always")
"""A part of the one kernel that calls it: compiled with it, and not by itself."""
