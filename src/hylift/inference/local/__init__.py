"""Assignments that change one variable at a time: what local search and Gibbs sampling share.

`terms.py` is the view of `Terms` by variable, `functions.py` that of functions, `kernels.py` has
values of terms, their quadratics along reals, and Cholesky factors of few reals. A method that
keeps states only, with the reals integrated out, finds the terms that a flip changes here, and adds
the update of a factor beside `factorise_small`.
"""
