"""Terminal output: a progress bar while work goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from espalier.core.progress import Report, silent


@contextmanager
def bar(quiet: bool = False) -> Iterator[Report]:
    """A report that draws a bar on stderr; nothing is drawn where that is no terminal, or ``quiet``."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from tqdm import tqdm

    with tqdm(total=100, bar_format="{desc:<42} {percentage:3.0f} % |{bar}| {elapsed}", file=sys.stderr) as drawn:

        def report(fraction: float, message: str) -> None:
            drawn.set_description_str(message[:42], refresh=False)
            drawn.update(max(0.0, 100 * fraction - drawn.n))

        yield report
