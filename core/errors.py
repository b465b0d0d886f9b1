"""What can go wrong, in words for the person at the screen.

Every exception carries the data it speaks of (column, clique, requested, remaining …) as attributes beside
its text, so that a page can place it and a test can read it.
"""

from __future__ import annotations

import zlib
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

DAMAGED = (
    *(AttributeError, LookupError, ValueError, TypeError, OverflowError, OSError, EOFError, RuntimeError, MemoryError),
    *(BadZipFile, zlib.error, TokenError),
)
"""What readers of archives, arrays and JSON raise for files that somebody changed."""


class EspalierError(Exception):
    """Base of all errors a user can mend; the text says what is wrong, where, and what to do.

    Keyword arguments become attributes (``error.column``, ``error.clique`` …).
    """

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.data = data

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(name) from None


class SchemaError(EspalierError):
    """A column's public description is wrong or not confirmed."""


class TableError(EspalierError):
    """A table cannot be read, or does not fit its schema."""


class GraphError(EspalierError):
    """The drawn graph or the roles are not possible (a cycle, an unknown column …)."""


class ProjectError(EspalierError):
    """A project file is broken, or its parts conflict."""


class BudgetError(EspalierError):
    """A measurement was asked for that the budget does not cover. Nothing was read."""


class LedgerError(BudgetError):
    """The ledger refuses: not enough is left, another unit of privacy, an unknown table. Nothing was read."""


class LedgerUnavailable(EspalierError):
    """The ledger cannot be reached, read or written (a full disk, a lost connection, a damaged file)."""


class SizeError(EspalierError):
    """A model or marginal would be too large. Nothing was read."""


class Cancelled(EspalierError):
    """The user cancelled the work."""
