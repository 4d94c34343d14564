"""Log-densities of named distributions over arrays, but for those in `primitive.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln, log_ndtr, xlogy

from hylift.potentials.base import FloatArray

TINY = np.finfo(np.float64).tiny
"""Distance from a bound at which densities that are infinite there are evaluated."""


def log_density(name: str, value: Any, *parameters: FloatArray) -> FloatArray:
    """The log-density of values, NaN where a parameter is impossible; `language.syntax.DENSITIES`
    has the parameters."""
    return np.asarray(_LOG_DENSITIES[name](value, *parameters))


def _where(holds: Any, density: Any) -> Any:
    """The density on its support, -inf elsewhere."""
    return np.where(holds, density, -np.inf)


def _positive(parameter: Any) -> Any:
    return np.where(parameter > 0, parameter, np.nan)


def _falling(rising: Any, lost: Any) -> Any:
    """The difference, -inf where both are infinite: what is lost grows faster."""
    return np.where(np.isposinf(lost), -np.inf, rising - lost)


def _bernoulli(truth: Any, p: Any) -> Any:
    p = np.where((p >= 0) & (p <= 1), p, np.nan)
    return np.where(truth, np.log(p), np.log1p(-p))


def _poisson(count: Any, rate: Any) -> Any:
    is_count = (count >= 0) & (count == np.floor(count))
    rate = np.where(rate >= 0, rate, np.nan)
    return _where(is_count, _falling(xlogy(count, rate), rate) - gammaln(count + 1))


def _gamma(x: Any, shape: Any, rate: Any) -> Any:
    shape, rate = _positive(shape), _positive(rate)
    near = np.maximum(x, TINY)
    rising = xlogy(shape, rate) + xlogy(shape - 1, near) - gammaln(shape)
    return _where(x >= 0, _falling(rising, rate * near))


def _beta(x: Any, a: Any, b: Any) -> Any:
    a, b = _positive(a), _positive(b)
    left, right = np.maximum(x, TINY), np.maximum(1 - x, TINY)
    return _where((x >= 0) & (x <= 1), xlogy(a - 1, left) + xlogy(b - 1, right) - betaln(a, b))


def _lognormal(x: Any, m: Any, v: Any) -> Any:
    logarithm, v = np.log(np.where(x > 0, x, 1.0)), _positive(v)
    return _where(
        x > 0, -((logarithm - m) ** 2) / (2 * v) - logarithm - 0.5 * np.log(2 * np.pi * v)
    )


def _student(x: Any, m: Any, v: Any, nu: Any) -> Any:
    v, nu = _positive(v), _positive(nu)
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi * v)
    return constant - (nu + 1) / 2 * np.log1p((x - m) ** 2 / (nu * v))


_LOG_DENSITIES: dict[str, Callable[..., Any]] = {
    "bernoulli": _bernoulli,
    "bernoulli_probit": lambda truth, score: log_ndtr(np.where(truth, score, -score)),
    "poisson": _poisson,
    "exponential": lambda x, rate: _gamma(x, np.ones(()), rate),
    "gamma": _gamma,
    "beta": _beta,
    "lognormal": _lognormal,
    "student": _student,
}
