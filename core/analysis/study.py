"""What may be concluded from one release: its copies, and figures asked of them.

Everything here works on what a release hands over, so it costs no budget and its results may be shared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from espalier.core.analysis.answers import Answer, Copies, answer
from espalier.core.analysis.asked_copies import asked_copies, fitted_as_copy
from espalier.core.analysis.copies import Recipe, Refit, Rows, copies, warm_refit
from espalier.core.analysis.figures import Figure
from espalier.core.analysis.gate import Gate
from espalier.core.analysis.loading import read_copies, read_files
from espalier.core.analysis.missing import missing_shares, questions
from espalier.core.analysis.noisy_counts import NoisyCounts
from espalier.core.blurring.notice import NOT_PRIVATE
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.ledger.archive import files_of
from espalier.core.methods import Fitted
from espalier.core.methods.questions import Asked
from espalier.core.models.base import Model
from espalier.core.models.graphical import GraphicalModel, Zeros
from espalier.core.models.questions.model import VisibleModel
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project

if TYPE_CHECKING:
    pass

SUGGESTED = 20
"""Copies: with 5, intervals cover as well and are a third wider."""
MOST = 100
ROWS_AT_HAND = 100_000
"""Rows of a copy that is made only to work figures out: spread evenly, so many err by less than 1 in 100,000."""
NO_COUNTS = (
    "figures with intervals, and copies, are made from noisy counts of marginals, and this release keeps none: its "
    "method fits something else, or it was made before counts were kept. Release with a method that counts marginals, "
    "such as Workload or PRISM"
)


class Finished(Protocol):
    """The parts of a finished release that a study reads."""

    @property
    def project(self) -> Project:
        """The project with its released schema."""
        ...

    @property
    def fitted(self) -> Fitted:
        """The noisy answers that the model was fitted to."""
        ...

    @property
    def model(self) -> Model:
        """The model that the rows were drawn from."""
        ...

    @property
    def rows(self) -> int:
        """Number of synthetic rows."""
        ...

    @property
    def copies(self) -> Sequence[tuple[Model, Rows]]:
        """The copies that were made with the release."""
        ...


@dataclass(frozen=True)
class Study:
    """A release as its figures see it: ``rows`` of each copy, and the copies it came with (``given``).

    >>> import espalier as es, pandas as pd
    >>> frame = pd.DataFrame({"smoker": ["yes", "no"] * 500, "sick": ["yes", "no", "no", "no"] * 250})
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in frame]
    >>> project = es.Project("clinic", es.Schema(tuple(columns)), es.Plan("mst", epsilon=1, delta=1e-6))
    >>> study = es.Study.of(es.release(project, frame)).with_copies(5)
    >>> [answer.name for answer in study.ask(es.proportion(project.schema, "sick=yes"))]
    ['proportion']
    """

    project: Project
    model: GraphicalModel | VisibleModel
    counted: NoisyCounts
    rows: int
    given: tuple[Rows, ...] = ()

    @classmethod
    def of(cls, release: Finished) -> Study:
        """Of a release just made; raises :class:`ProjectError` where no copies can be made of it."""
        counted = NoisyCounts.of(release.fitted)
        if counted is None or not isinstance(release.model, GraphicalModel | VisibleModel):
            raise ProjectError(NO_COUNTS, key="copies")
        return cls(release.project, release.model, counted, release.rows, tuple(rows for _, rows in release.copies))

    @classmethod
    def of_files(cls, files: Mapping[str, bytes]) -> Study:
        """Of a release's files; raises :class:`ProjectError`."""
        try:
            read = read_files(files)
        except ProjectError as error:
            raise ProjectError(f"these are not the files of a release: {error}", **error.data) from None
        if not read.facts.get("private", True):
            raise ProjectError(f"{NOT_PRIVATE}. Copies and intervals are made of private releases only", key="copies")
        if read.counts is None or not isinstance(read.model, GraphicalModel | VisibleModel):
            raise ProjectError(NO_COUNTS, key="copies")
        given = tuple(table.codes for table in read_copies(read, files))
        return cls(read.project, read.model, read.counts, read.facts["rows"], given)

    @classmethod
    def of_folder(cls, folder: Path) -> Study:
        """Of a release's folder; raises :class:`ProjectError`."""
        files = files_of(folder)
        try:
            return cls.of_files(files)
        except ProjectError as error:
            raise ProjectError(f"{folder}: {error}", path=str(folder)) from None

    @cached_property
    def _asked(self) -> Asked | None:
        """Questions and counts that were measured beside the marginals."""
        return self.counted.beside(self.project)

    @cached_property
    def _refit(self) -> Refit[GraphicalModel]:
        """How a copy is fitted."""
        counted, model = self.counted, self.model
        assert isinstance(model, GraphicalModel)
        total = None if counted.rows is None else float(counted.rows)
        zeros = [Zeros(clique, mask) for clique, mask in counted.impossible.items()]
        return warm_refit(model, total, counted.merged, zeros)

    @cached_property
    def centre(self) -> GraphicalModel | VisibleModel:
        """What the copies lie around: the released counts, fitted as a copy is."""
        if self._asked is not None:
            return fitted_as_copy(self._asked)
        return self._refit(self.counted.measurements)

    @cached_property
    def gate(self) -> Gate:
        """Which figures carry an interval."""
        labels = {column.name: column.labels for column in self.project.schema.columns}
        return Gate(self.counted.marginals, self.centre, self.counted.merged, labels)

    def drawn(
        self, number: int, rng: np.random.Generator, *, evenly: bool = True
    ) -> Iterator[tuple[GraphicalModel | VisibleModel, Rows]]:
        """``number`` new copies, each with its model.

        As many rows of a person as the unit of privacy allows widen the sampling part.
        """
        counted, k = self.counted, self.project.plan.rows_per_person
        recipe = Recipe(number, self.rows, evenly, k, counted.merged)
        if self._asked is not None and isinstance(self.centre, VisibleModel):
            return asked_copies(self._asked, self.centre, self.project.schema, recipe, rng)
        return copies(counted.measurements, self.centre, self._refit, recipe, rng)

    def more(
        self, number: int, rng: np.random.Generator, report: Report = silent
    ) -> Iterator[tuple[GraphicalModel | VisibleModel, Rows]]:
        """``number`` new copies: refitted and drawn, one at a time, each its model and its rows.

        Raises :class:`ProjectError` for a number that is not 1 … 100.
        """
        if not 1 <= number <= MOST:
            raise ProjectError(f"the number of copies ({number}) must be from 1 to {MOST}", key="copies")
        evenly = self.project.plan.rows_drawn == "even"
        for i, copy in enumerate(self.drawn(number, rng, evenly=evenly)):
            report((i + 1) / number, f"Copy {i + 1} of {number}")
            yield copy

    def with_copies(self, number: int = SUGGESTED, report: Report = silent) -> Study:
        """This study with the copies that the release came with; with ``number`` new ones where they are not two."""
        if len(self.given) > 1:
            return self
        seed = int.from_bytes(hashlib.sha256(self.counted.dumps()).digest()[:8])  # who asks again gets the same answer
        small = replace(self, rows=min(self.rows, ROWS_AT_HAND))
        made = tuple(rows for _, rows in small.more(max(number, 2), np.random.default_rng(seed), report))
        return replace(self, given=made)

    def ask(self, figure: Figure) -> tuple[Answer, ...]:
        """The numbers of ``figure``, with the intervals that it has earned, and what is missing."""
        if len(self.given) < 2:
            raise EspalierError("a figure needs copies: make some first")
        plan, sizes = self.project.plan, self.project.schema.sizes
        copies = Copies(self.given, sizes, plan.rows_drawn == "even", plan.rows_per_person)
        asked = questions(figure, sizes)
        missing = missing_shares(asked, self.counted.marginals, self.counted.merged, plan.rows_per_person)
        return answer(figure, copies, self.gate, missing)
