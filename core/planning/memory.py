"""Memory needed by a release, in bytes: for the process, the rows that are read, the model, and the synthetic rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from espalier.core.errors import SizeError
from espalier.core.methods import method_of
from espalier.core.models.graphical import Size
from espalier.core.process_memory import available, used
from espalier.core.project.plan import Plan, rows_in_memory, rows_shown
from espalier.core.project.schema import Column, Schema, smallest_unsigned
from espalier.core.tables.frames import LARGE_CELLS
from espalier.core.tables.parquet_files import BATCH_CELLS, BATCH_ROWS

PROCESS = 190 << 20
"""Memory of Python and the libraries of a release, before a row is read."""
READ, NUMBER, POINTER, TEXT = 5, 8, 8, 60
"""Bytes per cell while a file is read, per number, per reference to text, and per separate string."""
IN_BATCH = 16
"""Bytes per cell in a batch, for tables that are read or written batch by batch."""
DRAWN = 12
"""Bytes per cell while a numeric model draws the rows."""


@dataclass(frozen=True)
class Memory:
    """Peak memory of a release, in bytes. ``rows`` is the number of rows that ``input`` and ``output`` assume. If it is
    confidential, it is `None` and both are 0.

    The estimates follow from public facts: the schema, the plan and the number of rows. On the tables of
    ``benchmarks/memory.py`` the peak is within a factor of 1.5.
    """

    process: int
    input: int
    model: int
    output: int
    rows: int | None

    @classmethod
    def of(cls, schema: Schema, plan: Plan, size: Size, rows: int | None) -> Memory:
        """Return the memory that a release of ``rows`` rows needs, with a model of ``size``."""
        if rows is None:
            return cls(PROCESS, 0, size.bytes, 0, None)
        columns = schema.columns
        held = rows * len(columns) <= LARGE_CELLS
        made = plan.rows or rows
        numbers = method_of(plan).capabilities.numbers  # this model draws all rows at once
        batched = made > rows_in_memory(len(columns)) and not numbers
        shown = rows_shown(len(columns)) if batched else made
        batch = IN_BATCH * min(BATCH_ROWS * len(columns), BATCH_CELLS)
        output = shown * sum(map(_made, columns)) + (batch if batched else 0)
        output += made * plan.copies * sum(map(_code, columns)) + numbers * made * len(columns) * DRAWN
        return cls(PROCESS, rows * sum(map(_read, columns)) if held else batch, size.bytes, output, rows)

    @property
    def total(self) -> int:
        """Total number of bytes."""
        return self.process + self.input + self.model + self.output

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for the command line."""
        return {**vars(self), "total": self.total}

    def check(self) -> None:
        """Raise :class:`SizeError` if this process cannot allocate this much memory. Nothing has been drawn yet.

        The message does not state how much memory is available, because that would reveal how many rows the server
        holds.
        """
        left = available()
        if left is None or self.total - used() <= left:
            return
        parts = ("process", "input", "model", "output")
        said = ", ".join(f"{name} {getattr(self, name) / 2**20:,.0f}" for name in parts)
        raise SizeError(
            f"the release may need {self.total / 2**20:,.0f} MiB of memory ({said}), more than this process can use. "
            "Nothing was drawn. Coarsen the columns with the most categories, or give the process more memory",
            key="rows",
        )


def _code(column: Column) -> int:
    return smallest_unsigned(column.size).itemsize


def _read(column: Column) -> int:
    """Return the bytes per cell of a table in memory: for its code, for its number if it is numeric, and for reading
    it.
    """
    return _code(column) + (NUMBER if column.kind == "numeric" else 0) + READ


def _made(column: Column) -> int:
    """Return the bytes of a synthetic cell: its code, a reference to its text, the text itself, and its place in the
    file.
    """
    if column.kind != "numeric":
        return _code(column) + POINTER + 1 + max((len(label.encode()) for label in column.labels), default=1)
    own = 0 if column.integer else TEXT
    return _code(column) + POINTER + NUMBER + own + 6
