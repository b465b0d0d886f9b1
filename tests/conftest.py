"""Shared by all tests: where the real data is, and small projects to work on."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data, which is not part of the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"the real data is not here ({SHARED} is missing); it is never committed")
    return SHARED


@pytest.fixture
def samples() -> Path:
    return SAMPLES
