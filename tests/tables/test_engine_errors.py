"""The guard of engine errors replaces an engine's messages and leaves Espalier's own unchanged."""

from __future__ import annotations

import pytest

from espalier.core.errors import Cancelled, TableError
from espalier.core.tables.engine_errors import OURS, engine_errors


def guarded(error, *ours):
    with engine_errors("the relation 't': the engine failed while it counted", *ours):
        raise error


@pytest.mark.parametrize("error", [ValueError("invalid input: 'secret cell'"), OSError("secret"), KeyError("secret")])
def test_an_engines_own_message_is_replaced(error):
    with pytest.raises(TableError) as raised:
        guarded(error)
    assert str(raised.value) == f"the relation 't': the engine failed while it counted ({type(error).__name__})."
    assert raised.value.__suppress_context__, "a traceback would print the engine's message"


@pytest.mark.parametrize("error", [TableError("column 'a'"), Cancelled("stop"), MemoryError(), AttributeError("a bug")])
def test_our_own_errors_pass(error):
    with pytest.raises(type(error)) as raised:
        guarded(error)
    assert raised.value is error


def test_where_a_driver_converts_cells_its_type_errors_are_replaced_too():
    with pytest.raises(TableError, match=r"counted \(TypeError\)"):
        guarded(TypeError("cannot convert 'secret'"), OURS)
