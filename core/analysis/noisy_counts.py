"""``answers.npz``: the noisy counts that a release's model was fitted to, so that copies can be made at any time.

They are what the budget bought, so they may be handed over; the file holds plain arrays and text, no pickle.
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
from espalier.core.methods.marginals import Marginals
from espalier.core.methods.question_answers import Answers, Asked
from espalier.core.methods.question_links import scopes_of
from espalier.core.privacy.draws import Measurement, Merged, SumMeasurement
from espalier.core.project.file import Project

COUNTS = "answers.npz"
FORMAT = "espalier-counts/1"


@dataclass(frozen=True)
class NoisyCounts:
    """The ``measurements`` of a fit, the number of ``rows`` it knew (None under add-remove), its ``merged`` groups, and
    the cells that it held to be ``impossible``.

    Where questions or counts over rows were measured beside them, ``asked`` are the marginals counted for these,
    ``histograms`` those of the counts, and ``direct`` the answers to all questions.
    """

    measurements: tuple[Measurement, ...]
    rows: int | None
    merged: Merged = field(default_factory=dict)
    impossible: Mapping[Clique, NDArray[np.bool_]] = field(default_factory=dict)
    asked: tuple[Measurement, ...] = ()
    histograms: tuple[Measurement, ...] = ()
    direct: SumMeasurement | None = None

    @classmethod
    def of(cls, fitted: Fitted) -> NoisyCounts | None:
        """What ``fitted`` counted; None for a method that fits something else than marginals."""
        if isinstance(fitted, Asked):
            base, told = fitted.base, fitted.answers
            more = (told.marginals, told.histograms, told.direct)
            return cls(base.measurements, base.rows, base.merged, base.impossible, *more)
        if not isinstance(fitted, Marginals):
            return None
        return cls(fitted.measurements, fitted.rows, fitted.merged, fitted.impossible)

    @property
    def marginals(self) -> tuple[Measurement, ...]:
        """All counts of columns together, whatever they were counted for."""
        return (*self.measurements, *self.asked)

    def beside(self, project: Project) -> Asked | None:
        """What questions and counts joined, to be fitted again; None where there are none."""
        if not (self.asked or self.histograms or self.direct):
            return None
        sizes = dict(project.schema.sizes)
        counted = {n: int(self.merged[n].max()) + 1 if n in self.merged else size for n, size in sizes.items()}
        base = Marginals(sizes, counted, self.rows, self.measurements, merged=self.merged, impossible=self.impossible)
        questions, counts = project.question_list.resolve(project.schema)
        answers = Answers(questions, counts, self.direct, self.asked, self.histograms)
        return Asked(base, answers, tuple(scopes_of(project).values()))

    def dumps(self) -> bytes:
        """The file."""
        head: dict[str, Any] = {
            "format": FORMAT,
            "rows": self.rows,
            "merged": list(self.merged),
            "impossible": [list(clique) for clique in self.impossible],
            "measurements": [_described(m) for m in self.measurements],
            "asked": [_described(m) for m in self.asked],
            "histograms": [_described(m) for m in self.histograms],
        }
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
        """Read what `dumps` gave; raises :class:`ProjectError` for anything else."""
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
                return cls(rows=head["rows"], merged=merged, impossible=impossible, direct=direct, **counts)
        except DAMAGED as error:
            raise ProjectError(f"{COUNTS} is damaged, or no file of noisy counts") from error


_ARRAYS = {"measurements": "counts", "asked": "asked", "histograms": "histogram"}
"""What the arrays of each list of counts are called."""
_TOLD = ("what", "sigma", "sensitivity", "rho", "pool")


def _described(m: Measurement) -> dict[str, Any]:
    return {"columns": list(m.clique), "sigma": m.sigma, "rho": m.rho, "pool": m.pool}


def _floats(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.astype(np.float64)


def _whole(values: NDArray[np.float64]) -> NDArray[np.int64] | NDArray[np.float64]:
    """Counts with discrete noise are whole numbers, which pack better."""
    near = np.rint(values)
    return near.astype(np.int64) if np.array_equal(near, values) else values
