"""Contents of a browser session: releases with their rows, files and costs, and a replaced project."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.compare.plans import Outcome
from espalier.core.graph.separations import Clique
from espalier.core.ledger.archive import zipped
from espalier.core.project.asked import AskedQuestion
from espalier.core.project.editor import ProjectEditor
from espalier.core.project.file import Project
from espalier.core.release.artefact import Release
from espalier.core.release.blurred import Blurred
from espalier.core.report.release_picture import ReleasePicture, release_picture
from espalier.core.tables.relation import Relation
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextTable
from espalier.pages.session.drafts import Drafts


@dataclass(frozen=True, repr=False)
class ReleaseBundle:
    """A release with its files, the private rows for its comparison, and the project that was open when it began.

    The rows are in memory (``real``, ``holdout``) or are read where they are stored (``relation``).
    """

    number: int
    planned: Project
    release: Release
    files: dict[str, bytes]
    real: Table | None
    holdout: Table | None
    relation: Relation | None = None
    far: tuple[str, str | None] | None = None
    """Place and name of ``relation``, as the steward typed them."""
    mark: bytes | None = None
    """Keyed digest by which the table is recognised (`mark_of`), if all its rows were used."""
    counted: dict[Clique, NDArray[np.int64]] = field(default_factory=dict)
    """Counts of single columns and pairs for charts, if the table is read where it is stored. Confidential."""

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Facts of `release.json`."""
        return dict(json.loads(self.files["release.json"]))

    @cached_property
    def picture(self) -> ReleasePicture:
        """Picture of the release; its layout is computed once."""
        return release_picture(self.facts)

    @cached_property
    def zip(self) -> bytes:
        """All files as one zip, packed only once."""
        return zipped(self.files)

    @property
    def has_rows(self) -> bool:
        """True if the release can be compared with its rows. After a reload, its table must be opened again first."""
        return self.real is not None or self.relation is not None

    def without_rows(self) -> ReleaseBundle:
        """Return the bundle without rows, without the location of rows that are stored elsewhere, and without their
        exact counts.
        """
        return replace(self, real=None, holdout=None, relation=None, counted={})


@dataclass(repr=False)
class BlurredBundle:
    """Rows of a method that is not private, the real rows from which they were made, and the comparison of both."""

    made: Blurred
    real: Table
    figures: dict[str, Any] | None = None


@dataclass(frozen=True)
class Spent:
    """Cost of one release of a table. If it was cancelled, ``complete`` is False and ``rho`` an upper bound."""

    table: int
    rho: float
    delta: float
    neighbors: str
    rows_per_person: int
    person: str | None
    complete: bool = True
    for_draws: float = 0.0
    """Part of δ used directly by draws (the sum of their δ₀)."""


@dataclass(frozen=True, repr=False)
class Opened:
    """State that was replaced when another project was opened; it can be restored."""

    open_project: ProjectEditor
    text: TextTable | None
    relation: Relation | None
    far: tuple[str, str | None] | None
    rows: int | None
    sample: str
    tables: int
    paid_from: str | None
    drafts: Drafts


@dataclass(repr=False)
class RowsAtWork:
    """Rows from which the running release is made, and its holdout. They stay in the session and are not part of the
    result.
    """

    real: Table | None = None
    holdout: Table | None = None


@dataclass(frozen=True, repr=False)
class Results:
    """Releases and findings that survive a reload of the tab. They contain no rows of a table."""

    released: ReleaseBundle | None
    earlier: list[ReleaseBundle]
    releases: int
    spent: list[Spent]
    too_late: bool
    findings: dict[str, dict[str, Any]]
    further: dict[tuple[int, str], Any]
    compared: list[Outcome]
    answered: dict[tuple[str, AskedQuestion], Any]
    trouble: dict[str, str]
    known: tuple[str, int] | None
