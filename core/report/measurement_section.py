"""Tables of the report on measurements: pools, noisy counts, private choices and error bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from espalier.core.methods.pools import pool_in_words
from espalier.core.privacy.accounting import round_up, total_up
from espalier.core.report.html import table

MOST_ROWS = 30
"""Number of measurements or choices above which the annex has only one row per pool."""
MOST_BOUNDS = 10
"""Number of error bounds in the annex if there are more than `MOST_ROWS`; the largest bounds are shown."""


def pools(facts: Mapping[str, Any]) -> str:
    """Return a table of the pools with their shares of ρ."""
    shares: dict[str, float] = {}
    for item in [*facts["choices"], *facts["measurements"]]:
        shares[item["pool"]] = total_up((shares.get(item["pool"], 0.0), item["rho"]))
    whole = math.fsum(shares.values()) or 1.0
    rows = [
        f"<tr><td>{escape(p)}</td><td>{escape(pool_in_words(p))}</td>"
        f'<td class="n">{round_up(r)}</td><td class="n">{100 * r / whole:.1f} %</td>'
        f'<td style="width:30%"><div class="bar" style="width:{100 * r / whole:.1f}%"></div></td></tr>'
        for p, r in shares.items()
    ]
    return table("Shares of ρ", ["pool", "purpose", "ρ#", "share#", ""], rows)


def measurements(facts: Mapping[str, Any]) -> str:
    """Return a table of all noisy counts and sums, with ρ and σ."""
    sums = any(m.get("kind") in ("gradient", "sums") for m in facts["measurements"])
    listed = _rows(facts)
    if len(listed) > MOST_ROWS:
        return _by_pool(facts)
    return table(
        "Noisy counts; σ is the standard deviation of the noise, in rows per cell"
        + (" (for sums other than counts, in their own unit)" if sums else ""),
        ["columns", "pool", "cells#", "ρ#", "σ (rows)#"],
        listed,
    )


def _by_pool(facts: Mapping[str, Any]) -> str:
    """Return one row for each pool; `release.json` has every measurement."""
    pools: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for m in facts["measurements"]:
        pools.setdefault((m["pool"], len(m["columns"])), []).append(m)
    rows = [
        f"<tr><td>{escape(pool_in_words(pool))}{_of_columns(size)}</td>"
        f'<td class="n">{len(listed)}</td><td class="n">{sum(m["cells"] for m in listed):,}</td>'
        f'<td class="n">{round_up(total_up(m["rho"] for m in listed))}</td>'
        f'<td class="n">{_ends([m["sigma"] for m in listed])}</td></tr>'
        for (pool, size), listed in pools.items()
    ]
    return table(
        f"{len(facts['measurements'])} noisy counts by pool; release.json lists each. σ is the standard deviation of "
        "the noise, in rows per cell (for sums other than counts, in their own unit)",
        ["counts", "number#", "cells#", "ρ#", "σ (rows)#"],
        rows,
    )


def _of_columns(size: int) -> str:
    return f", {size} column{'s' * (size != 1)} each" if size else ""


def _ends(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _rows(facts: Mapping[str, Any]) -> list[str]:
    """Return one table row per measurement. Consecutive equal measurements share a row that states how many they
    are.
    """
    runs = [list(run) for _, run in itertools.groupby(facts["measurements"])]
    return [
        f"<tr><td>{f'{len(run)} times, each: ' if len(run) > 1 else ''}"
        f"{' × '.join(map(escape, m['columns'])) or escape(m.get('what', 'scores, listed above'))}</td>"
        f"<td>{escape(m['pool'])}</td>"
        f'<td class="n">{m["cells"]:,}</td><td class="n">{round_up(m["rho"])}</td>'
        f'<td class="n">{m["sigma"]:.4g}</td></tr>'
        for run in runs
        for m in run[:1]
    ]


def choices(facts: Mapping[str, Any]) -> str:
    """Return a table of all private choices, with ρ and noise scale; empty without choices."""
    if not facts["choices"]:
        return ""
    made = facts["choices"]
    if len(made) > MOST_ROWS:
        scales = _ends([c["scale"] for c in made])
        return (
            f"<p>The release made {len(made)} private choices, each among {min(c['candidates'] for c in made):,} to "
            f"{max(c['candidates'] for c in made):,} candidates, with a noise scale of {scales} rows. "
            "release.json lists each with its ρ.</p>"
        )
    rows = [
        f"<tr><td>{escape(c['what'])}: {' – '.join(map(escape, c['chosen'])) or 'none exceeds its noise'}</td>"
        f'<td class="n">{c["candidates"]:,}</td><td class="n">{round_up(c["rho"])}</td>'
        f'<td class="n">{c["scale"]:.4g}</td></tr>'
        for c in facts["choices"]
    ]
    return table(
        "Private choices, in order. A choice does not release any score",
        ["chosen", "candidates#", "ρ#", "noise scale (rows)#"],
        rows,
    )


def bounds(facts: Mapping[str, Any]) -> str:
    """Return the expected error and the error bound of each count; empty for old releases without bounds."""
    found = facts.get("bounds")
    if not found or not found["marginals"]:
        return ""
    if len(found["marginals"]) > MOST_ROWS:
        worst = sorted(found["marginals"], key=lambda m: -m["expected_tv"])[:MOST_BOUNDS]
        caption = f" (the {MOST_BOUNDS} largest of {len(found['marginals'])})"
    else:
        worst, caption = found["marginals"], ""
    rows = [
        f"<tr><td>{' × '.join(map(escape, m['clique']))}</td>"
        f'<td class="n">{m["cells"]:,}</td><td class="n">{_expected(m["expected_tv"])}</td>'
        f'<td class="n">{_within(m["tv"])}</td></tr>'
        for m in worst
    ]
    inputs = found["inputs"]
    out = "<h2>Error of the counts</h2>" + table(
        f"Noisy counts before the fit{caption}: share of rows in the wrong cell (total variation distance). Plan with "
        "the expected error. All counts together stay below the bound (PRISM's Proposition A.1) in "
        f"{100 * (1 - inputs['beta']):.0f} of 100 releases",
        ["columns", "cells#", "expected#", "bound#"],
        rows,
    )
    if found["tree"] is not None:
        out += (
            "<p>Bound on the share of rows in the wrong cell, for a table made only from the pairs with the target, if "
            f"these columns depend on each other only through the target: {_within(found['tree'])}. Bound on the "
            f"excess risk of a model trained on that table (Theorem 6.2, for a loss of at most {inputs['loss']:g} and "
            f"linear predictors of norm at most {inputs['norm']:g}): "
            f"{_within(found['excess_risk'], percent=False)}.</p>"
        )
    return out


def _expected(share: float) -> str:
    return "above 100 %: mostly noise" if share > 1 else f"{100 * share:.2f} %"


def _within(bound: float, percent: bool = True) -> str:
    if bound > 1:
        return "vacuous (above 1)"
    return f"{100 * bound:.1f} %" if percent else f"{bound:.3f}"
