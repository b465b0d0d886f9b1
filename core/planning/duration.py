"""Estimated duration of a release in seconds, from its plan."""

from __future__ import annotations

from collections.abc import Sequence

from espalier.core.models.graphical import Size
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.rehearsal import UNKNOWN_ROWS

START, FITTED, PER_FIT, PER_ROW, PER_PAIR = 0.017, 0.41, 0.0066, 0.28e-6, 0.41e-5
"""Durations of the parts of a release, in seconds: the minimum; the last fit, as a fraction of the model's own
estimate; each intermediate fit; and a private choice, per row and per pair of columns. Fitted to fifteen tables and
seven methods (``TUNED`` in benchmarks/verdict.py) on two idle cores, then increased by a fifth, because other machines
are busier.
"""


def seconds_of(size: Size, draws: Sequence[Draw], rows: int | None, columns: int, fits: int) -> float:
    """Return the estimated seconds of a release. Private choices score every pair of columns on all rows."""
    if any(draw.kind == "gradient" for draw in draws):
        return size.seconds
    choices = sum(draw.kind == "choice" for draw in draws)
    scored = choices * (PER_ROW * (rows or UNKNOWN_ROWS) + PER_PAIR * columns**2)
    return START + FITTED * size.seconds + PER_FIT * fits + scored
