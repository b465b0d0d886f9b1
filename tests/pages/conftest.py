"""Fixtures that the tests of the app share."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.app import start


@pytest.fixture
def app() -> AppTest:
    return start()
