"""Simultaneous bounds on the noise of many numbers."""

from __future__ import annotations

import math


def bound_in_sigmas(numbers: int, beta: float, *, laplace: bool = False) -> float:
    """Return the multiple of σ that bounds the noise of all ``numbers`` values at once, with probability 1 − ``beta``.

    Discrete Gaussian noise is subgaussian with its σ (Canonne, Kamath & Steinke 2020, Corollary 9), so each number
    stays within ±σ·√(2 ln(2m/β)) with probability 1 − β/m. The magnitude of discrete Laplace noise is at least t with
    probability at most 2·exp(−t/b)/(1 + exp(−1/b)), so it stays within b·ln(2m/β), and b = σ/√2.
    """
    exponent = math.log(2 * max(numbers, 1) / beta)
    return exponent / math.sqrt(2) if laplace else math.sqrt(2 * exponent)
