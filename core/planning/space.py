"""Disk space in bytes that a release needs in its folder, TMPDIR and the ledger. The space is checked before any budget
is spent.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from espalier.core.errors import SizeError
from espalier.core.planning.preview import Preview
from espalier.core.project.plan import IN_MEMORY
from espalier.core.project.schema import Column, smallest_unsigned

NUMBER = 12
"""Bytes per number in a file."""
FURTHER = 4 << 20
"""Bytes of the report, the statement and other small files of a release."""


@dataclass(frozen=True)
class Space:
    """Upper bounds in bytes: ``out`` in the folder, ``temporary`` in TMPDIR, ``ledger`` in the ledger's database."""

    out: int
    temporary: int
    ledger: int

    @classmethod
    def of(cls, shown: Preview, rows: int) -> Space:
        """Return the space needed by a release of ``rows`` rows, from public facts: labels, cells and the model's
        size.
        """
        schema = shown.project.schema
        table = rows * sum(_longest(column) + 1 for column in schema.columns)
        answers = 8 * sum(line.cells or 1 for line in (*shown.lines, *shown.private_evaluation))
        files = table + shown.size.bytes + answers + FURTHER
        codes = rows * sum(smallest_unsigned(column.size).itemsize for column in schema.columns)
        out = files + table * shown.project.plan.copies
        return cls(out, codes if rows > IN_MEMORY else 0, answers + min(files, 64 << 20))

    def check(self, out: Path | None, ledger: Path | None) -> None:
        """Raise :class:`SizeError` if one of the disks has too little space. Nothing has been drawn yet."""
        wanted: dict[int, tuple[int, Path]] = {}
        for needed, place in ((self.out, out), (self.temporary, Path(tempfile.gettempdir())), (self.ledger, ledger)):
            if place is None or not needed:
                continue
            there = next(p for p in (place.absolute(), *place.absolute().parents) if p.exists())
            disk = there.stat().st_dev
            wanted[disk] = wanted.get(disk, (0, there))[0] + needed, there
        for needed, place in wanted.values():
            free = shutil.disk_usage(place).free
            if free < needed:
                raise SizeError(
                    f"the disk that holds {place} has {free / 2**20:,.0f} MiB free, but the release may need "
                    f"{needed / 2**20:,.0f} MiB there. Nothing was drawn. Free some space, or choose another folder",
                    limit=free,
                    path=str(place),
                    key="rows",
                )


def _longest(column: Column) -> int:
    """Return the length of a column's longest cell in bytes."""
    if column.kind == "numeric":
        return NUMBER
    return max((len(label.encode()) for label in column.labels), default=1)
