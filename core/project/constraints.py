"""Constraints of a project, which are public combinations that no row may have. They hold inside the model:
:meth:`Constraints.masks` returns the cells without probability, which the fit uses as its `Zeros`. No sensitivity
depends on constraints, because private rows may violate them.

A constraint guessed from the data is marked ``"guessed"`` and blocks a release until it is confirmed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from espalier.core.errors import ProjectError, SchemaError, SizeError
from espalier.core.graph.separations import Clique, Separation, clique_edges
from espalier.core.project.constraint_kinds import Determines, Impossible, Mask, Monotone, Range, Values, entry_error
from espalier.core.project.schema import NOT_KNOWN, Schema, ToBuy

Constraint = Impossible | Monotone | Determines
KEYS = ("impossible", "monotone", "determines")
"""Keys of the project file."""


@dataclass(frozen=True)
class Constraints:
    """All constraints of a project, which can be iterated over."""

    impossible: tuple[Impossible, ...] = ()
    monotone: tuple[Monotone, ...] = ()
    determines: tuple[Determines, ...] = ()

    def __iter__(self) -> Iterator[Constraint]:
        every: tuple[Constraint, ...] = (*self.impossible, *self.monotone, *self.determines)
        return iter(every)

    def __bool__(self) -> bool:
        return any(True for _ in self)

    @property
    def guessed(self) -> tuple[Constraint, ...]:
        """Constraints guessed from the data and not confirmed, which block a release."""
        return tuple(c for c in self if c.mark == "guessed")

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that the constraints link in the model's graph."""
        return clique_edges(c.columns for c in self)

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise :class:`ProjectError` unless every column of a constraint is in ``names``."""
        known = set(names)
        for constraint in self:
            for name in constraint.columns:
                if name not in known:
                    why = f"the constraint “{constraint}” names {name!r}, which is not a column"
                    raise ProjectError(why, column=name)

    @property
    def confirmed(self) -> Constraints:
        """The same constraints, with guesses marked as confirmed."""
        return Constraints(
            tuple(replace(c, mark="confirmed") if c.mark == "guessed" else c for c in self.impossible),
            tuple(replace(c, mark="confirmed") if c.mark == "guessed" else c for c in self.monotone),
            tuple(replace(c, mark="confirmed") if c.mark == "guessed" else c for c in self.determines),
        )

    def without(self, left_out: Iterable[Constraint]) -> Constraints:
        """Return the constraints without those in ``left_out``."""
        gone = list(left_out)
        return Constraints(
            tuple(c for c in self.impossible if c not in gone),
            tuple(c for c in self.monotone if c not in gone),
            tuple(c for c in self.determines if c not in gone),
        )

    def expanded(self, inside: Mapping[str, Mapping[str, Sequence[str]]]) -> Constraints:
        """Return the constraints over bought columns; ``inside`` maps each top code or group of a column to its
        categories.
        """

        def of_one(name: str, values: Values) -> Values:
            if isinstance(values, Range) or name not in inside:
                return values
            return tuple(t for text in values for t in inside[name].get(text, (text,)))

        impossible = (replace(c, values={n: of_one(n, v) for n, v in c.values.items()}) for c in self.impossible)
        return replace(self, impossible=tuple(impossible))

    def __add__(self, other: Constraints) -> Constraints:
        """Return the constraints of both projects, without repetition."""
        new = other.without([o for o in other if any(str(o) == str(c) for c in self)])
        return Constraints(
            (*self.impossible, *new.impossible), (*self.monotone, *new.monotone), (*self.determines, *new.determines)
        )

    def masks(self, schema: Schema, max_cells: int = 10_000_000) -> dict[Clique, Mask]:
        """Return the cells without probability: clique in schema order → mask, true if no row is allowed in the cell.

        A pair a ≤ c that follows from a ≤ b ≤ c is left out if b is never missing, because it would only enlarge the
        model. Raises :class:`SchemaError` or :class:`SizeError` if a constraint does not fit the columns.
        """
        out: dict[Clique, Mask] = {}
        found: list[Constraint] = [*self.impossible, *_needed(self.monotone, schema), *self.determines]
        for constraint in found:
            named = constraint.columns
            for name in named:
                if name not in schema:
                    why = f"the constraint “{constraint}” names {name!r}, which is not a column"
                    raise SchemaError(why, column=name)
            columns = [schema[name] for name in named]
            of_categories = isinstance(constraint, Impossible)
            if bought := next(
                (c.name for c in columns if isinstance(c, ToBuy) and not (of_categories and c.named)), None
            ):
                raise SchemaError(f"the constraint “{constraint}” names {bought!r}. {NOT_KNOWN}", column=bought)
            cells = math.prod(c.size for c in columns)
            if cells > max_cells:
                raise SizeError(
                    f"the constraint “{constraint}” would need a table of {cells:,} cells; the limit is {max_cells:,}",
                    clique=named,
                    cells=cells,
                    limit=max_cells,
                )
            clique = schema.clique(named)
            mask = constraint.mask(columns).transpose([named.index(name) for name in clique])
            if mask.all():
                raise SchemaError(f"the constraint “{constraint}” leaves no possible row", column=named[0])
            out[clique] = out[clique] | mask if clique in out else mask
        self._check_numbers(schema)
        return out

    def _check_numbers(self, schema: Schema) -> None:
        """Check that no column is both an effect in a value table and part of an ordered pair."""
        ordered = {name for c in self.monotone for name in c.columns}
        for c in self.determines:
            if schema[c.effect].kind == "numeric" and c.effect in ordered:
                raise SchemaError(
                    f"{c.effect!r} is determined by another column, so it cannot be in a monotone pair; remove one "
                    "of these constraints",
                    column=c.effect,
                )

    def conflict(
        self, separations: Iterable[Separation], edges: Iterable[tuple[str, str]] = ()
    ) -> tuple[Separation, str] | None:
        """Return a separation that the constraints, together with the ``edges`` that a plan needs anyway, would
        violate, and the reason; None if all separations hold. A constraint joins its columns in the model's graph,
        because the possible values of one depend on the others. A separation holds only if no path bypasses it.
        """
        joined = set(map(frozenset, self.edges))
        every = [*self.edges, *edges]
        for separation in separations:
            path = separation.path(every)
            if path is None or not any(frozenset(p) in joined for p in itertools.pairwise(path)):
                continue
            step = next(p for p in itertools.pairwise(path) if frozenset(p) in joined)
            guilty = next(c for c in self if set(step) <= set(c.columns))
            given = " and ".join(separation.given)
            return separation, (
                f"“{guilty}” joins {step[0]} and {step[1]}, but the frame separates {', '.join(separation.left)} "
                f"from {', '.join(separation.right)}{f' given {given}' if given else ''}: the path "
                f"{' – '.join(path)} bypasses it. Leave the constraint out, or change the graph or the roles"
            )
        return None

    def check(self, schema: Schema, separations: Iterable[Separation] = (), max_cells: int = 10_000_000) -> None:
        """Raise :class:`ProjectError` with the reason if the constraints do not fit the columns or contradict a
        separation.
        """
        self.masks(schema, max_cells)
        if found := self.conflict(separations):
            raise ProjectError(found[1], separation=found[0])

    def to_json(self) -> dict[str, Any]:
        """Return the keys of the project file; empty without constraints."""
        out = {key: [c.to_json() for c in getattr(self, key)] for key in KEYS}
        return {key: given for key, given in out.items() if given}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Constraints:
        """Return the constraints in a project file's keys; raises :class:`ProjectError`."""
        given = {key: data.get(key, []) for key in KEYS}
        for key, entries in given.items():
            if not isinstance(entries, list):
                raise entry_error(key, "must be a list")
        made = cls(
            tuple(map(Impossible.from_json, given["impossible"])),
            tuple(map(Monotone.from_json, given["monotone"])),
            tuple(map(Determines.from_json, given["determines"])),
        )
        if ring := _ring(made.monotone):
            raise entry_error(
                "monotone",
                f"{' ≤ '.join(ring)} is a cycle, which would make all of these columns equal; remove a pair",
            )
        return made


def _needed(pairs: Sequence[Monotone], schema: Schema) -> list[Monotone]:
    """Return the pairs that do not follow from other pairs through columns that are never missing."""
    above: dict[str, set[str]] = {}
    for p in pairs:
        above.setdefault(p.lower, set()).add(p.upper)

    def follows(p: Monotone) -> bool:
        waiting = [n for n in above[p.lower] if n != p.upper and n in schema and not schema[n].missing]
        seen = set(waiting)
        for name in waiting:
            for other in above.get(name, set()) - seen:
                if other == p.upper:
                    return True
                if other in schema and not schema[other].missing:
                    seen.add(other)
                    waiting.append(other)
        return False

    return [p for p in dict.fromkeys(pairs) if not follows(p)]


def _ring(pairs: Sequence[Monotone]) -> tuple[str, ...]:
    """Return a cycle of pairs; empty if there is none."""
    above: dict[str, list[str]] = {}
    for p in pairs:
        above.setdefault(p.lower, []).append(p.upper)
    for start in above:
        came: dict[str, str] = {}
        waiting = [start]
        for name in waiting:
            for other in above.get(name, []):
                if other == start:
                    walk = [start, name]
                    while walk[-1] != start:
                        walk.append(came[walk[-1]])
                    return tuple(reversed(walk))
                if other not in came:
                    came[other] = name
                    waiting.append(other)
    return ()
