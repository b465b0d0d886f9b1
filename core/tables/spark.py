"""Codes that Spark writes as Parquet in a private folder, which is deleted as soon as they are read.

Spark may compute a cached result again, so nothing is cached. One job reads the table and writes the codes to a file
that every later request reads. Spark must run on this machine, since the folder is here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from espalier.core.progress import interruptible
from espalier.core.project.schema import Schema
from espalier.core.tables.encoding import Batch
from espalier.core.tables.packing import unpacked

BATCH_ROWS = 1 << 18


def written(session: Any, query: str, schema: Schema, pulse: Callable[[], None]) -> Generator[Batch]:
    """Yield the codes that ``query`` (of :func:`espalier.core.tables.encoding_query.packed`) returns.

    An exception raised by ``pulse`` stops Spark. Closing the generator deletes the folder.
    """
    from pyarrow import parquet

    with tempfile.TemporaryDirectory(prefix="espalier-") as folder:  # readable only by this user
        codes = Path(folder) / "codes"
        interruptible(
            lambda: session.sql(query).write.parquet(codes.as_uri(), compression="none"),
            pulse,
            session.sparkContext.cancelAllJobs,
        )
        for file in sorted(codes.glob("*.parquet")):
            with parquet.ParquetFile(file) as part:
                for batch in part.iter_batches(BATCH_ROWS):
                    yield unpacked(batch, schema)
            file.unlink()
