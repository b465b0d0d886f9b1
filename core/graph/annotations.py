"""Expert's note on an arrow or a column: text, certainty and source, and a flag for arrows that may break elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from espalier.core.errors import GraphError

BELIEFS = ("established", "plausible", "contested")
MOST = 4000
"""Maximum number of characters of a note or a source."""


@dataclass(frozen=True)
class Annotation:
    """A note on an arrow or a column. ``belief`` is one of :data:`BELIEFS`, or empty if none was given;
    ``may_break`` (arrows only) means that the arrow may be wrong where the table will be used.

    Raises :class:`GraphError` for an unknown belief, or for text that is invalid or too long.
    """

    note: str = ""
    belief: str = ""
    source: str = ""
    may_break: bool = False

    def __post_init__(self) -> None:
        for key in ("note", "source"):
            text = getattr(self, key)
            if not isinstance(text, str):
                raise GraphError(f"the {key} of an annotation must be text, not {text!r}")
            if len(text) > MOST:
                raise GraphError(f"the {key} of an annotation has {len(text):,} characters; the limit is {MOST:,}")
        if self.belief not in ("", *BELIEFS):
            raise GraphError(f"belief is {self.belief!r}; it must be one of {', '.join(BELIEFS)}")
        if not isinstance(self.may_break, bool):
            raise GraphError("may_break must be true or false")

    def __bool__(self) -> bool:
        return self != Annotation()

    @property
    def words(self) -> str:
        """The whole note on one line; empty if there is no note."""
        said = [
            self.belief,
            "may break elsewhere" if self.may_break else "",
            f"source: {self.source}" if self.source else "",
            self.note,
        ]
        return "; ".join(" ".join(part.split()) for part in said if part)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not empty, as the project file stores them."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name)}


def annotations_to_json(annotations: Mapping[tuple[str, ...], Annotation]) -> list[dict[str, Any]]:
    """Return annotations as the project file stores them: ``{"of": [column]}`` or ``{"of": [cause, effect]}``, …"""
    return [{"of": list(of), **said.to_json()} for of, said in annotations.items()]


def annotations_from_json(data: Any) -> dict[tuple[str, ...], Annotation]:
    """Return the annotations in the project file; raise :class:`GraphError`."""
    if not isinstance(data, list):
        raise GraphError("dag: annotations must be a list of objects")
    known = {f.name for f in fields(Annotation)}
    out: dict[tuple[str, ...], Annotation] = {}
    for item in data:
        of = item.get("of") if isinstance(item, Mapping) else None
        if not (isinstance(of, list) and len(of) in (1, 2) and all(isinstance(name, str) for name in of)):
            raise GraphError('dag: an annotation needs "of": [column] or [cause, effect]')
        if odd := set(item) - known - {"of"}:
            raise GraphError(f"dag: unknown key {sorted(odd)[0]!r} in an annotation")
        if tuple(of) in out:
            raise GraphError(f"dag: {' → '.join(of)} has two annotations; write only one")
        out[tuple(of)] = Annotation(**{key: value for key, value in item.items() if key != "of"})
    return out
