"""One error for all columns that do not fit the schema, so that a table can be corrected in one step instead of column
by column.
"""

from __future__ import annotations

from collections.abc import Sequence

from espalier.core.errors import TableError

_HERE = "\0"


def together(errors: Sequence[TableError]) -> TableError:
    """Return one error for the errors of several columns; columns with the same fault share a sentence.

    The result names the columns and the faults exactly as the separate errors do.
    """
    if len(errors) == 1:
        return errors[0]
    groups: dict[str, list[str]] = {}
    for error in errors:
        name = str(error.data.get("column"))
        groups.setdefault(str(error).replace(f"column {name!r}", _HERE, 1), []).append(name)
    texts = []
    for text, names in groups.items():
        listed = ", ".join(map(repr, names))
        texts.append(text.replace(_HERE, f"column {listed}" if len(names) == 1 else f"each of the columns {listed}", 1))
    first = next((str(e.data["column"]) for e in errors if e.data.get("column")), None)
    return TableError(" ".join(texts), column=first, columns=[str(e.data.get("column")) for e in errors])
