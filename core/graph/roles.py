"""Roles of columns: protected, outcome, admissible, inadmissible (PrivCI §I: V = S ∪ O ∪ A ∪ I)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from espalier.core.errors import GraphError


@dataclass(frozen=True)
class Roles:
    """Columns of each role, by name. A column has at most one role; otherwise raises :class:`GraphError`.

    >>> import espalier as es
    >>> es.Roles(outcome=("hired",), protected=("gender",)).of("gender")
    'protected'
    """

    outcome: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    admissible: tuple[str, ...] = ()
    inadmissible: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for role, names in self.items():
            for name in names:
                if name in seen:
                    where = f"listed twice as {role}" if seen[name] == role else f"both {seen[name]} and {role}"
                    raise GraphError(f"column {name!r} is {where}; give it one role", column=name)
                seen[name] = role

    def items(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return (role, columns) pairs in a fixed order."""
        return tuple((f.name, getattr(self, f.name)) for f in fields(self))

    def of(self, column: str) -> str | None:
        """Return the role of ``column``, if it has one."""
        return next((role for role, names in self.items() if column in names), None)

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise :class:`GraphError` if a role is given to something that is not a column."""
        known = set(names)
        for role, columns in self.items():
            for name in columns:
                if name not in known:
                    raise GraphError(f"role {role} names {name!r}, which is not a column", column=name)

    def to_json(self) -> dict[str, list[str]]:
        """Return the roles as the project file stores them."""
        return {role: list(names) for role, names in self.items()}

    @classmethod
    def from_json(cls, data: Any) -> Roles:
        """Return the roles in the project file; raise :class:`GraphError`."""
        if not isinstance(data, Mapping):
            raise GraphError("roles must be an object")
        known = {f.name for f in fields(cls)}
        if odd := set(data) - known:
            raise GraphError(f"roles: unknown role {sorted(odd)[0]!r}; use one of {', '.join(sorted(known))}")
        for role, names in data.items():
            if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                raise GraphError(f"roles: {role} must be a list of column names")
        return cls(**{role: tuple(names) for role, names in data.items()})
