"""Errors that a user can correct, with clear messages."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from tokenize import TokenError
from typing import Any, TypedDict, Unpack
from zipfile import BadZipFile

from espalier import __version__

DAMAGED = (
    *(AttributeError, LookupError, ValueError, TypeError, OverflowError, OSError, EOFError, RuntimeError, MemoryError),
    *(BadZipFile, zlib.error, TokenError),
)
"""Exceptions that readers of archives, arrays and JSON raise for damaged files."""


def wheel_with(extra: str) -> str:
    """Return a sentence on how to install an extra. It names a wheel file, because `espalier` on PyPI is a different
    project.
    """
    return f"Install it with: pip install 'espalier_tables-{__version__}-py3-none-any.whl[{extra}]'"


def first_twice(texts: Iterable[str]) -> str | None:
    """Return the first repeated text, or `None` if each occurs once."""
    seen = set[str]()
    return next((text for text in texts if text in seen or seen.add(text)), None)  # type: ignore[func-returns-value]


class ErrorData(TypedDict, total=False):
    """Subject of an error: pages use it to decide where to show the error, and tests read it."""

    key: str
    """Key of the plan or of the project file."""
    missing: str | bool
    """Input that the user has not provided yet."""
    column: str | None
    columns: Sequence[str]
    name: str
    value: Any
    row: int
    rows: Any
    line: int
    path: str | tuple[str, ...]
    role: str
    separation: Any
    question: str
    questions: Any
    node: str
    edge: Any
    pair: Any
    cycle: Any
    forbidden: Any
    clique: tuple[str, ...]
    cells: int
    limit: int
    parameters: int
    culprit: Any
    coarsen: Any
    count: str | int
    share: float
    requested: float
    remaining: float
    best: float
    offer: float | None
    population: Any
    table: str
    fixed: Any
    released: Any
    entry: Any
    seq: int
    start: int
    ledger: str
    extra: str
    what: str


class EspalierError(Exception):
    """Base of all errors that a user can correct; the text states what is wrong, where, and what to do.

    The text ends with a full stop, so callers add none. ``data`` is the subject of the error.

    >>> import espalier as es
    >>> try:
    ...     es.Project.load("missing.json")
    ... except es.EspalierError as error:
    ...     print(type(error).__name__)
    ProjectError
    """

    def __init__(self, message: str, **data: Unpack[ErrorData]) -> None:
        super().__init__(sentence(message))
        self.data = data


def sentence(text: str) -> str:
    """Return ``text`` with a full stop at the end, unless it already ends with a punctuation mark."""
    return text if not text or text.endswith((".", "?", "!", "…", ":")) else f"{text}."


class SchemaError(EspalierError):
    """The public description of a column is wrong or unconfirmed.

    >>> import espalier as es
    >>> es.Schema(())
    Traceback (most recent call last):
    espalier.core.errors.SchemaError: the schema has no columns; describe at least one.
    """


class TableError(EspalierError):
    """A table cannot be read or does not fit its schema.

    >>> import espalier as es
    >>> es.read_table(b"", name="clinic.csv")
    Traceback (most recent call last):
    espalier.core.errors.TableError: clinic.csv is empty; it needs a header line and at least one row.
    """


class GraphError(EspalierError):
    """The drawn graph or the roles contradict themselves, for example because of a cycle or an unknown column.

    >>> import espalier as es
    >>> es.Dag((("smoker", "sick"), ("sick", "smoker")))
    Traceback (most recent call last):
    espalier.core.errors.GraphError: the arrows form a cycle: sick → smoker → sick; remove an arrow of the cycle.
    """


class ProjectError(EspalierError):
    """A project file is broken, or its parts conflict.

    >>> import espalier as es
    >>> es.Plan("mst", epsilon=-1)
    Traceback (most recent call last):
    espalier.core.errors.ProjectError: ...
    """


class BudgetError(EspalierError):
    """A request exceeds the budget. Nothing was read.

    >>> import espalier as es
    >>> issubclass(es.LedgerError, es.BudgetError)  # the command line exits with 3 for both
    True
    """


class LedgerError(BudgetError):
    """The ledger refuses: too little budget is left, the unit of privacy differs, or the table is unknown.

    Nothing was read.

    >>> import espalier as es
    >>> es.Ledger("empty.db", create=True).account("register")
    Traceback (most recent call last):
    espalier.core.errors.LedgerError: ...
    """


class LedgerUnavailable(EspalierError):
    """The ledger cannot be reached, read or written (a full disk, a lost connection, a damaged file).

    >>> import espalier as es
    >>> es.Ledger("mysql://server/ledger")
    Traceback (most recent call last):
    espalier.core.errors.LedgerUnavailable: ...
    """


class SizeError(EspalierError):
    """A model or marginal would be too large. Nothing was read.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> plan = es.Plan("mst", epsilon=1, delta=1e-6, max_cells=2)
    >>> es.preview(es.Project("clinic", es.Schema(tuple(columns)), plan), rows=1000)
    Traceback (most recent call last):
    espalier.core.errors.SizeError: ...
    """

    def __init__(self, message: str, **data: Unpack[ErrorData]) -> None:
        super().__init__(message, **data)
        self.data.setdefault("key", "max_cells")


class Unfinished(EspalierError):
    """An interrupted release cannot be resumed as requested: the table's rows are needed, or the release is damaged or
    has ended.

    >>> import espalier as es
    >>> es.resume("release")
    Traceback (most recent call last):
    espalier.core.errors.Unfinished: There is no unfinished release to release.
    """


class Cancelled(EspalierError):
    """The user cancelled the work.

    >>> import espalier as es, pandas as pd
    >>> frame = pd.DataFrame({"smoker": ["yes", "no"] * 500, "sick": ["yes", "no", "no", "no"] * 250})
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in frame]
    >>> project = es.Project("clinic", es.Schema(tuple(columns)), es.Plan("mst", epsilon=1, delta=1e-6))
    >>> def stop(fraction, message):
    ...     raise es.Cancelled("stopped")
    >>> es.release(project, frame, stop)
    Traceback (most recent call last):
    espalier.core.errors.Cancelled: stopped.
    """
