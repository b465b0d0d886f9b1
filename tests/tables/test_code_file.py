"""Codes in a file: codes of any number of bits are read back unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.tables.code_file import CodeFile

SIZES = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "sixteen": 16,
    "more": 17,
    "many": 257,
    "people": 1 << 32,
}


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 1_001])
def test_columns_come_back_as_they_were_written(rows):
    rng, file = np.random.default_rng(rows), CodeFile(SIZES)
    written = [{name: rng.integers(0, size, n) for name, size in SIZES.items()} for n in (rows, 3 * rows)]
    for batch in written:
        file.append(batch)
    assert file.rows == 4 * rows
    for batch, back in zip(written, file.batches(), strict=True):
        assert all(np.array_equal(batch[name], back[name]) for name in SIZES)
    (first, second) = file.batches(("many", "three"))
    assert set(first) == {"many", "three"}
    assert np.array_equal(second["three"], written[1]["three"])
    assert first["three"].dtype == np.uint8
    first["three"][:] = 0  # the caller's own array


@pytest.mark.parametrize("name", ["one", "three", "five", "more"])
def test_a_code_that_is_too_large_is_refused_and_spoils_no_other(name):
    file = CodeFile(SIZES)
    good = {n: np.zeros(10, dtype=np.int64) for n in SIZES}
    with pytest.raises(ValueError, match="too large"):
        file.append(good | {name: np.full(10, SIZES[name])})
    assert file.rows == 0
    file.append(good)
    assert all(not column.any() for batch in file.batches() for column in batch.values())
