"""Estimate of the seconds that a release takes, from its plan."""

from __future__ import annotations

from collections.abc import Sequence

from espalier.core.models.graphical import Size
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.rehearsal import UNKNOWN_ROWS

START, FITTED, PER_FIT, PER_ROW, PER_PAIR = 0.013, 0.75, 0.0136, 0.97e-6, 0.165e-5
"""Seconds of the parts of a release: the minimum; the last fit, as a fraction of the model's own estimate; each
intermediate fit; and a private choice, per row and per pair of columns. Fitted to seven tables and seven methods
(``TUNED`` in benchmarks/verdict.py); on eight other tables, 51 of 58 releases took between half and twice as long.
"""


def seconds_of(size: Size, draws: Sequence[Draw], rows: int | None, columns: int, fits: int) -> float:
    """Return the estimated seconds of a release. Private choices score every pair of columns on all rows."""
    if any(draw.kind == "gradient" for draw in draws):
        return size.seconds
    choices = sum(draw.kind == "choice" for draw in draws)
    scored = choices * (PER_ROW * (rows or UNKNOWN_ROWS) + PER_PAIR * columns**2)
    return START + FITTED * size.seconds + PER_FIT * fits + scored
