"""Record of the dictionaries that declared parts of a schema. A person's statement makes each dictionary public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from espalier.core.errors import ProjectError

KEY = "dictionaries"
STATEMENT = "This dictionary was not produced from these rows"
"""Statement that a person makes once per file. A schema that was inferred from data counts as a guess instead."""


@dataclass(frozen=True)
class DeclaredBy:
    """A dictionary: the name and format of its file, a digest of its declarations, and the columns that it declares."""

    name: str
    format: str
    digest: str
    columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the entry as the project file stores it."""
        return {
            "name": self.name,
            "format": self.format,
            "digest": self.digest,
            "columns": list(self.columns),
            "statement": STATEMENT,
        }

    @classmethod
    def from_json(cls, data: Any) -> DeclaredBy:
        """Return an entry of the project file; raises :class:`ProjectError`."""
        texts = ("name", "format", "digest", "statement")
        if not isinstance(data, Mapping) or set(data) != {*texts, "columns"}:
            raise ProjectError(f"each entry of {KEY} needs a name, format, digest, columns and statement", key=KEY)
        columns = data["columns"]
        if not all(isinstance(data[key], str) for key in texts) or not isinstance(columns, list):
            raise ProjectError(f"each entry of {KEY} must contain strings, with columns as a list of names", key=KEY)
        if not all(isinstance(name, str) for name in columns):
            raise ProjectError(f"the columns in {KEY} must be names of columns", key=KEY)
        if data["statement"] != STATEMENT:
            raise ProjectError(f'{KEY}: the statement must read "{STATEMENT}"', key=KEY)
        return cls(data["name"], data["format"], data["digest"], tuple(columns))


def read_declared_by(data: Any) -> tuple[DeclaredBy, ...]:
    """Return the entries of the project file; raises :class:`ProjectError`."""
    if not isinstance(data, list):
        raise ProjectError(f"{KEY} must be a list", key=KEY)
    return tuple(map(DeclaredBy.from_json, data))
