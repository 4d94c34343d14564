"""Compiled loops over the variables of a mixture, with one branch per family."""

from numba import njit

allocating = njit(cache=True, nogil=True, error_model="numpy")
"""Called from Python; it, or what it calls, allocates arrays or takes slices."""

kernel = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
"""Called from Python. Without allocations no reference counts need to be compiled."""

inner = njit(
    cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""Called from kernels only, and compiled as they are: without a wrapper for Python."""

part = njit(cache=True, nogil=True, error_model="numpy", inline="always")
"""A part of the inner loop of the kernels that call it: compiled with each of them."""
