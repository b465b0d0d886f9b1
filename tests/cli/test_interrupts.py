"""An interrupt that arrives where Python ignores exceptions still cancels the command."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from espalier.core.cli.interrupts import Terminated, interruptible


class Freed:
    """An object during whose destruction a signal arrives, as in OpenDP's ``AnyObjectPtr``."""

    def __init__(self, number: int | None, seconds: float = 0.0) -> None:
        self.number, self.seconds = number, seconds

    def __del__(self) -> None:
        if self.number is not None:
            os.kill(os.getpid(), self.number)
        time.sleep(self.seconds)


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Python's own handler of SIGINT, which a shell's background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def lose(number: int, slow: int) -> None:
    """Wait for an interrupt that arrives in a destructor, and ``slow`` more times in others."""
    Freed(number)
    for _ in range(slow):
        Freed(None, 0.03)
    time.sleep(5)
    pytest.fail("the interrupt was lost")


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)])
@pytest.mark.parametrize("slow", [0, 3])
def test_an_interrupt_inside_a_destructor_is_raised_again(
    number: int, kind: type[BaseException], slow: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Previously, Python printed the exception, and a release went on to its end."""
    before = signal.getsignal(signal.SIGTERM), sys.unraisablehook
    with pytest.raises(kind), interruptible():
        lose(number, slow)
    assert "ignored" not in capfd.readouterr().err
    assert (signal.getsignal(signal.SIGTERM), sys.unraisablehook) == before


def test_an_interrupt_that_is_raised_again_too_early_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, the time may have passed before Python has left the function that repeats it."""
    start, begun = threading.Timer.start, list[float]()

    def slow(timer: threading.Timer) -> None:
        start(timer)
        begun.append(time.monotonic())
        if len(begun) < 3:
            time.sleep(1)

    monkeypatch.setattr(threading.Timer, "start", slow)
    with pytest.raises(KeyboardInterrupt), interruptible():
        lose(signal.SIGINT, 0)
    assert len(begun) == 3


def test_other_exceptions_in_destructors_are_reported_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        def __del__(self) -> None:
            raise ValueError("not an interrupt")

    said: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: said.append(str(error.exc_value)))
    with interruptible():
        Wrong()
    assert said == ["not an interrupt"]
