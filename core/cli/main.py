"""The command line: one module for each group of commands.

Exit status: 0 for success; 1 if a check of `verify` fails; 2 for bad input, a conflict, or a refused size (with one
clear line on stderr and no output folder); 3 if the budget or the ledger refuses the release; 141 if the program that
was reading the output closed it early.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import NoReturn

from espalier import __version__
from espalier.core.cli import (
    analyse,
    app,
    attack,
    backup,
    doctor,
    evaluate,
    graph,
    init,
    ledger,
    plan,
    release,
    resume,
    serve,
    statement,
)
from espalier.core.cli.interrupts import Terminated, interruptible
from espalier.core.cli.terminal import Lossy, Plain, write_rest
from espalier.core.errors import BudgetError, EspalierError

LONGEST = 800
"""Maximum number of characters in a message. A longer message, for example one with a long name or value, is cut."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    made = _Parser(prog="espalier", description="Synthetic tables under differential privacy.")
    made.add_argument("--version", action="version", version=f"espalier {__version__}")
    commands = made.add_subparsers(dest="command", metavar="command", title="commands")
    groups = (
        init,
        plan,
        release,
        resume,
        evaluate,
        analyse,
        attack,
        graph,
        ledger,
        statement,
        app,
        serve,
        doctor,
        backup,
    )
    for group in groups:
        group.add(commands)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    known = parser()
    opt = known.parse_args(argv)
    if opt.command is None:
        known.print_help(sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # terminals that cannot print ρ show \u03c1
    if opt.command in ("app", "serve"):  # Streamlit's own output
        return _run(opt)
    said = Plain(None if sys.stderr is None else Lossy(sys.stderr), hides=True)
    with redirect_stdout(Plain(sys.stdout)), redirect_stderr(said), interruptible():
        status = _run(opt)
    write_rest(sys.stderr)
    return status


def _run(opt: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    try:
        status = int(opt.run(opt) or 0)
        sys.stdout.flush()  # a status that depends on the output must not be returned before the output is written
        return status
    except BudgetError as error:
        print(_line(error), file=sys.stderr)
        return 3
    except EspalierError as error:
        print(_line(error), file=sys.stderr)
        return 2
    except MemoryError as error:
        print(
            "espalier: not enough memory; coarsen the columns with the most categories" + _notes(error),
            file=sys.stderr,
        )
        return 2
    except UnicodeEncodeError:
        print("espalier: an argument contains a byte that is not UTF-8. Only paths may contain one", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the status is not 0, because the reader may have missed a failed check
        write_rest(sys.stdout)
        return 141
    except OSError as error:  # for example, a name that is too long, a folder that may not be listed, or a full disk
        write_rest(sys.stdout)
        said = f"cannot use {error.filename or 'a file'}: {error.strerror or type(error).__name__}"
        print(_line(EspalierError(said)) + _notes(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        spends = opt.command in ("release", "resume", "demo")
        print(
            f"\nespalier: cancelled; {'noise already drawn counts as' if spends else 'nothing was'} spent"
            + _notes(error),
            file=sys.stderr,
        )
        return 143 if isinstance(error, Terminated) else 130


def _notes(error: BaseException) -> str:
    """Return the sentence of a failed release's error that states how to finish it."""
    return "".join(f". {note}" for note in getattr(error, "__notes__", ()))


def _line(error: EspalierError) -> str:
    """Return one line of text in which names and cells can neither control nor flood the terminal."""
    text = " ".join([*str(error).split(), *getattr(error, "__notes__", ())])
    shown = "".join(c if c.isprintable() else "�" for c in text)
    return "espalier: " + (shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 200]} … {shown[-180:]}")
