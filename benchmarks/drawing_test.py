"""The private test of a drawing: `python -m benchmarks.drawing_test [alarms] [power] [stated] [--runs 400]`.

Three tables: type I over 36 settings and family error over five statements; power compared with the prototype's; the
share of tests that detect the stated odds ratio, and the coverage of the strength's interval. ε = 1, δ = 1/n², a tenth
of ρ over five statements, replace-one; the noise is the curator's discrete Gaussian.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.independence_fit import Counts, Null
from espalier.core.analysis.independence_test import LARGEST_NOTICED, judged, p_value
from espalier.core.analysis.strength import POWER, associated, noticed, power, strength
from espalier.core.privacy.accounting import rho_of
from espalier.core.privacy.mechanisms import add_gaussian, gaussian_scale
from espalier.core.privacy.unit import Unit

SHAPES = ((2, 2, 1), (2, 2, 4), (3, 3, 4), (2, 2, 12), (4, 3, 6), (5, 2, 3))
PROTOTYPE = {
    (2, 2, 1): ((80, 97, 98), (100, 100, 100)),
    (2, 2, 4): ((46, 83, 97), (100, 100, 100)),
    (3, 3, 4): ((11, 21, 64), (80, 99, 100)),
    (2, 2, 12): ((18, 39, 73), (97, 100, 100)),
    (4, 3, 6): ((9, 10, 14), (32, 77, 98)),
}
"""The prototype's power in percent at odds ratios 1.5, 2, 3, for n = 5,000 and n = 20,000
(shared/notes/honest_inference.md)."""


def scale(n: int, statements: int = 5) -> float:
    """Return σ of one statement's counts."""
    return gaussian_scale(Unit().count_sensitivity, 0.1 * rho_of(1.0, 1 / n**2) / statements)


def null_of(shape: tuple[int, int, int], n: int, sigma: float, skewed: bool) -> Null:
    """Return even margins, or margins that halve from category to category and differ between strata."""
    if not skewed:
        return Null.uniform(shape, n, sigma)
    i, j, k = shape

    def falling(size: int, shift: int) -> NDArray[np.float64]:
        share: NDArray[np.float64] = np.roll(0.6 ** np.arange(size), shift)
        share /= share.sum()
        return share

    x = np.array([falling(i, z % 2) for z in range(k)])
    y = np.array([falling(j, z % 2) for z in range(k)])
    return Null(n * falling(k, 0), x, y, sigma, 1)


def draw(expected: NDArray[np.float64], n: int, sigma: float, rng: np.random.Generator) -> Counts:
    """Return a table of ``n`` rows, with the curator's noise."""
    rows = rng.multinomial(n, (expected / expected.sum()).ravel()).reshape(expected.shape)
    return Counts(add_gaussian(rows.astype(np.int64), sigma), sigma)


def type_one(runs: int, rng: np.random.Generator) -> None:
    """Print the type I error of each statement over 36 settings, and of families of five.

    If there are too few rows, a plan buys no test unless its list names the statement. These settings are marked, and
    left out of the last lines.
    """
    rates, families, bought, runs = [], [], [], runs - runs % 5
    for shape, n, skewed in itertools.product(SHAPES, (1000, 5000, 20_000), (False, True)):
        sigma = scale(n)
        expected = null_of(shape, n, sigma, skewed).expected
        ps = np.array([p_value(draw(expected, n, sigma, rng), rng, 199) for _ in range(runs)])
        rates.append(100 * float(np.mean(ps <= 0.05)))
        families.append(100 * float(np.mean(ps.reshape(-1, 5).min(axis=1) * 5 <= 0.05)))
        bought.append(power(Null.uniform(shape, n, sigma), LARGEST_NOTICED, 0.01) >= POWER)
        print(
            f"  {'×'.join(map(str, shape)):8} n = {n:6} {'skewed' if skewed else 'even':6} {rates[-1]:5.1f} %, "
            f"family of five after Holm {families[-1]:5.1f} %{'' if bought[-1] else '  (not bought)'}",
            flush=True,
        )
    for title, kept in (("all", [True] * len(bought)), ("bought", bought)):
        for what, found, of in (("type I", rates, runs), ("family of five after Holm", families, runs // 5)):
            some = [rate for rate, keep in zip(found, kept, strict=True) if keep]
            print(
                f"{what}: mean {np.mean(some):.1f} %, {min(some):.1f}–{max(some):.1f} % over {len(some)} settings "
                f"({title}), {of} tests each; a true rate of 5 % has a standard error of {_error(5, of):.1f} %"
            )


def _error(percent: float, runs: int) -> float:
    """Return the standard error of a share in percent."""
    return math.sqrt(percent * (100 - percent) / runs)


def noticing(runs: int, rng: np.random.Generator) -> None:
    """Print the power at odds ratios 1.5, 2 and 3, with each statement at 5 %, compared with the prototype's, and the
    coverage of the strength."""
    for shape, said in PROTOTYPE.items():
        for n, before in zip((5000, 20_000), said, strict=True):
            sigma, found, covered = scale(n), [], []
            for ratio in (1.5, 2.0, 3.0):
                expected = associated(null_of(shape, n, sigma, False), math.log(ratio))
                tables = [draw(expected, n, sigma, rng) for _ in range(runs)]
                found.append(round(100 * float(np.mean([p_value(t, rng, 199) <= 0.05 for t in tables]))))
                spans = [strength(t) for t in tables]
                covered.append(round(100 * float(np.mean([s.low <= ratio <= s.high for s in spans]))))
            print(
                f"  {'×'.join(map(str, shape)):8} n = {n:6}: power {'/'.join(map(str, found)):12} "
                f"(prototype {'/'.join(map(str, before))}), interval covers {'/'.join(map(str, covered))}",
                flush=True,
            )


def stated(runs: int, rng: np.random.Generator) -> None:
    """Print the odds ratio that is stated as detectable with 80 % power, its prediction with even margins, and its
    detection rate.
    """
    for shape, n, skewed in itertools.product(SHAPES[:5], (5000, 20_000), (False, True)):
        sigma = scale(n)
        null = null_of(shape, n, sigma, skewed)
        ratio, public = noticed(null, 0.01), noticed(Null.uniform(shape, n, sigma), 0.01)
        if ratio is None or ratio > 20:
            print(f"  {'×'.join(map(str, shape)):8} n = {n:6} {'skewed' if skewed else 'even':6} no verdict")
            continue
        expected = associated(null, math.log(ratio))
        tables = [draw(expected, n, sigma, rng) for _ in range(runs)]
        hits = 100 * float(np.mean([p_value(t, rng) <= 0.01 for t in tables]))
        after = [noticed(t.null, 0.01) or math.inf for t in tables[:20]]
        print(
            f"  {'×'.join(map(str, shape)):8} n = {n:6} {'skewed' if skewed else 'even':6} odds ratio {ratio:5.2f} "
            f"detected {hits:3.0f} ± {_error(80, runs):.1f} %; "
            f"predicted {public or math.inf:5.2f}, stated after {np.median(after):5.2f}",
            flush=True,
        )


PARTS = {
    "alarms": ("type I at 5 %", 2, type_one),
    "power": ("power at 5 %", 1, noticing),
    "stated": ("odds ratio stated as detectable (level 1 %, as for the first of five after Holm)", 1, stated),
}
"""The parts, each with its heading, the factor on the number of runs, and its function."""


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--runs", type=int, default=400, help="tables for each figure (twice as many for alarms)")
    args = parser.parse_args()
    rng = np.random.default_rng(19)
    for name in args.parts or PARTS:
        head, of, part = PARTS[name]
        print(f"{head}, {of * args.runs} tables each", flush=True)
        part(of * args.runs, rng)
    one = judged([draw(null_of((2, 2, 4), 5000, scale(5000), False).expected, 5000, scale(5000), rng)], rng)
    print(one[0].sentence("a", "b", ["z"]))


if __name__ == "__main__":
    main()
