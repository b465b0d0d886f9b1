"""Features that an attacker computes from a release: Stadler's three summaries, and the density at the target."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from espalier.core.evaluation.membership.game import Codes, FloatArray

SCALES = (0.05, 0.15, 0.3, 0.6)
"""Kernel widths tried by the density attack, with the kernel exp(−distance/scale), where the distance is the share of
columns that differ.
"""


def naive(released: Codes, sizes: Mapping[str, int]) -> FloatArray:
    """Return, for each column, the mean, median and variance of the code, the share of the most common category, and
    the number of categories that occur.
    """
    out = []
    for name, size in sizes.items():
        codes = released[name].astype(np.float64)
        counts = np.bincount(released[name], minlength=size)
        out += [codes.mean(), np.median(codes), codes.var(), counts.max() / len(codes), float((counts > 0).sum())]
    return np.array(out)


def histogram(released: Codes, sizes: Mapping[str, int]) -> FloatArray:
    """Return every column's distribution."""
    return np.concatenate([np.bincount(released[n], minlength=k) / len(released[n]) for n, k in sizes.items()])


def correlation(released: Codes, sizes: Mapping[str, int]) -> FloatArray:
    """Return the Pearson correlations of all pairs of category indicators of different columns; 0 if an indicator is
    constant. Above 400 indicators, when the vector would have more than 80,000 entries, the codes themselves are
    correlated.
    """
    indicators = [np.eye(size)[released[name]] for name, size in sizes.items()]
    if sum(sizes.values()) > 400:
        indicators = [released[name].astype(np.float64)[:, None] for name in sizes]
    group = np.repeat(np.arange(len(indicators)), [i.shape[1] for i in indicators])
    x = np.hstack(indicators)
    x -= x.mean(axis=0)
    norm = np.sqrt((x * x).sum(axis=0))
    product = np.divide(x.T @ x, np.outer(norm, norm), out=np.zeros((len(group),) * 2), where=np.outer(norm, norm) > 0)
    left, right = np.triu_indices(len(group), 1)
    return np.asarray(product[left, right][group[left] != group[right]])


def ensemble(released: Codes, sizes: Mapping[str, int]) -> FloatArray:
    """Return the three summaries together, as in the causal-VAE paper."""
    return np.concatenate([summary(released, sizes) for summary in (naive, histogram, correlation)])


SUMMARIES = {"naive": naive, "histogram": histogram, "correlation": correlation, "ensemble": ensemble}


def densities(released: Codes, target: Mapping[str, int]) -> FloatArray:
    """Return the log of the mean kernel around the target, which is the density of the release near it, with one entry
    per scale.

    Distances count differing columns, each weighted by the rarity of the target's value in the released rows, so
    agreement in a rare value counts more. The mean is at least half a row's kernel, so that logs are finite.
    """
    rows = len(next(iter(released.values())))
    distance, total = np.zeros(rows), 0.0
    for name, code in target.items():
        differs = released[name] != code
        weight = np.log((rows + 1) / (rows - int(differs.sum()) + 0.5))
        distance += weight * differs
        total += weight
    distance /= total
    kernels = [np.exp(-distance / scale).mean() for scale in SCALES]
    return np.log([max(k, 0.5 * float(np.exp(-1 / s)) / rows) for k, s in zip(kernels, SCALES, strict=True)])
