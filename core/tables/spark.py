"""Codes that Spark writes: Parquet in a private folder, gone as soon as they are read.

Spark may work a cached result out a second time, so nothing is cached: one job reads the table and writes the codes,
and all that is asked later is asked of what it wrote. It must run on this machine, since the folder is here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from core.progress import interruptible


def written(session: Any, query: str, batch_rows: int, pulse: Callable[[], None]) -> Iterator[Any]:
    """The answer to ``query`` as Arrow batches; raising from ``pulse`` stops Spark. Close it: the folder goes."""
    from pyarrow import parquet

    with tempfile.TemporaryDirectory(prefix="espalier-") as folder:  # nobody else may look into it
        codes = Path(folder) / "codes"
        interruptible(
            lambda: session.sql(query).write.parquet(codes.as_uri()), pulse, session.sparkContext.cancelAllJobs
        )
        for file in sorted(codes.glob("*.parquet")):
            with parquet.ParquetFile(file) as part:
                yield from part.iter_batches(batch_rows)
            file.unlink()
