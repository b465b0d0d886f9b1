"""``answers.npz``: the noisy counts that a release's model was fitted to, so that copies can be made at any time.

They are what the budget bought, so they may be handed over; the file holds plain arrays and text, no pickle.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from core.errors import ProjectError
from core.graph.separations import Clique
from core.methods import Fitted
from core.methods.marginals import Marginals
from core.privacy.draws import Measurement, Merged

COUNTS = "answers.npz"
FORMAT = "espalier-counts/1"


@dataclass(frozen=True)
class NoisyCounts:
    """The ``measurements`` of a fit, the number of ``rows`` it knew (None under add-remove), its ``merged`` groups, and
    the cells that it held to be ``impossible``."""

    measurements: tuple[Measurement, ...]
    rows: int | None
    merged: Merged = field(default_factory=dict)
    impossible: Mapping[Clique, NDArray[np.bool_]] = field(default_factory=dict)

    @classmethod
    def of(cls, fitted: Fitted) -> NoisyCounts | None:
        """What ``fitted`` counted; None for a method that fits something else than marginals."""
        if not isinstance(fitted, Marginals):
            return None
        return cls(fitted.measurements, fitted.rows, fitted.merged, fitted.impossible)

    def dumps(self) -> bytes:
        """The file."""
        head = {
            "format": FORMAT,
            "rows": self.rows,
            "merged": list(self.merged),
            "impossible": [list(clique) for clique in self.impossible],
            "measurements": [
                {"columns": list(m.clique), "sigma": m.sigma, "rho": m.rho, "pool": m.pool} for m in self.measurements
            ],
        }
        arrays: dict[str, NDArray[Any]] = {f"counts_{i}": _whole(m.values) for i, m in enumerate(self.measurements)}
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
                measurements = tuple(
                    Measurement(
                        tuple(m["columns"]), file[f"counts_{i}"].astype(np.float64), m["sigma"], m["rho"], m["pool"]
                    )
                    for i, m in enumerate(head["measurements"])
                )
                merged = {name: file[f"merged_{i}"].astype(np.intp) for i, name in enumerate(head["merged"])}
                held = [file[f"impossible_{i}"].astype(np.bool_) for i, _ in enumerate(head["impossible"])]
                impossible = dict(zip(map(tuple, head["impossible"]), held, strict=True))
                return cls(measurements, head["rows"], merged, impossible)
        except (KeyError, ValueError, TypeError, AttributeError, EOFError, OSError, BadZipFile) as error:
            raise ProjectError(f"{COUNTS} is damaged, or no file of noisy counts") from error


def _whole(values: NDArray[np.float64]) -> NDArray[np.int64] | NDArray[np.float64]:
    """Counts with discrete noise are whole numbers, which pack better."""
    near = np.rint(values)
    return near.astype(np.int64) if np.array_equal(near, values) else values
