"""Terminal output: text that cannot control the terminal, and a progress bar."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from espalier.core.progress import Report, silent

_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{0,40}:/{1,2}[^\s/@:]{0,200}:)[^\s@]*(@)", re.IGNORECASE)
"""Password in a URL. As a path, a URL loses one of its two slashes."""


class Plain:
    """A ``stream`` that escapes control and format characters as JSON does, because names and cells must not control a
    terminal.

    JSON output stays equivalent, because such characters occur only inside its strings. A stream that ``hides`` also
    leaves out the password of a URL, which may have been given as a path.
    """

    def __init__(self, stream: Any, *, hides: bool = False) -> None:
        self.stream = io.StringIO() if stream is None else stream  # None if it was closed before Python started
        self.hides = hides

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write ``text``; return its length."""
        self.stream.write(_plain(_PASSWORD.sub(r"\1…\2", text) if self.hides else text))
        return len(text)


class Lossy:
    """A ``stream`` of messages. Messages that cannot be written are lost: a closed pipe or a full disk must neither
    stop a command nor change its exit status.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write ``text``, if possible; return its length."""
        with suppress(OSError):
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write the remaining text, if possible."""
        with suppress(OSError):
            self.stream.flush()


def write_rest(stream: Any) -> None:
    """Write the remaining text of a ``stream``. If that fails, discard the text, so that Python does not change the
    exit status.
    """
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _plain(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" or unicodedata.category(c) == "Zs" else _escaped(c) for c in text
    )


def _escaped(c: str) -> str:
    return json.dumps(c)[1:-1] if ord(c) != 127 else "\\u007f"


@contextmanager
def bar(quiet: bool = False) -> Iterator[Report]:
    """Return a report that draws a progress bar on stderr. It draws nothing if stderr is not a terminal or ``quiet`` is
    set.
    """
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from tqdm import tqdm

    drawn_on = getattr(sys.stderr, "stream", sys.stderr)  # the bar moves the cursor
    with tqdm(total=100, bar_format="{desc:<42} {percentage:3.0f} % |{bar}| {elapsed}", file=drawn_on) as drawn:

        def report(fraction: float, message: str) -> None:
            drawn.set_description_str(_plain(message)[:42], refresh=False)
            drawn.update(max(0.0, 100 * fraction - drawn.n))

        yield report
