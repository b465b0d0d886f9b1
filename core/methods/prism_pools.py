"""Pools of a PRISM plan (§5.4). The plan sets their shares of the budget, or they are computed from noisy counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from espalier.core.errors import ProjectError

NAMES = {
    "one-way": "counts of single columns",
    "selection": "choosing S; if nothing is chosen, the target's tables get this pool",
    "pair choice": "choosing three-way tables and buying weights; the target's tables get any unspent part",
    "target": "counts with the target",
    "background": "counts of the other columns together",
}
"""Pools that a plan may set, and their uses."""


@dataclass(frozen=True)
class Pools:
    """Shares of the budget, which sum to at most one.

    ``given`` is true if the plan sets them. In that case, a separate pool pays for choosing tables; otherwise the
    background does.
    """

    one_way: float
    selection: float
    pairs: float
    task: float
    background: float
    given: bool = False


def pools_of(shares: Mapping[str, float]) -> Pools | None:
    """Return the pools set by a plan, scaled to sum to one; `None` if it sets none.

    A pool that is not listed gets nothing. Raises :class:`ProjectError` for an unknown name, and if single columns or
    the target's tables get nothing.

    >>> pools_of({"one-way": 1, "target": 4}).task
    0.8
    """
    if not shares:
        return None
    if odd := [name for name in shares if name not in NAMES]:
        raise ProjectError(f"plan: pools names {odd[0]!r}; it must be one of {', '.join(NAMES)}", key="pools")
    for name in ("one-way", "target"):
        if not shares.get(name):
            raise ProjectError(
                f"plan: pools must give the pool {name!r} a share above 0, because every plan needs it", key="pools"
            )
    whole = sum(shares.values())
    one_way, selection, pairs, task, background = (shares.get(name, 0.0) / whole for name in NAMES)
    return Pools(one_way, selection, pairs, task, background, given=True)
