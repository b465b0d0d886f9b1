"""Questions about a release, stored as text in a project file.

Columns, values and groups are written as `espalier.core.analysis.figure_from_text` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from espalier.core.errors import ProjectError

Kind = Literal["proportion", "difference", "odds_ratio", "mean", "mean_difference", "regression", "effect"]
MOST = 200
"""Largest number of questions that a project keeps."""
_GROUPED = ("difference", "odds_ratio", "mean_difference")


@dataclass(frozen=True)
class AskedQuestion:
    """One question: its ``kind``, what it is ``of``, and the rest that the kind needs.

    - ``of``: the event, the averaged column, or the outcome of a regression or an effect.
    - ``among``: rows of a proportion or a mean. ``group``: compared groups. ``treatment``: of an effect.
    - ``on``: predictors of a regression, or the adjustment set of an effect (`None`: the drawing's cheapest).
    """

    kind: Kind
    of: str
    among: str = ""
    group: str = ""
    treatment: str = ""
    on: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ProjectError(f"asked: kind must be one of {', '.join(get_args(Kind))}", key="asked")
        if not self.of:
            raise ProjectError("asked: a question needs its subject (of)", key="asked")
        if (self.kind in _GROUPED) != bool(self.group):
            raise ProjectError(
                f"asked: a {self.kind} {'needs' if self.kind in _GROUPED else 'has no'} group", key="asked"
            )
        if (self.kind == "effect") != bool(self.treatment):
            raise ProjectError("asked: an effect, and nothing else, needs a treatment", key="asked")
        if self.kind == "regression" and not self.on:
            raise ProjectError("asked: a regression needs predictors", key="asked")

    @classmethod
    def from_json(cls, data: Any) -> AskedQuestion:
        """Return a question of the project file; raises :class:`ProjectError`."""
        known = {f.name for f in fields(cls)}
        if not isinstance(data, Mapping) or not {"kind", "of"} <= set(data) <= known:
            raise ProjectError(f"asked: a question is an object with the keys {', '.join(sorted(known))}", key="asked")
        on = data.get("on")
        if on is not None and not (isinstance(on, list) and all(isinstance(name, str) for name in on)):
            raise ProjectError("asked: on must be a list of columns", key="asked")
        texts = {key: value for key, value in data.items() if key != "on"}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ProjectError("asked: the parts of a question are texts", key="asked")
        return cls(**texts, on=None if on is None else tuple(on))

    def to_json(self) -> dict[str, Any]:
        """Return the question as the project file stores it."""
        texts = {key: text for key in ("among", "group", "treatment") if (text := getattr(self, key))}
        return {"kind": self.kind, "of": self.of, **texts, **({} if self.on is None else {"on": list(self.on)})}


def read_asked(data: Any) -> tuple[AskedQuestion, ...]:
    """Return the questions of a project, each once; raises :class:`ProjectError`."""
    if not isinstance(data, list) or len(data) > MOST:
        raise ProjectError(f"asked must be a list of at most {MOST} questions", key="asked")
    return tuple(dict.fromkeys(map(AskedQuestion.from_json, data)))
