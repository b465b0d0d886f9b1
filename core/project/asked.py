"""Questions about a release, stored as text in a project file.

Columns, values and groups are written in the form that `espalier.core.analysis.figure_from_text` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from espalier.core.errors import ProjectError

Kind = Literal["proportion", "difference", "odds_ratio", "mean", "mean_difference", "quantile", "regression", "effect"]
MOST = 200
"""Maximum number of questions that a project keeps."""
_GROUPED = ("difference", "odds_ratio", "mean_difference")


@dataclass(frozen=True)
class AskedQuestion:
    """A question: its ``kind``, its subject ``of``, and the other parts that the kind needs.

    - ``of``: the event, the averaged column, or the outcome of a regression or an effect.
    - ``among``: conditions on the rows, which must all be met. ``group``: compared groups. ``treatment``: the treatment
      of an effect.
    - ``at``: the probability of a quantile. ``level``: the level of the interval.
    - ``on``: predictors of a regression, or the adjustment set of an effect (`None`: the cheapest valid set in
      the drawing).
    """

    kind: Kind
    of: str
    among: tuple[str, ...] = ()
    group: str = ""
    treatment: str = ""
    on: tuple[str, ...] | None = None
    at: float = 0.5
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ProjectError(f"asked: kind must be one of {', '.join(get_args(Kind))}", key="asked")
        if not self.of:
            raise ProjectError("asked: a question needs a subject (of)", key="asked")
        if (self.kind in _GROUPED) != bool(self.group):
            raise ProjectError(
                f"asked: a {self.kind} {'needs a' if self.kind in _GROUPED else 'cannot have a'} group", key="asked"
            )
        if (self.kind == "effect") != bool(self.treatment):
            raise ProjectError("asked: an effect needs a treatment; other kinds must not have one", key="asked")
        if self.kind == "regression" and not self.on:
            raise ProjectError("asked: a regression needs predictors", key="asked")
        if self.among and self.kind in ("regression", "effect"):
            raise ProjectError("asked: a regression or an effect cannot have conditions; remove among", key="asked")
        for key in ("at", "level"):
            if not 0 < getattr(self, key) < 1:
                raise ProjectError(f"asked: {key} must be between 0 and 1", key="asked")

    @classmethod
    def from_json(cls, data: Any) -> AskedQuestion:
        """Return a question of the project file; raises :class:`ProjectError`."""
        known = {f.name for f in fields(cls)}
        if not isinstance(data, Mapping) or not {"kind", "of"} <= set(data) <= known:
            raise ProjectError(
                f"asked: a question must be an object with the keys {', '.join(sorted(known))}",
                key="asked",
            )
        on = data.get("on")
        if on is not None and not (isinstance(on, list) and all(isinstance(name, str) for name in on)):
            raise ProjectError("asked: on must be a list of columns", key="asked")
        among = data.get("among", [])
        among = [among] if isinstance(among, str) and among else among or []
        if not (isinstance(among, list) and all(isinstance(text, str) for text in among)):
            raise ProjectError("asked: among must be a condition or a list of conditions", key="asked")
        numbers = {key: data[key] for key in ("at", "level") if key in data}
        if any(isinstance(x, bool) or not isinstance(x, int | float) for x in numbers.values()):
            raise ProjectError("asked: at and level must be numbers", key="asked")
        texts = {key: value for key, value in data.items() if key not in ("on", "among", "at", "level")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ProjectError("asked: the parts of a question must be text", key="asked")
        return cls(**texts, among=tuple(among), on=None if on is None else tuple(on), **numbers)

    def to_json(self) -> dict[str, Any]:
        """Return the question as the project file stores it."""
        among = {} if not self.among else {"among": self.among[0] if len(self.among) == 1 else list(self.among)}
        texts = {key: text for key in ("group", "treatment") if (text := getattr(self, key))}
        numbers = {"at": self.at} if self.kind == "quantile" else {}
        numbers |= {"level": self.level} if self.level != 0.95 else {}
        on = {} if self.on is None else {"on": list(self.on)}
        return {"kind": self.kind, "of": self.of, **among, **texts, **on, **numbers}


def read_asked(data: Any) -> tuple[AskedQuestion, ...]:
    """Return the questions of a project, without repetition; raises :class:`ProjectError`."""
    if not isinstance(data, list) or len(data) > MOST:
        raise ProjectError(f"asked must be a list of at most {MOST} questions", key="asked")
    return tuple(dict.fromkeys(map(AskedQuestion.from_json, data)))
