"""Network of the decoder, with one softmax head per column over its parents in the drawing.

A private fit requests the network's clipped gradient. The network's description is public: it contains shapes, arrows,
base categories and importance weights, but no rows. Parameters are one flat vector.
"""

from __future__ import annotations

import graphlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import GraphError, SizeError

FloatArray = NDArray[np.float64]

MAX_PARAMETERS = 200_000
"""Maximum number of parameters. Each takes one discrete Gaussian draw per step (10 to 24 µs), so 25 steps take minutes
at this size.
"""

MAX_LATENT = 8

CONSTANT = 45 / 64
"""Constant input of every head, which multiplies its intercept. It is below 1 because the one-way counts already
determine the intercepts; at 1, most of a row's gradient would be spent on them. It was chosen by the same comparison as
the number of steps.
"""


@dataclass(frozen=True)
class Heads:
    """logits_X = c·b_X + Σ_P∈Pa(X) W_P→X[code of P] + z·V_X for every column X, and softmax over its categories.

    c is `CONSTANT`. ``sizes`` gives the number of categories of each column, in schema order; ``parents`` the direct
    causes of each; ``base`` (default 0) the category of a column that contributes nothing to its effects: W_P→X is 0
    for it and has no entry. If the base is the most common category, most rows use few weights, so their gradients are
    short and little is clipped. ``importance`` (default 1) multiplies a column's residual before clipping. With
    ``latent`` > 0 a shared normal z of that dimension joins every head, and a linear encoder over all columns gives its
    mean and log variance (the causal VAE of paper 003, §3 and appendix E, with one layer, so a row's gradient norm has
    a closed form).

    Raises :class:`GraphError` for a cycle or an unknown parent, :class:`SizeError` above `MAX_PARAMETERS`.
    """

    sizes: Mapping[str, int]
    parents: Mapping[str, tuple[str, ...]]
    importance: Mapping[str, float] = field(default_factory=dict)
    latent: int = 0
    base: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, causes in self.parents.items():
            for cause in causes:
                if name not in self.sizes or cause not in self.sizes:
                    raise GraphError(f"the arrow {cause!r} → {name!r} does not join two columns", edge=(cause, name))
        if not all(0 < weight <= 100 for weight in self.importance.values()):
            raise ValueError("the importance of a column must be above 0 and at most 100")
        if not all(0 <= code < self.sizes[name] for name, code in self.base.items()):
            raise ValueError("a base must be the code of a category of its column")
        if not 0 <= self.latent <= MAX_LATENT:
            raise ValueError(f"latent ({self.latent}) must be between 0 and {MAX_LATENT}")
        if self.parameters > MAX_PARAMETERS:
            widest = max(self.sizes, key=lambda name: np.prod(self._shape(name)))
            raise SizeError(
                f"the decoder would have {self.parameters:,} parameters, more than the {MAX_PARAMETERS:,} "
                f"allowed; {widest!r} has the most, so remove some of its parents, or use fewer categories for it "
                "and its parents",
                parameters=self.parameters,
                limit=MAX_PARAMETERS,
                column=widest,
            )
        _ = self.order

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Columns, causes before effects; raises :class:`GraphError` if the arrows form a cycle."""
        sorter = graphlib.TopologicalSorter({name: self.parents.get(name, ()) for name in self.sizes})
        try:
            return tuple(sorter.static_order())
        except graphlib.CycleError as error:
            raise GraphError(f"the arrows form a cycle: {' → '.join(error.args[1])}", cycle=error.args[1]) from None

    def inputs(self, name: str) -> tuple[str, ...]:
        """Return the informative parents of ``name``: those with two categories or more, in schema order."""
        return self._inputs[name]

    @cached_property
    def _inputs(self) -> Mapping[str, tuple[str, ...]]:
        known = {name: set(self.parents.get(name, ())) for name in self.sizes}
        return {
            name: tuple(n for n, size in self.sizes.items() if n in causes and size > 1)
            for name, causes in known.items()
        }

    def weight(self, name: str) -> float:
        """Return the importance of ``name``."""
        return self.importance.get(name, 1.0)

    @cached_property
    def spans(self) -> Mapping[str, slice]:
        """Slice of each column's categories in a row's one-hot vector. Entry 0 of the vector is `CONSTANT`."""
        ends = np.cumsum([1, *self.sizes.values()])
        return {name: slice(int(a), int(b)) for name, a, b in zip(self.sizes, ends[:-1], ends[1:], strict=True)}

    @cached_property
    def features(self) -> Mapping[str, NDArray[np.intp]]:
        """For every head, the entries of the one-hot vector that it reads: entry 0, then its inputs' categories except
        the base.
        """
        return {
            name: np.concatenate([np.zeros(1, np.intp), *(self._read(parent) for parent in self.inputs(name))])
            for name in self.sizes
        }

    def _read(self, parent: str) -> NDArray[np.intp]:
        span = self.spans[parent]
        return np.delete(np.arange(span.start, span.stop), self.base.get(parent, 0))

    def _shape(self, name: str) -> tuple[int, int]:
        size = self.sizes[name]
        rows = 1 + sum(self.sizes[parent] - 1 for parent in self.inputs(name)) + self.latent
        return (rows, size) if size > 1 else (0, size)

    def weights(self, block: FloatArray, name: str) -> dict[str, FloatArray]:
        """Return W_P→X for each input P of ``name``: categories of P × categories of X; 0 for the base of P."""
        out, at = {}, 1
        for parent in self.inputs(name):
            to = at + self.sizes[parent] - 1
            out[parent] = np.insert(block[at:to], self.base.get(parent, 0), 0.0, axis=0)
            at = to
        return out

    @property
    def width(self) -> int:
        """Length of a row's one-hot vector, including the constant."""
        return 1 + sum(self.sizes.values())

    @cached_property
    def encoder_shape(self) -> tuple[int, int]:
        """Shape of the encoder, (1 + Σ categories, 2·latent): the mean, then the log variance."""
        return (self.width, 2 * self.latent) if self.latent else (0, 0)

    @cached_property
    def parameters(self) -> int:
        """Number of parameters of the network."""
        heads = sum(rows * columns for rows, columns in map(self._shape, self.sizes))
        return heads + self.encoder_shape[0] * self.encoder_shape[1]

    def blocks(self, flat: NDArray[np.generic]) -> tuple[dict[str, FloatArray], FloatArray]:
        """Return views into a flat vector: each head's (inputs × categories) block, and the encoder's block.

        A head's rows are the intercept, its inputs' categories except the base, then z. A column with one category has
        none.
        """
        if flat.shape != (self.parameters,):
            raise ValueError(f"{self.parameters:,} parameters are needed, not an array of shape {flat.shape}")
        out: dict[str, FloatArray] = {}
        at = 0
        for name in self.sizes:
            rows, columns = self._shape(name)
            out[name] = flat[at : at + rows * columns].reshape(rows, columns)  # type: ignore[assignment]
            at += rows * columns
        return out, flat[at:].reshape(self.encoder_shape)  # type: ignore[return-value]
