"""Fitted model: a distribution over rows, computed from noisy answers alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import DAMAGED, EspalierError
from espalier.core.graph.separations import Separation
from espalier.core.models.base import Answer
from espalier.core.models.copula.layout import Layout
from espalier.core.models.copula.shapes import Shape
from espalier.core.privacy.regression_features import Codes, Features, Fourier, Polynomial, Surface, side_by_side
from espalier.core.progress import Report
from espalier.core.project.numeric_axis import Axis

PIECE = 1 << 16
"""Number of rows whose features are in memory at a time."""
FORMAT = "espalier-copula/1"
"""Tag in a model file."""

Drawn = dict[str, NDArray[Any]]
"""Rows, with numbers in the column's unit for numeric columns and codes for all others."""


class Nominal(Protocol):
    """Model of the nominal columns."""

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> Mapping[str, NDArray[Any]]:
        """Return ``rows`` rows of codes."""
        ...

    def dumps(self) -> bytes:
        """Return the model's file."""
        ...


@dataclass(frozen=True)
class Inputs:
    """Model of all columns except the target. Nominal columns come from ``nominal``; normal scores are
    onehot·``slopes`` + L·ε.

    ``factor`` is L, the Cholesky factor of the part of the scores' correlation that categories do not explain.
    ``shapes`` are the noisy distributions of all axes, the target's included.
    """

    layout: Layout
    shapes: Mapping[str, Shape]
    nominal: Nominal | None
    slopes: NDArray[np.float64]
    factor: NDArray[np.float64]

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Drawn, dict[str, NDArray[np.int64]]]:
        """Draw ``rows`` rows, once as values and once as ticks and codes.

        This is Latin hypercube sampling with the correlation of normal scores (Liu et al., Algorithm 1 step 2, with the
        correlation instead of the covariance). The noisy distribution of each input is divided into ``rows`` parts of
        equal probability, and the input has one value from each part, in the order of its scores.
        """
        names, layout = self.layout.inputs, self.layout
        drawn = {} if self.nominal is None else self.nominal.sample(rows, rng, even=True)
        codes = {n: np.asarray(c, dtype=np.int64) for n, c in drawn.items()}
        out: Drawn = {n: codes[n] for n in layout.categories}
        scores = normal_cube(rows, len(names), rng) @ self.factor.T
        if layout.categories:
            tables = {n: np.eye(s, dtype=np.int64) for n, s in layout.categories.items()}
            for part in _pieces(rows):
                marks = side_by_side({n: codes[n][part] for n in tables}, tables)
                scores[part] += marks @ self.slopes
        for j, name in enumerate(names):
            ranks = np.empty(rows)
            ranks[np.argsort(scores[:, j])] = np.arange(rows)
            out[name] = self.shapes[name].value_at((ranks + rng.random(rows)) / max(rows, 1))
            codes[name] = layout.axes[name].code(out[name])
        return out, codes


def _pieces(rows: int) -> list[slice]:
    """Return the rows in pieces of at most `PIECE` rows. There is at least one piece, which may be empty."""
    return [slice(start, start + PIECE) for start in range(0, max(rows, 1), PIECE)]


def normal_cube(rows: int, columns: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a Latin hypercube of standard normals. Its sample correlation is the identity if there are enough rows."""
    from scipy.special import ndtri

    parts = (rng.permuted(np.tile(np.arange(rows), (columns, 1)), axis=1).T + rng.random((rows, columns))) / max(
        rows, 1
    )
    normals = np.asarray(ndtri(np.clip(parts, 1e-12, 1 - 1e-12)))
    if rows <= 2 * columns or not columns:
        return normals
    q = np.linalg.cholesky(np.corrcoef(normals.T).reshape(columns, columns))
    return np.asarray(np.linalg.solve(q, normals.T).T)


@dataclass(frozen=True)
class Response:
    """Target: a fitted ``surface`` plus a random residual.

    ``left`` holds the residual's probability in each of the bins ``left_edges``, in the target's unit.
    """

    surface: Surface
    left: NDArray[np.float64]
    left_edges: NDArray[np.float64]

    def draw(self, codes: Codes, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the fitted value plus a random residual."""
        rows = len(next(iter(codes.values())))
        at = np.concatenate([self.surface.at({n: held[part] for n, held in codes.items()}) for part in _pieces(rows)])
        share = rng.permutation((np.arange(len(at)) + rng.random(len(at))) / max(len(at), 1))
        upto = np.append(0.0, np.cumsum(self.left) / self.left.sum())
        return np.asarray(at + np.interp(share, upto, self.left_edges))


@dataclass(frozen=True)
class CopulaModel:
    """A distribution over rows: ``inputs``, then the ``response``. ``total`` is the number of rows that the model
    represents.
    """

    inputs: Inputs
    response: Response
    total: float

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the model draws, in schema order."""
        return self.inputs.layout.names

    @property
    def numeric(self) -> tuple[str, ...]:
        """Columns that the model draws as numbers."""
        return tuple(self.inputs.layout.edges)

    def sample(
        self,
        rows: int,
        rng: np.random.Generator,
        *,
        even: bool = False,  # noqa: ARG002
        report: Report | None = None,  # noqa: ARG002
    ) -> dict[str, NDArray[Any]]:
        """Return ``rows`` rows of schema codes. They are always spread evenly (Latin hypercube), so ``even`` is
        ignored.
        """
        drawn = self.draw(rows, rng)
        return {name: self.inputs.layout.binned(name, drawn[name]) for name in self.columns}

    def sample_numbers(
        self,
        rows: int,
        rng: np.random.Generator,
        report: Report | None = None,  # noqa: ARG002
    ) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.float64]]]:
        """Return the same rows, with the numbers of numeric columns in addition to their bins."""
        drawn = self.draw(rows, rng)
        codes = {name: self.inputs.layout.binned(name, drawn[name]) for name in self.columns}
        return codes, {name: np.asarray(drawn[name], dtype=np.float64) for name in self.numeric}

    def answers(self, separation: Separation) -> Answer:  # noqa: ARG002
        """Return "not promised": every column may depend on every other."""
        return "not promised"

    def draw(self, rows: int, rng: np.random.Generator) -> Drawn:
        """Return ``rows`` rows: numbers within their bounds at their precision, and codes of ordered and nominal
        columns.
        """
        layout = self.inputs.layout
        out, codes = self.inputs.draw(rows, rng)
        target = layout.axes[layout.target]
        out[layout.target] = target.rounded(self.response.draw(codes, rng))
        return {n: out[n].astype(np.int64) if n in layout.ordered else out[n] for n in self.columns}

    def facts(self) -> dict[str, Any]:
        """Return the entries of release.json about the fit: public figures and noisy answers."""
        features = self.response.surface.features
        return {
            "features": "polynomial of degree 2" if isinstance(features, Polynomial) else "random Fourier",
            "feature_count": features.size,
            "limits": list(self.inputs.layout.limits),
        }

    def dumps(self) -> bytes:
        """Return the model's file, which contains plain arrays and a tag, without pickle."""
        layout, response, surface = self.inputs.layout, self.response, self.response.surface
        features, nominal = surface.features, self.inputs.nominal
        held = features.tables if isinstance(features, Polynomial) else features.phases
        head = {
            "format": FORMAT,
            "total": self.total,
            "target": layout.target,
            "ordered": layout.ordered,
            "axes": [[a.name, a.edges, a.high, a.step, a.parts] for a in layout.axes.values()],
            "categories": dict(layout.categories),
            "features": list(held),
            "names": layout.names,
            "edges": dict(layout.edges),
            "one": features.one if isinstance(features, Polynomial) else None,
            "share": None if isinstance(features, Polynomial) else features.share,
            "middle": surface.middle,
            "half": surface.half,
        }
        arrays: dict[str, NDArray[Any]] = {f"feature_{i}": table for i, table in enumerate(held.values())}
        arrays |= {f"shape_{i}": s.chances for i, s in enumerate(self.inputs.shapes.values())}
        if isinstance(features, Polynomial):
            arrays["pairs"] = np.array(features.pairs)
        arrays |= {
            "slopes": self.inputs.slopes,
            "factor": self.inputs.factor,
            "weights": surface.weights,
            "left": response.left,
            "left_edges": response.left_edges,
            "nominal": np.frombuffer(b"" if nominal is None else nominal.dumps(), dtype=np.uint8),
        }
        return _packed(head, arrays)

    @classmethod
    def loads(cls, data: bytes, nominal: Callable[[bytes], Nominal]) -> CopulaModel:
        """Read the output of `dumps`; ``nominal`` reads the nominal columns' model. Raises :class:`EspalierError` for
        other input."""
        try:
            head, arrays = _unpacked(data)
            if head["format"] != FORMAT:
                raise ValueError(head["format"])
            axes = {a[0]: Axis(a[0], tuple(a[1]), *a[2:]) for a in head["axes"]}
            edges = {name: tuple(held) for name, held in head["edges"].items()}
            layout = Layout(
                axes, head["categories"], tuple(head["ordered"]), head["target"], tuple(head["names"]), edges
            )
            tables = {name: arrays[f"feature_{i}"] for i, name in enumerate(head["features"])}
            features: Features = Fourier(tables, head["share"] or 0.0)
            if head["one"] is not None:
                features = Polynomial(head["one"], tables, tuple((int(i), int(j)) for i, j in arrays["pairs"]))
            shapes = {name: Shape(axis, arrays[f"shape_{i}"]) for i, (name, axis) in enumerate(axes.items())}
            drawn = nominal(held) if (held := arrays["nominal"].tobytes()) else None
            inputs = Inputs(layout, shapes, drawn, arrays["slopes"], arrays["factor"])
            surface = Surface(features, arrays["weights"], head["middle"], head["half"])
            return cls(inputs, Response(surface, arrays["left"], arrays["left_edges"]), head["total"])
        except DAMAGED as error:
            raise EspalierError("this is not a model saved by Espalier") from error


def _packed(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    out = io.BytesIO()
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    np.savez_compressed(out, allow_pickle=False, head=text, **arrays)
    return out.getvalue()


def _unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: np.array(file[name]) for name in file.files}
    return json.loads(arrays.pop("head").tobytes()), arrays
