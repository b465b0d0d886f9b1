"""The fitted model: a distribution over rows, made from noisy answers alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from core.copula.axes import Axis, Shape
from core.copula.features import Fourier, Polynomial
from core.copula.layout import Layout
from core.copula.sums import Codes, side_by_side
from core.errors import EspalierError

FORMAT = "espalier-copula/1"
"""The tag in a model file."""

Drawn = dict[str, NDArray[Any]]
"""Rows: numbers of numeric columns in their own unit, codes of all others."""


class Nominal(Protocol):
    """What draws the nominal columns."""

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``rows`` rows of codes."""
        ...

    def dumps(self) -> bytes | None:
        """Its file."""
        ...


@dataclass(frozen=True)
class Independent:
    """Nominal columns drawn independently, each from its ``chances``."""

    chances: Mapping[str, NDArray[np.float64]]

    def sample(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``rows`` rows of codes, each column's shares kept as closely as whole rows allow."""
        out = {}
        for name, chances in self.chances.items():
            upto = np.cumsum(chances)[:-1]
            out[name] = rng.permutation(np.searchsorted(upto, (np.arange(rows) + rng.random()) / max(rows, 1), "right"))
        return out

    def dumps(self) -> bytes:
        """Plain arrays, one per column."""
        return _packed(
            {"columns": list(self.chances)}, {f"chances_{i}": c for i, c in enumerate(self.chances.values())}
        )

    @classmethod
    def loads(cls, data: bytes) -> Independent:
        """Read what `dumps` wrote."""
        head, arrays = _unpacked(data)
        return cls({name: arrays[f"chances_{i}"] for i, name in enumerate(head["columns"])})


@dataclass(frozen=True)
class Inputs:
    """All columns but the target. Nominal ones come from ``nominal``; normal scores are onehot·``slopes`` + L·ε.

    ``factor`` is L, the Cholesky factor of what categories leave of the scores' correlation. ``shapes`` are the noisy
    distributions of all axes, the target's included.
    """

    layout: Layout
    shapes: Mapping[str, Shape]
    nominal: Nominal
    slopes: NDArray[np.float64]
    factor: NDArray[np.float64]

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Drawn, dict[str, NDArray[np.int64]]]:
        """``rows`` rows as they come out, and as ticks and codes.

        Latin hypercube sampling with the correlation of normal scores (Liu et al., Algorithm 1 step 2, where the
        correlation stands for their covariance): each input's values are one from each of ``rows`` equal parts of its
        noisy distribution, in the order of its scores.
        """
        names, layout = self.layout.inputs, self.layout
        codes = {n: np.asarray(c, dtype=np.int64) for n, c in self.nominal.sample(rows, rng).items()}
        out: Drawn = {n: codes[n] for n in layout.categories}
        scores = normal_cube(rows, len(names), rng) @ self.factor.T
        if layout.categories:
            marks = side_by_side(codes, {n: np.eye(s, dtype=np.int64) for n, s in layout.categories.items()})
            scores = scores + marks @ self.slopes
        for j, name in enumerate(names):
            ranks = np.empty(rows)
            ranks[np.argsort(scores[:, j])] = np.arange(rows)
            out[name] = self.shapes[name].value_at((ranks + rng.random(rows)) / max(rows, 1))
            codes[name] = layout.axes[name].code(out[name])
        return out, codes


def normal_cube(rows: int, columns: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A Latin hypercube of standard normals whose sample correlation is the identity, where rows suffice."""
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
    """The target: features times ``weights`` plus ``middle``, plus a draw of what the fit leaves.

    All in the target's unit. ``half`` is how far the fit may reach on either side; ``left`` are chances of the bins
    ``left_edges``.
    """

    features: Polynomial | Fourier
    weights: NDArray[np.float64]
    middle: float
    half: float
    left: NDArray[np.float64]
    left_edges: NDArray[np.float64]

    def at(self, codes: Codes) -> NDArray[np.float64]:
        """The fitted value of each row.

        Row by row, in one order of additions: a row's value depends on no other row.
        """
        phi, out = self.features.of(codes), np.zeros(len(next(iter(codes.values()))))
        for j, weight in enumerate(self.weights):
            out += weight * phi[:, j]
        return np.asarray(self.middle + np.clip(out, -2 * self.half, 2 * self.half))

    def draw(self, codes: Codes, rng: np.random.Generator) -> NDArray[np.float64]:
        """The fitted value and a draw of what the fit leaves."""
        at = self.at(codes)
        share = rng.permutation((np.arange(len(at)) + rng.random(len(at))) / max(len(at), 1))
        upto = np.append(0.0, np.cumsum(self.left) / self.left.sum())
        return np.asarray(at + np.interp(share, upto, self.left_edges))


@dataclass(frozen=True)
class CopulaModel:
    """A distribution over rows: ``inputs``, then the ``response``. ``total`` is how many rows it stands for."""

    inputs: Inputs
    response: Response
    total: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it draws."""
        return (*self.inputs.layout.axes, *self.inputs.layout.categories)

    def draw(self, rows: int, rng: np.random.Generator) -> Drawn:
        """``rows`` rows: numbers within their bounds at their precision, codes of ordered and nominal columns."""
        layout = self.inputs.layout
        out, codes = self.inputs.draw(rows, rng)
        target = layout.axes[layout.target]
        out[layout.target] = target.rounded(self.response.draw(codes, rng))
        return {n: out[n].astype(np.int64) if n in layout.ordered else out[n] for n in self.columns}

    def facts(self) -> dict[str, Any]:
        """What a release says of how it was fitted: public figures and noisy answers."""
        features = self.response.features
        return {
            "features": "polynomial of degree 2" if isinstance(features, Polynomial) else "random Fourier",
            "feature_count": features.size,
            "limits": list(self.inputs.layout.limits),
        }

    def dumps(self) -> bytes:
        """Its file: plain arrays under a tag, no pickle."""
        layout, response = self.inputs.layout, self.response
        nominal = self.inputs.nominal.dumps()
        if nominal is None:
            raise EspalierError("the model of the nominal columns cannot be written, so this one cannot either")
        held = response.features.tables if isinstance(response.features, Polynomial) else response.features.phases
        head = {
            "format": FORMAT, "total": self.total, "target": layout.target, "ordered": layout.ordered,
            "axes": [[a.name, a.edges, a.high, a.step, a.parts] for a in layout.axes.values()],
            "categories": dict(layout.categories), "features": list(held),
            "one": response.features.one if isinstance(response.features, Polynomial) else None,
            "share": None if isinstance(response.features, Polynomial) else response.features.share,
            "middle": response.middle, "half": response.half,
        }  # fmt: skip
        arrays: dict[str, NDArray[Any]] = {f"feature_{i}": table for i, table in enumerate(held.values())}
        arrays |= {f"shape_{i}": s.chances for i, s in enumerate(self.inputs.shapes.values())}
        if isinstance(response.features, Polynomial):
            arrays["pairs"] = np.array(response.features.pairs)
        arrays |= {
            "slopes": self.inputs.slopes, "factor": self.inputs.factor, "weights": response.weights,
            "left": response.left, "left_edges": response.left_edges,
            "nominal": np.frombuffer(nominal, dtype=np.uint8),
        }  # fmt: skip
        return _packed(head, arrays)

    @classmethod
    def loads(cls, data: bytes, nominal: Callable[[bytes], Nominal] = Independent.loads) -> CopulaModel:
        """Read what `dumps` wrote; ``nominal`` reads the nominal columns' model. Raises :class:`EspalierError`."""
        try:
            head, arrays = _unpacked(data)
            if head["format"] != FORMAT:
                raise ValueError(head["format"])
            axes = {a[0]: Axis(a[0], tuple(a[1]), *a[2:]) for a in head["axes"]}
            layout = Layout(axes, head["categories"], tuple(head["ordered"]), head["target"])
            tables = {name: arrays[f"feature_{i}"] for i, name in enumerate(head["features"])}
            features: Polynomial | Fourier = Fourier(tables, head["share"] or 0.0)
            if head["one"] is not None:
                features = Polynomial(head["one"], tables, tuple((int(i), int(j)) for i, j in arrays["pairs"]))
            shapes = {name: Shape(axis, arrays[f"shape_{i}"]) for i, (name, axis) in enumerate(axes.items())}
            drawn = nominal(arrays["nominal"].tobytes())
            inputs = Inputs(layout, shapes, drawn, arrays["slopes"], arrays["factor"])
            parts = (arrays["weights"], head["middle"], head["half"], arrays["left"], arrays["left_edges"])
            return cls(inputs, Response(features, *parts), head["total"])
        except (KeyError, ValueError, TypeError, EOFError, OSError) as error:
            raise EspalierError("this is not a model saved by this program") from error


def _packed(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    out = io.BytesIO()
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    np.savez_compressed(out, allow_pickle=False, head=text, **arrays)
    return out.getvalue()


def _unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: np.array(file[name]) for name in file.files}
    return json.loads(arrays.pop("head").tobytes()), arrays
