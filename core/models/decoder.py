"""Decoder: a Bayesian network in which every column is a softmax of its drawn parents (causal VAE, paper 003, §3).
Without a latent z, the model is Markov with respect to the drawn arrows. It needs no junction tree and has no width,
because a row is drawn column by column, causes first. With a latent z, every column depends on z, and no separation is
promised.
"""

from __future__ import annotations

import io
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import DAMAGED, EspalierError, GraphError, SizeError
from espalier.core.graph.separations import Separation
from espalier.core.models.base import Answer
from espalier.core.models.even import uniforms
from espalier.core.privacy.softmax_heads import CONSTANT, FloatArray, Heads
from espalier.core.progress import Report

FORMAT = "espalier-decoder/3"
SECOND_FORMAT = "espalier-decoder/2"
"""Old format, which can still be read. Its intercepts, including the encoder's, were multiplied by 1 instead of
`CONSTANT`."""

FIRST_FORMAT = "espalier-decoder/1"
"""Oldest format, which can still be read. It resembles `SECOND_FORMAT`, but early files had weights for every category
of a cause and no base.
"""

LARGEST_PARAMETER = 1e100
"""Bound on a parameter, which keeps sums finite. Fitted parameters are at most a few thousand."""

_CHUNK = 16_384

Causes = tuple[str, ...]
"""A subset of a column's causes, in schema order."""


@dataclass(frozen=True)
class Decoder:
    """A fitted network. ``heads`` is its shape, and ``parameters`` are its numbers in the layout of `Heads.blocks`.

    ``total`` is the number of rows that it represents, ``steps`` the number of training steps. ``tables`` has p(column
    | its inputs), with the column's axis last, for columns whose family was measured as a full table. The heads of
    these columns are not used. ``interactions`` has log factors of interacting causes, with the column's axis last,
    which are added to a head's logits.
    """

    heads: Heads
    parameters: FloatArray
    total: float = 1.0
    steps: int = 0
    tables: Mapping[str, FloatArray] = field(default_factory=dict)
    interactions: Mapping[str, Mapping[Causes, FloatArray]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns, in schema order."""
        return tuple(self.heads.sizes)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Drawn arrows (cause, effect)."""
        return tuple((cause, name) for name in self.heads.sizes for cause in self.heads.inputs(name))

    def sample(
        self,
        rows: int,
        rng: np.random.Generator,
        *,
        even: bool = False,
        report: Report | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return ``rows`` rows as one array of codes per column, in schema order, in the smallest unsigned type.

        This is ancestral sampling; with ``even``, each column is spread evenly over rows with equal causes (see
        `uniforms`). The model is already public, so any generator may be used.
        """
        if rows < 0:
            raise ValueError(f"rows ({rows}) must not be negative")
        out = {n: np.empty(rows, np.min_scalar_type(max(size - 1, 0))) for n, size in self.heads.sizes.items()}
        blocks, _ = self.heads.blocks(self.parameters)
        for start in range(0, rows, _CHUNK):
            stop = min(rows, start + _CHUNK)
            if report:
                report(start / rows, f"Drawing row {start:,} of {rows:,}")
            z = rng.standard_normal((self.heads.latent, stop - start))
            made: dict[str, NDArray[Any]] = {}
            for name in self.heads.order:
                causes = causes_of(self.heads, name, made) if even else None
                made[name] = draw(self.odds(blocks[name], name, made, z), uniforms(stop - start, causes, rng))
                out[name][start:stop] = made[name]
        return out

    def odds(self, block: FloatArray, name: str, made: Mapping[str, NDArray[Any]], z: FloatArray) -> FloatArray:
        """Return log odds of ``name`` (categories × rows), from its table or from its head and interactions."""
        if name not in self.tables:
            out = logits(self.heads, block, name, made, z)
            for causes, factors in self.interactions.get(name, {}).items():
                out += factors[tuple(made[cause] for cause in causes)].T
            return out
        given = tuple(made[cause] for cause in self.heads.inputs(name))
        return np.asarray(np.log(np.maximum(self.tables[name][given], 1e-300)).T)

    def holds(self, left: Iterable[str], right: Iterable[str], given: Iterable[str]) -> bool | None:
        """Return whether left ⊥ right | given holds exactly in this model; `None` with a latent z, where nothing is
        promised.

        Lauritzen et al. (1990): in a distribution that factors along a drawing, two sets are independent given a third
        if the third separates them in the moral graph of the smallest ancestral set of all three.
        """
        if self.heads.latent:
            return None
        parents = {name: self.heads.inputs(name) for name in self.heads.sizes}
        return separated(parents, set(left), set(right), set(given))

    def answers(self, separation: Separation) -> Answer:
        """Return ``exact`` if the drawing separates both sides and there is no z, otherwise ``not promised``."""
        kept = self.holds(separation.left, separation.right, separation.given)
        return "exact" if kept else "not promised"

    def facts(self) -> dict[str, Any]:
        """Return the entries of release.json about training."""
        return {"steps": self.steps, "parameters": self.heads.parameters, "latent": self.heads.latent}

    def strength(self) -> dict[tuple[str, str], float]:
        """Return the strength of each arrow, a total variation from 0 to 1.

        The strength compares the effect's distributions under two categories of the cause, with the other causes at
        their base categories, averaged over all pairs of categories.
        """
        out: dict[tuple[str, str], float] = {}
        blocks, _ = self.heads.blocks(self.parameters)
        for name, size in self.heads.sizes.items():
            if size == 1:  # it has no parameters
                out |= dict.fromkeys([(cause, name) for cause in self.heads.inputs(name)], 0.0)
                continue
            for cause, weights in self.heads.weights(blocks[name], name).items():
                if name in self.tables:
                    out[cause, name] = self._table_strength(cause, name)
                    continue
                odds = CONSTANT * blocks[name][0] + weights
                for causes, factors in self.interactions.get(name, {}).items():
                    odds = odds + factors[self._others_at_base(cause, causes)]
                p = probabilities(odds.T).T
                apart = 0.5 * np.abs(p[:, None] - p[None]).sum(axis=2)
                out[cause, name] = float(apart.sum() / (len(p) * (len(p) - 1)))
        return out

    def _table_strength(self, cause: str, name: str) -> float:
        """Return `strength` of one arrow, from the table of its family."""
        p = self.tables[name][self._others_at_base(cause, self.heads.inputs(name))]
        apart = 0.5 * np.abs(p[:, None] - p[None]).sum(axis=2)
        return float(apart.sum() / (len(p) * (len(p) - 1)))

    def _others_at_base(self, cause: str, causes: Causes) -> tuple[Any, ...]:
        """Return the index into a table of ``causes`` that selects all categories of ``cause`` and the base of the
        other causes."""
        return tuple(slice(None) if c == cause else self.heads.base.get(c, 0) for c in causes)

    def dumps(self) -> bytes:
        """Return the model file: a tag; sizes, arrows, importance, latent and bases as JSON; and the numbers
        as arrays.
        """
        head = {
            "format": FORMAT,
            "sizes": list(self.heads.sizes.items()),
            "edges": self.edges,
            "importance": dict(self.heads.importance),
            "latent": self.heads.latent,
            "base": dict(self.heads.base),
            "total": self.total,
            "steps": self.steps,
            **({"tables": list(self.tables)} if self.tables else {}),
        }
        tables = {f"table_{i}": table for i, table in enumerate(self.tables.values())}
        if self.interactions:
            each = [(name, causes, f) for name, of in self.interactions.items() for causes, f in of.items()]
            head["interactions"] = [[name, causes] for name, causes, _ in each]
            tables |= {f"interaction_{i}": factors for i, (_, _, factors) in enumerate(each)}
        text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        out = io.BytesIO()
        np.savez_compressed(out, allow_pickle=False, head=text, parameters=self.parameters, **tables)
        return out.getvalue()

    @staticmethod
    def loads(data: bytes) -> Decoder:
        """Read a file that this or an earlier version of `dumps` wrote. Raises `EspalierError` for anything else."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                head = json.loads(file["head"].tobytes())
                if head["format"] not in (FORMAT, SECOND_FORMAT, FIRST_FORMAT):
                    raise EspalierError(
                        f"This model's format is {str(head['format'])[:40]!r}, and this version reads {FORMAT!r}: read "
                        "it with the version that saved it."
                    )
                sizes = {str(name): int(size) for name, size in head["sizes"]}
                total, steps = float(head["total"]), int(head["steps"])
                if len(sizes) != len(head["sizes"]) or min(sizes.values()) < 1:
                    raise ValueError("each column needs a unique name and at least one category")
                if not (math.isfinite(total) and total >= 0 and steps >= 0):
                    raise ValueError("the numbers of rows and steps must not be negative")
                whole = head["format"] == FIRST_FORMAT and "base" not in head
                base = {} if whole else {str(n): int(code) for n, code in head["base"].items()}
                heads = Heads(sizes, parents_of(sizes, head["edges"]), head["importance"], int(head["latent"]), base)
                parameters = file["parameters"].astype(np.float64, casting="safe")
                if not np.all(np.abs(parameters) <= LARGEST_PARAMETER):
                    raise ValueError("a parameter is not a number, or too large to be summed")
                parameters = _rebased(heads, parameters) if whole else parameters
                blocks, encoder = heads.blocks(parameters)
                if head["format"] != FORMAT:
                    for block in (*blocks.values(), encoder):
                        block[:1] /= CONSTANT
                tables = {str(n): file[f"table_{i}"].astype(np.float64) for i, n in enumerate(head.get("tables", []))}
                _check_tables(heads, tables)
                interactions: dict[str, dict[Causes, FloatArray]] = {}
                for i, (name, causes) in enumerate(head.get("interactions", [])):
                    factors = file[f"interaction_{i}"].astype(np.float64, casting="safe")
                    _check_interaction(heads, name, tuple(causes), factors)
                    interactions.setdefault(name, {})[tuple(causes)] = factors
                return Decoder(heads, parameters, total, steps, tables, interactions)
        except (*DAMAGED, GraphError, SizeError) as error:
            raise EspalierError("This is not a decoder saved by Espalier.") from error


def _check_tables(heads: Heads, tables: Mapping[str, FloatArray]) -> None:
    """Raise :class:`ValueError` for a table that is not a distribution over its family."""
    for name, table in tables.items():
        shape = tuple(heads.sizes[n] for n in (*heads.inputs(name), name))
        if table.shape != shape or not (table >= 0).all() or not np.allclose(table.sum(axis=-1), 1.0):
            raise ValueError(f"the table of {name} is not a distribution given its causes")


def _check_interaction(heads: Heads, name: str, causes: Causes, factors: FloatArray) -> None:
    """Raise :class:`ValueError` for factors that do not match causes of ``name``, or are not numbers."""
    known = tuple(n for n in heads.inputs(name) if n in causes)
    shape = tuple(heads.sizes[n] for n in (*causes, name))
    if causes != known or factors.shape != shape or not np.all(np.abs(factors) <= LARGEST_PARAMETER):
        raise ValueError(f"the interaction of {', '.join(causes)} on {name} does not match its causes")


def _rebased(heads: Heads, whole: FloatArray) -> FloatArray:
    """Return the same distribution without weights for base categories: the base weights in ``whole`` are added to the
    intercepts.
    """
    out = np.zeros(heads.parameters)
    blocks, encoder = heads.blocks(out)
    at = 0
    for name, block in blocks.items():
        columns = block.shape[1] if len(block) else 0
        every = [heads.sizes[cause] for cause in heads.inputs(name)]
        ends = np.cumsum([1, *every])
        old = whole[at : at + columns * (ends[-1] + heads.latent)].reshape(-1, max(columns, 1))
        at += old.size
        if not len(block):
            continue
        weights = [old[start:end] for start, end in itertools.pairwise(ends)]
        bases = [w[0] for w in weights]
        block[:] = np.vstack([old[0] + sum(bases), *(w[1:] - w[0] for w in weights), old[ends[-1] :]])
    encoder[:] = whole[at:].reshape(encoder.shape)
    return out


def parents_of(sizes: Mapping[str, int], edges: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the causes of each column, in the given order."""
    out: dict[str, tuple[str, ...]] = dict.fromkeys(sizes, ())
    for cause, effect in edges:
        out[effect] = (*out.get(effect, ()), cause)
    return out


def logits(heads: Heads, block: FloatArray, name: str, made: Mapping[str, NDArray[Any]], z: FloatArray) -> FloatArray:
    """Return the logits (categories of ``name`` × rows) from the parents' codes in ``made`` and from ``z`` (latent ×
    rows)."""
    if not len(block):
        return np.zeros((1, z.shape[1]))
    out = np.repeat(CONSTANT * block[0][:, None], z.shape[1], axis=1)
    for cause, weights in heads.weights(block, name).items():
        out += np.take(weights.T, made[cause], axis=1)
    if heads.latent:
        out += block[len(block) - heads.latent :].T @ z
    return out


def probabilities(values: FloatArray) -> FloatArray:
    """Return the softmax along the first axis."""
    p = np.exp(values - values.max(axis=0))
    return np.asarray(p / p.sum(axis=0))


def draw(values: FloatArray, at: FloatArray) -> NDArray[np.intp]:
    """Return one category for each column of logits: the category whose interval within [0, 1] contains the number in
    ``at``.
    """
    below = np.cumsum(probabilities(values), axis=0)
    place: NDArray[np.intp] = (at > below).sum(axis=0)
    return np.minimum(place, len(below) - 1)


def causes_of(heads: Heads, name: str, made: Mapping[str, NDArray[Any]]) -> list[tuple[NDArray[Any], int]]:
    """Return the codes of the causes of ``name`` in the rows ``made``, each with its number of categories."""
    return [(made[cause], heads.sizes[cause]) for cause in heads.inputs(name)]


def separated(parents: Mapping[str, tuple[str, ...]], left: set[str], right: set[str], given: set[str]) -> bool:
    """Return whether ``given`` separates the other two sets in the moral graph of all their ancestors."""
    kept, queue = left | right | given, sorted(left | right | given)
    for name in queue:  # the list grows during the loop
        for cause in parents.get(name, ()):
            if cause not in kept:
                kept.add(cause)
                queue.append(cause)
    around: dict[str, set[str]] = {name: set() for name in kept}
    for name in kept:
        family = (name, *parents.get(name, ()))
        for one in family:
            around[one] |= set(family) - {one}
    reached, queue = left - given, sorted(left - given)
    for name in queue:
        for other in around[name] - given - reached:
            reached.add(other)
            queue.append(other)
    return not reached & right
