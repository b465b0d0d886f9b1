"""Tables of a linked release: invented identifiers, visits assigned to people, and dates in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.models.base import Codes
from espalier.core.project.dates import date_texts, day_number, invented
from espalier.core.project.linked import VISIT, Linked
from espalier.core.project.schema import MISSING, Schema
from espalier.core.release.output import write_texts
from espalier.core.tables.released import csv_bytes, linked_schemas

Texts = dict[str, list[str]]


@dataclass(frozen=True)
class LinkedTables:
    """Synthetic people and visits as text, with their schemas, by the names of their tables."""

    texts: Mapping[str, Texts]
    schemas: Mapping[str, Schema]

    def csv(self) -> dict[str, bytes]:
        """Return the CSV files by name."""
        return {f"{name}.csv": csv_bytes(self.schemas[name], texts) for name, texts in self.texts.items()}

    def write_parquet(self, name: str, path: Path) -> None:
        """Write one table as Parquet."""
        texts = self.texts[name]
        write_texts([texts], self.schemas[name], len(next(iter(texts.values()))), path)


def linked_tables(
    linked: Linked,
    schema: Schema,
    rows: Mapping[str, Sequence[str]],
    visits: Codes,
    number: NDArray[Any],
    rng: np.random.Generator,
) -> LinkedTables:
    """Return both tables of synthetic people.

    ``rows`` are the people with their first visit as text, ``visits`` the codes of all visits, ``number`` the code of
    the number of visits. Every visit has a person, and each person has exactly that number of visits.
    """
    many = np.asarray(number, dtype=np.int64) + 1
    who = np.repeat(np.arange(len(many)), many)
    at = np.arange(len(who)) - np.repeat(np.cumsum(many) - many, many)
    ids = invented(len(many), rng, "P")
    people = {linked.key: ids} | {linked.plain(n): list(rows[n]) for n in linked.person_columns(schema)}
    made: Texts = {linked.by: [ids[i] for i in who.tolist()], VISIT: [str(t + 1) for t in at.tolist()]}
    if linked.visit_key:
        made[linked.visit_key] = invented(len(who), rng, "V")
    for name in linked.visit_columns(schema):
        if name == linked.dated:
            made[linked.plain(name)] = _dates(linked, schema, rows[name], visits, (who, at), rng)
            continue
        first = iter(rows[name])
        later = iter(schema[name].decode(visits[name][who, at][at > 0], rng))
        made[linked.plain(name)] = [next(first) if t == 0 else next(later) for t in at.tolist()]
    return LinkedTables({linked.people: people, linked.visits: made}, linked_schemas(linked, schema))


def _dates(
    linked: Linked,
    schema: Schema,
    first: Sequence[str],
    visits: Codes,
    place: tuple[NDArray[np.int64], NDArray[np.int64]],
    rng: np.random.Generator,
) -> list[str]:
    """Return the date of each visit: the date of the first visit, plus the days since the previous visit.

    A visit without a known number of days has no date; later visits count from the last known date.
    """
    column, (who, at) = linked.gap_column(schema), place
    start = np.array([np.nan if (day := day_number(t)) is None else day for t in first], dtype=np.float64)
    gaps = np.zeros((len(start), linked.keep))
    texts = column.decode(visits[linked.gap_name][who, at][at > 0], rng)
    gaps[who[at > 0], at[at > 0]] = [np.nan if t == MISSING else float(t) for t in texts]
    days = np.minimum(start[:, None] + np.cumsum(np.nan_to_num(gaps), axis=1), date.max.toordinal())
    return date_texts(np.where(np.isnan(gaps), np.nan, days)[who, at])
