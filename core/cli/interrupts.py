"""SIGTERM as a cancellation, and interrupts that Python would ignore.

Python calls a signal's handler wherever the program is. Inside a destructor, or in a callback from a library in C,
it prints the exception and carries on, so the command would not stop. Such an interrupt is raised again a moment later.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AGAIN = 0.05
"""Seconds after which an ignored interrupt is raised again."""


class Terminated(KeyboardInterrupt):
    """A cancellation requested by the system (SIGTERM)."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGTERM into a cancellation inside the context, in this process only, and repeat ignored interrupts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    own = os.getpid()
    waiting: list[threading.Timer] = []

    def terminate(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if os.getpid() == own else signal.SIG_DFL)
        if os.getpid() != own:  # worker processes keep the default behaviour
            os.kill(os.getpid(), signal.SIGTERM)
            return
        raise Terminated

    def ignored(said: sys.UnraisableHookArgs) -> None:
        if not issubclass(said.exc_type, KeyboardInterrupt) or os.getpid() != own:
            hook(said)
            return
        ended = issubclass(said.exc_type, Terminated)
        while True:
            try:
                if ended:
                    signal.signal(signal.SIGTERM, terminate)
                number = signal.SIGTERM if ended else signal.SIGINT
                waiting.append(threading.Timer(AGAIN, _thread.interrupt_main, (number,)))
                waiting[-1].start()
                return
            except KeyboardInterrupt:  # on a busy machine, it is raised before Python has left this function
                continue

    before, hook = signal.signal(signal.SIGTERM, terminate), sys.unraisablehook
    sys.unraisablehook = ignored
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for timer in waiting:
            timer.cancel()
        signal.signal(signal.SIGTERM, before)
