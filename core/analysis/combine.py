"""One interval from the same estimate in several copies of a release.

Never stack the copies into one table: that would count every person many times. Estimate in each copy alone, then
combine here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Rule = Literal["between", "between and within"]


@dataclass(frozen=True)
class Combined:
    """``estimate`` is the mean over ``copies``; ``variance`` its variance with ``df`` degrees of freedom; ``low`` and
    ``high`` the ends of the interval at ``level``."""

    estimate: float
    variance: float
    df: float
    low: float
    high: float
    level: float
    copies: int
    rule: Rule


def combine(estimates: Sequence[float], variances: Sequence[float] | None = None, level: float = 0.95) -> Combined:
    """The estimates of m copies as one, with an interval by Student's t with m − 1 degrees of freedom.

    With b the variance between the estimates (divisor m − 1), the variance is (1 + 1/m) b: each copy holds both the
    noise and the sampling of the real rows once more, so b alone tells how sure the mean is. It is right for evenly
    drawn rows and too wide, never too narrow, for rows drawn one by one.

    ``variances`` are each estimate's variance within its copy as its software gives it, for rows drawn one by one. Then
    the variance is T = max((1 + 1/m) b − ū, ū), with ū their mean (Raghunathan, Reiter & Rubin 2003, equation 4, made
    positive). Do not give variances for evenly drawn rows: they lack the part that ū takes off again. The paper's
    degrees of freedom, (m − 1) (T / ((1 + 1/m) b))², make intervals up to a third too wide where there is little noise;
    with m − 1, simulated intervals of 20 copies cover 94–97 %.

    Estimate ratios (odds ratios, risk ratios) on the logarithmic scale. Raises ``ValueError`` for fewer than two
    copies, another number of variances, or values that are not finite.

    >>> import espalier as es
    >>> es.combine([0.31, 0.33, 0.32, 0.30, 0.34]).estimate
    0.32
    """
    from scipy.stats import t as student

    values = np.asarray(estimates, dtype=np.float64)
    m = len(values)
    if m < 2:
        raise ValueError(f"an interval needs two copies or more, not {m}")
    if not np.isfinite(values).all():
        raise ValueError("an estimate is not a finite number: the figure cannot be worked out in every copy")
    if not 0 < level < 1:
        raise ValueError(f"level ({level}) must lie between 0 and 1")
    between = (1 + 1 / m) * float(values.var(ddof=1))
    total, df = between, float(m - 1)
    rule: Rule = "between"
    if variances is not None:
        within = np.asarray(variances, dtype=np.float64)
        if within.shape != values.shape or not np.isfinite(within).all() or (within < 0).any():
            raise ValueError("there must be one finite variance, not below 0, to each estimate")
        mean = float(within.mean())
        total, rule = max(between - mean, mean), "between and within"
    half = float(student.ppf((1 + level) / 2, df)) * math.sqrt(total)
    centre = float(values.mean())
    return Combined(centre, total, df, centre - half, centre + half, level, m, rule)


PYTHON = """\
import glob, math, statistics
import pandas as pd
from scipy.stats import t

def estimate(table):                      # your figure: one number, ratios as logarithms
    return (table["outcome"] == "yes").mean()

files = sorted(glob.glob("copies/*.csv.gz"))
q = [estimate(pd.read_csv(f, keep_default_na=False, dtype=str)) for f in files]   # one by one: never stack them
m = len(q)
half = t.ppf(0.975, m - 1) * math.sqrt((1 + 1 / m) * statistics.variance(q))
print(statistics.mean(q), statistics.mean(q) - half, statistics.mean(q) + half)
"""
"""What a reader without this program runs on the copies."""

R = """\
estimate <- function(table) {             # your figure: one number, ratios as logarithms
  mean(table$outcome == "yes")
}

files <- sort(Sys.glob("copies/*.csv.gz"))
q <- sapply(files, function(f) estimate(read.csv(f, colClasses = "character", na.strings = NULL)))  # never stack them
m <- length(q)
half <- qt(0.975, m - 1) * sqrt((1 + 1 / m) * var(q))
c(estimate = mean(q), low = mean(q) - half, high = mean(q) + half)
"""
"""The same in R."""
