"""Protocol of every model, and its extension for models over marginals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique, Separation
from espalier.core.progress import Report

Codes = Mapping[str, NDArray[Any]]
"""Rows as codes: one array per column, one code per row."""

Answer = Literal["exact", "by design", "not promised"]
"""How a model keeps a separation: exactly in its distribution, by construction, or not at all."""


@runtime_checkable
class Model(Protocol):
    """A distribution over rows. ``total`` is the number of rows that the model represents."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the model draws, in schema order."""
        ...

    @property
    def total(self) -> float:
        """Number of rows that the model represents, computed from public numbers and noisy answers alone."""
        ...

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False, report: Report | None = None) -> Codes:
        """Draw ``rows`` rows. With ``even``, spread them over the cells as evenly as the model can."""
        ...

    def answers(self, separation: Separation) -> Answer:
        """Return how the model keeps ``separation``."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """Return the entries of release.json that describe its fit."""
        ...

    def dumps(self) -> bytes | None:
        """Return the model's file: plain arrays and a tag, without pickle. None for a model that must not be
        written."""
        ...


@runtime_checkable
class BatchModel(Model, Protocol):
    """A model that draws any number of rows in limited memory."""

    def sample_batches(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> Iterator[Codes]:
        """Yield the rows of ``sample`` in batches. ``even`` applies to the whole output, not to each batch."""
        ...


@runtime_checkable
class MarginalModel(Model, Protocol):
    """A model that can compute any marginal."""

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that the model links."""
        ...

    def marginal(self, clique: Sequence[str]) -> NDArray[np.float64]:
        """Return the expected counts of ``clique`` in rows, with one axis per column in the given order."""
        ...

    def cmi(self, left: Clique, right: Clique, given: Clique) -> float:
        """Return the conditional mutual information of ``left`` and ``right`` given ``given``, in nats."""
        ...


@runtime_checkable
class VisitModel(Model, Protocol):
    """A model of linked tables. Its rows are people with their first visit, and it draws their later visits."""

    def visits(self, rows: Codes, rng: np.random.Generator, *, even: bool = False) -> Codes:
        """Return all visits of people with these ``rows``: one row per person and one column per position.

        With ``even``, values are spread evenly over visits with the same parents.
        """
        ...


@runtime_checkable
class NumberModel(Model, Protocol):
    """A model that draws numeric columns as numbers, not only as the schema's bins."""

    def sample_numbers(
        self, rows: int, rng: np.random.Generator, report: Report | None = None
    ) -> tuple[Codes, Mapping[str, NDArray[np.float64]]]:
        """Draw ``rows`` rows as codes, with a number for each numeric column, inside the bin of its code."""
        ...
