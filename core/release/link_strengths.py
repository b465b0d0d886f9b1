"""Strength of each measured pair in the released rows, and the strength that noise alone would produce.

Both are post-processing, because the first is computed from synthetic rows and the second from the expected error that
the plan stated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from espalier.core.evaluation.dependence import link
from espalier.core.planning.error_bounds import MarginalBound
from espalier.core.tables.table import Table


def link_strengths(
    synthetic: Table, edges: Iterable[tuple[str, str]], bounds: Sequence[MarginalBound]
) -> list[dict[str, Any]]:
    """Return the entries ``links`` of ``release.json``.

    ``strength`` is the share of rows that would have to change to unlink the pair. ``noise`` is the expected error of
    the pair's counts as a share of rows, in the best marginal that contains both columns; `None` if there is no such
    marginal. A link that is no stronger than its noise cannot be recognised in the released rows.
    """
    sizes, out = synthetic.schema.sizes, []
    for a, b in edges:
        if a == b or a not in sizes or b not in sizes:
            continue
        cells = sizes[a] * sizes[b]
        noise = [m.expected_tv * math.sqrt(cells / m.cells) for m in bounds if {a, b}.issubset(m.clique)]
        found = {"strength": round(link(synthetic, a, b), 4), "noise": round(min(noise), 4) if noise else None}
        out.append({"columns": [a, b], **found})
    return out
