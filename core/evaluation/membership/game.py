"""Membership game: *was row t of the table replaced by another row or not?*

The attacker knows the pool of rows, the method, the schema and the number of rows of a table. The attacker fits shadow
models on tables with and without t, learns to distinguish their releases, and is judged on releases of unseen models.
One set of models serves every target, because each table is a random part of the pool and every target is in about half
of them. (Stadler, Oprisanu & Troncoso 2022; with a likelihood ratio per target, Carlini et al. 2022, "LiRA".)

The causal-VAE paper splits *releases* at random. Several releases of one trained model are then on both sides, and an
attack only has to recognise the model. Folds here are over models, and each model releases one table. Everything here
is computed from real rows. It is for the curator and never part of a report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = Mapping[str, NDArray[Any]]
FloatArray = NDArray[np.float64]
Report = Callable[[float, str], None]
Synthesise = Callable[[Codes, np.random.Generator], Codes]
"""Any method, private or not, as a function (private rows, generator) → released rows with the same columns."""

TARGETS = 20


@dataclass(frozen=True)
class Game:
    """Setup of a game. ``pool`` contains encoded rows, and ``sizes`` the numbers of categories of its columns. Each of
    the ``models`` tables consists of ``rows`` random rows of the pool. Raises :class:`ValueError` for a game too small
    to judge.
    """

    pool: Codes
    sizes: Mapping[str, int]
    rows: int
    models: int = 96

    def __post_init__(self) -> None:
        if not 2 <= self.rows < self.pool_rows:
            raise ValueError(f"a table needs at least 2 rows, and fewer than the {self.pool_rows} rows of the pool")
        if self.models < 20:
            raise ValueError(
                "an attack cannot be judged with fewer than 20 models; with 96, the AUC of one target has a standard "
                "error of 0.06"
            )

    @property
    def pool_rows(self) -> int:
        """Number of rows in the pool."""
        return len(next(iter(self.pool.values())))


@dataclass(frozen=True)
class Shadows:
    """Released tables, one per model; ``inside[m, r]`` is true if pool row r was in the table of model m."""

    releases: tuple[Codes, ...]
    inside: NDArray[np.bool_]


def choose_targets(game: Game, count: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Choose ``count`` rows of the pool, half of them at random and half the most outlying, and return them with a flag
    for the outliers.

    The most outlying rows have the smallest sum of log shares of their values in the pool.
    """
    if not 2 <= count <= game.pool_rows:
        raise ValueError(f"cannot choose {count} targets from a pool of {game.pool_rows} rows")
    outliers = _by_rarity(game)[: count // 2]
    others = np.setdiff1d(np.arange(game.pool_rows), outliers)
    chosen = rng.choice(others, count - len(outliers), replace=False)
    return np.concatenate([chosen, outliers]), np.arange(count) >= len(chosen)


def named_targets(game: Game, rows: Sequence[int]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return these ``rows`` of the pool, with a flag for outliers, which are the rarest twentieth of the pool."""
    outliers = _by_rarity(game)[: game.pool_rows // 20]
    return np.array(rows, dtype=np.intp), np.isin(rows, outliers)


def _by_rarity(game: Game) -> NDArray[np.intp]:
    """Return the rows of the pool, the most outlying first."""
    rarity = np.zeros(game.pool_rows)
    for name, size in game.sizes.items():
        share = np.bincount(game.pool[name], minlength=size) / game.pool_rows
        rarity += np.log(share[game.pool[name]])
    return np.argsort(rarity, kind="stable")


def shadow_releases(
    game: Game, synthesise: Synthesise, rng: np.random.Generator, report: Report | None = None
) -> Shadows:
    """Fit and release ``game.models`` times. ``report`` is called for each model; an exception from it cancels the
    work.

    If a table is half of the pool, tables come in complementary pairs, so every target is in exactly half of the
    tables.
    """
    inside = np.zeros((game.models, game.pool_rows), dtype=bool)
    releases = []
    for model in range(game.models):
        if report:
            report(model / game.models, f"Shadow model {model + 1} of {game.models}")
        if model % 2 and 2 * game.rows == game.pool_rows:
            inside[model] = ~inside[model - 1]
        else:
            inside[model, rng.choice(game.pool_rows, game.rows, replace=False)] = True
        taken = rng.permutation(np.flatnonzero(inside[model]))
        releases.append(synthesise({name: codes[taken] for name, codes in game.pool.items()}, rng))
    return Shadows(tuple(releases), inside)


def publish(codes: Codes, rng: np.random.Generator) -> Codes:  # noqa: ARG001
    """Return the rows themselves as the positive control. An attack that does not recognise published rows is blind."""
    return codes


def folds_by_model(game: Game, count: int, rng: np.random.Generator) -> Sequence[NDArray[np.intp]]:
    """Divide the models at random into ``count`` parts, and return the numbers of the models in each part.
    Complementary pairs stay together.
    """
    pairs = rng.permutation((game.models + 1) // 2)
    return [
        np.array([m for pair in part for m in (2 * pair, 2 * pair + 1) if m < game.models], dtype=np.intp)
        for part in np.array_split(pairs, count)
    ]
