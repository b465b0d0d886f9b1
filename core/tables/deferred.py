"""Rows that are read only when something private is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from espalier.core.project.public_grid import as_read
from espalier.core.project.schema import Schema
from espalier.core.tables.source import More, Source


@dataclass(frozen=True)
class Facts:
    """Public facts about private rows; see the properties of `espalier.core.tables.source.Source`.

    ``rows`` is the number of rows, if it is public.
    """

    rows: int | None
    names_people: bool
    person_column: str | None
    row_limit: int | None


class Deferred:
    """A source that is read only when something private is needed."""

    def __init__(self, facts: Facts, schema: Schema, load: Callable[[], Source]) -> None:
        """``load`` opens the rows, which must agree with ``facts`` and ``schema``."""
        self._facts, self.schema, self._load = facts, schema, load
        self.names_people, self.person_column = facts.names_people, facts.person_column
        self.row_limit = facts.row_limit

    @cached_property
    def _rows(self) -> Source:
        return self._load()

    @property
    def rows(self) -> int:
        """Number of rows. The rows are read only if it is private."""
        return self._rows.rows if self._facts.rows is None else self._facts.rows

    def encodes(self, schema: Schema) -> bool:
        """Return whether the rows are encoded for ``schema``."""
        return self.schema == schema or as_read(self.schema) == as_read(schema)

    def recoded(self, schema: Schema) -> Deferred:
        """Return the rows as ``schema`` describes them."""
        return Deferred(self._facts, schema, lambda: self._rows.recoded(schema))

    def widened(self, schema: Schema, more: More) -> Deferred:
        """Return the rows with additional columns."""
        return Deferred(self._facts, schema, lambda: self._rows.widened(schema, more))

    def close(self) -> None:
        """Release the space on disk, if the rows were read."""
        if "_rows" in vars(self):
            self._rows.close()

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute from the rows, which are read first."""
        return getattr(self._rows, name)
