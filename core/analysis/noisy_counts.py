"""``answers.npz``: the noisy counts to which the model of a release was fitted. Copies can be made from it at any time.

These counts were paid for from the budget, so they may be shared. The file contains only plain arrays and text, no
pickled objects.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import DAMAGED, ProjectError
from espalier.core.graph.separations import Clique
from espalier.core.methods import Fitted
from espalier.core.methods.embedding import Embedded
from espalier.core.methods.marginals import CountsInPart, Marginals
from espalier.core.methods.question_answers import Answers, Asked
from espalier.core.methods.question_links import scopes_of
from espalier.core.privacy.draws import Measurement, Merged, SumMeasurement
from espalier.core.project.file import Project

COUNTS = "answers.npz"
FORMAT = "espalier-counts/1"


@dataclass(frozen=True)
class NoisyCounts:
    """Noisy counts of a fit.

    - ``measurements``: counts of the method's marginals.
    - ``rows``: the public number of rows; `None` under add-remove.
    - ``merged``: groups of categories. ``impossible``: cells that the constraints rule out.
    - ``asked``: marginals counted for questions and counts. ``histograms``: noisy histograms of the counts.
    - ``direct``: noisy answers to all questions; `None` if they were not asked directly.
    - ``in_part``: the model was trained on more than these counts, so it cannot be fitted to them again.
    """

    measurements: tuple[Measurement, ...]
    rows: int | None
    merged: Merged = field(default_factory=dict)
    impossible: Mapping[Clique, NDArray[np.bool_]] = field(default_factory=dict)
    asked: tuple[Measurement, ...] = ()
    histograms: tuple[Measurement, ...] = ()
    direct: SumMeasurement | None = None
    in_part: bool = False

    @classmethod
    def of(cls, fitted: Fitted) -> NoisyCounts | None:
        """Return the counts of ``fitted``; `None` for a method that does not fit marginals, and for Laplace noise."""
        if isinstance(fitted, Embedded):
            return cls.of(fitted.base)
        if isinstance(fitted, Asked):
            base, answers = fitted.base, fitted.answers
            if answers.noise == "laplace":  # copies and intervals are proved only for Gaussian noise
                return None
            more = (answers.marginals, answers.histograms, answers.direct)
            return cls(base.measurements, base.rows, base.merged, base.impossible, *more)
        if isinstance(fitted, CountsInPart):
            told = fitted.told
            return cls(told.measurements, told.rows, in_part=True)
        if not isinstance(fitted, Marginals):
            return None
        return cls(fitted.measurements, fitted.rows, fitted.merged, fitted.impossible)

    @property
    def marginals(self) -> tuple[Measurement, ...]:
        """All counted marginals, including those counted for questions."""
        return (*self.measurements, *self.asked)

    def with_questions(self, project: Project) -> Asked | None:
        """Return marginals, questions and counts together, ready for another fit; `None` without questions."""
        if not (self.asked or self.histograms or self.direct):
            return None
        sizes = dict(project.schema.sizes)
        counted = {n: int(self.merged[n].max()) + 1 if n in self.merged else size for n, size in sizes.items()}
        base = Marginals(sizes, counted, self.rows, self.measurements, merged=self.merged, impossible=self.impossible)
        questions, counts = project.question_list.resolve(project.schema)
        answers = Answers(questions, counts, self.direct, self.asked, self.histograms)
        return Asked(base, answers, tuple(scopes_of(project).values()))

    def dumps(self) -> bytes:
        """Return the contents of the file."""
        head: dict[str, Any] = {
            "format": FORMAT,
            "rows": self.rows,
            "merged": list(self.merged),
            "impossible": [list(clique) for clique in self.impossible],
            "measurements": [_described(m) for m in self.measurements],
            "asked": [_described(m) for m in self.asked],
            "histograms": [_described(m) for m in self.histograms],
        }
        if self.in_part:
            head["in_part"] = True
        arrays: dict[str, NDArray[Any]] = {}
        for key, of in _ARRAYS.items():
            arrays |= {f"{of}_{i}": _whole(m.values) for i, m in enumerate(getattr(self, key))}
        if self.direct is not None:
            head["direct"] = {key: getattr(self.direct, key) for key in _TOLD}
            arrays["direct"] = self.direct.values
        arrays |= {f"merged_{i}": groups for i, groups in enumerate(self.merged.values())}
        arrays |= {f"impossible_{i}": mask for i, mask in enumerate(self.impossible.values())}
        out = io.BytesIO()
        text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        np.savez_compressed(out, allow_pickle=False, head=text, **arrays)
        return out.getvalue()

    @classmethod
    def loads(cls, data: bytes) -> NoisyCounts:
        """Read the output of `dumps`; raises :class:`ProjectError` for anything else."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                head = json.loads(file["head"].tobytes())
                if head["format"] != FORMAT:
                    raise ValueError(head["format"])
                counts = {
                    key: tuple(
                        Measurement(tuple(m["columns"]), _floats(file[f"{of}_{i}"]), m["sigma"], m["rho"], m["pool"])
                        for i, m in enumerate(head.get(key, []))
                    )
                    for key, of in _ARRAYS.items()
                }
                direct = SumMeasurement(**head["direct"], values=_floats(file["direct"])) if "direct" in head else None
                merged = {name: file[f"merged_{i}"].astype(np.intp) for i, name in enumerate(head["merged"])}
                held = [file[f"impossible_{i}"].astype(np.bool_) for i, _ in enumerate(head["impossible"])]
                impossible = dict(zip(map(tuple, head["impossible"]), held, strict=True))
                return cls(
                    rows=head["rows"],
                    merged=merged,
                    impossible=impossible,
                    direct=direct,
                    in_part=bool(head.get("in_part")),
                    **counts,
                )
        except DAMAGED as error:
            raise ProjectError(f"{COUNTS} is damaged, or is not a file of noisy counts.") from error


_ARRAYS = {"measurements": "counts", "asked": "asked", "histograms": "histogram"}
"""Prefix of the array names for each list of counts."""
_TOLD = ("what", "sigma", "sensitivity", "rho", "pool")


def _described(m: Measurement) -> dict[str, Any]:
    return {"columns": list(m.clique), "sigma": m.sigma, "rho": m.rho, "pool": m.pool}


def _floats(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.astype(np.float64)


def _whole(values: NDArray[np.float64]) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return whole numbers as integers, which compress better. Counts with discrete noise are whole."""
    near = np.rint(values)
    return near.astype(np.int64) if np.array_equal(near, values) else values
