"""Unpack row codes that an engine packed into a few whole numbers (`espalier.core.tables.encoding_query.packed`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from espalier.core.project.schema import Schema, smallest_unsigned
from espalier.core.tables.code_file import PERSON
from espalier.core.tables.encoding import Batch
from espalier.core.tables.row_limits import runs


def unpacked(batch: Any, schema: Schema) -> Batch:
    """Return the codes of an Arrow batch with the columns n0, n1, …, and the person if there is one."""
    radices = [column.size + 2 for column in schema.columns]
    codes: list[Any] = [None] * len(radices)
    for i, run in enumerate(runs(radices)):
        number = batch.column(f"n{i}").to_numpy().view(np.uint64)
        for place in reversed(range(len(radices))[run]):
            above = number // np.uint64(radices[place])  # faster than divmod
            code = number - above * np.uint64(radices[place])
            codes[place] = code.astype(smallest_unsigned(radices[place]))
            number = above
    return Batch(codes, batch.column(PERSON) if PERSON in batch.schema.names else None)
