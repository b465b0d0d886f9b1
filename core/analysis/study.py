"""Study of one release: its copies, and figures estimated from them. A study reads only the files of a release, so it
uses no budget and its results may be shared.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from espalier.core.analysis.answers import Answer, Copies, Levels, Rule, answer, joint_levels
from espalier.core.analysis.copies import Recipe, Refit, Rows, copies, warm_refit
from espalier.core.analysis.estimands import Figure
from espalier.core.analysis.gate import Gate
from espalier.core.analysis.loading import read_copies, read_files
from espalier.core.analysis.missing_shares import missing_shares, questions
from espalier.core.analysis.nearby import nearby, summed_out
from espalier.core.analysis.noisy_counts import NoisyCounts
from espalier.core.analysis.question_copies import asked_copies, fitted_as_copy
from espalier.core.analysis.tilted_copies import tilted_copies
from espalier.core.blurring.notice import NOT_PRIVATE
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.ledger.archive import files_of
from espalier.core.methods import Fitted
from espalier.core.methods.question_answers import Asked
from espalier.core.models.base import Model
from espalier.core.models.graphical import FitSummary, GraphicalModel, Zeros
from espalier.core.models.question_fit.model import VisibleModel
from espalier.core.models.tilted import TiltedModel
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project

SUGGESTED = 20
"""Suggested number of copies. With 5 copies, intervals have the same coverage but are a third wider."""
MOST = 400
ROWS_AT_HAND = 100_000
"""Number of rows of a copy that is made only for estimates. Because the rows are spread evenly, estimates are accurate
to 1 in 100,000.
"""
NO_COUNTS = (
    "Copies and figures with intervals need noisy counts of marginals. This release has none, because its method "
    "does not count marginals, its noise is not Gaussian, or an older version made it. Make a release with a "
    "method that counts marginals, such as Workload or PRISM."
)

NO_COPIES = (
    "The model of this release was trained on more than its counts, so it has no copies. Analyse answers questions "
    "about columns that were counted."
)


class Finished(Protocol):
    """Parts of a finished release that a study reads."""

    @property
    def project(self) -> Project:
        """Project with its released schema."""
        ...

    @property
    def fitted(self) -> Fitted:
        """Noisy answers to which the model was fitted."""
        ...

    @property
    def model(self) -> Model:
        """Model from which the rows were drawn."""
        ...

    @property
    def rows(self) -> int:
        """Number of synthetic rows."""
        ...

    @property
    def copies(self) -> Sequence[tuple[Model, Rows]]:
        """Copies that were made with the release, each a model and its rows."""
        ...


@dataclass(frozen=True)
class Study:
    """A release prepared for estimation: its noisy counts, the number of ``rows`` of a copy, and its copies ``given``.

    ``tilt`` is the model of weighted rows if a second stage was used. Figures then come from the counts and the base's
    ``model`` alone, because no gate is known for the weights. Only `more` fits the weights again.

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
    tilt: TiltedModel | None = None
    regressions: tuple[Mapping[str, Any], ...] = ()
    """Bought regressions, as in ``release.json``."""
    analyses: tuple[Mapping[str, Any], ...] = ()
    """Planned analyses, as in ``release.json``."""
    whole: Study | None = None
    """The whole study, if this is a part of it for one question. The gate reads all counts of the whole study."""

    @classmethod
    def of(cls, release: Finished) -> Study:
        """Return the study of a release in memory; raises :class:`ProjectError` if it has no noisy counts."""
        counted = NoisyCounts.of(release.fitted)
        if counted is not None and counted.in_part:
            return cls(release.project, _over_counts(release.project, counted), counted, release.rows)
        if counted is not None and isinstance(release.model, TiltedModel):
            return cls(release.project, release.model.base, counted, release.rows, tilt=release.model)
        if counted is None or not isinstance(release.model, GraphicalModel | VisibleModel):
            raise ProjectError(NO_COUNTS, key="copies")
        return cls(release.project, release.model, counted, release.rows, tuple(rows for _, rows in release.copies))

    @classmethod
    def of_files(cls, files: Mapping[str, bytes]) -> Study:
        """Return the study of a release's files; raises :class:`ProjectError`."""
        try:
            read = read_files(files)
        except ProjectError as error:
            raise ProjectError(f"These are not the files of a release: {error}", **error.data) from None
        if not read.facts.get("private", True):
            raise ProjectError(f"{NOT_PRIVATE}. Only private releases have copies and intervals.", key="copies")
        bought: dict[str, Any] = {key: tuple(read.facts.get(key, ())) for key in ("regressions", "analyses")}
        if read.counts is not None and isinstance(read.model, TiltedModel):
            base = read.model.base
            return cls(read.project, base, read.counts, read.facts["rows"], tilt=read.model, **bought)
        if read.counts is not None and read.counts.in_part:
            model = _over_counts(read.project, read.counts)
            return cls(read.project, model, read.counts, read.facts["rows"], **bought)
        if read.counts is None or not isinstance(read.model, GraphicalModel | VisibleModel):
            raise ProjectError(NO_COUNTS, key="copies")
        given = tuple(table.codes for table in read_copies(read, files))
        return cls(read.project, read.model, read.counts, read.facts["rows"], given, **bought)

    @classmethod
    def of_folder(cls, folder: Path) -> Study:
        """Return the study of a release's folder; raises :class:`ProjectError`."""
        files = files_of(folder)
        try:
            return cls.of_files(files)
        except ProjectError as error:
            raise ProjectError(f"{folder}: {error}", path=str(folder)) from None

    @cached_property
    def _asked(self) -> Asked | None:
        """Marginals with the questions and counts that were measured with them; `None` without questions."""
        return self.counted.with_questions(self.project)

    @cached_property
    def _refit(self) -> Refit[GraphicalModel]:
        """Function that fits the model of a copy."""
        counted, model = self.counted, self.model
        assert isinstance(model, GraphicalModel)
        total = None if counted.rows is None else float(counted.rows)
        zeros = [Zeros(clique, mask) for clique, mask in counted.impossible.items()]
        return warm_refit(model, total, counted.merged, zeros)

    @cached_property
    def centre(self) -> GraphicalModel | VisibleModel:
        """Centre of the copies: a model fitted to the released counts with the smoothing of a copy."""
        if self._asked is not None:
            return fitted_as_copy(self._asked)
        return self._refit(self.counted.measurements)

    @cached_property
    def gate(self) -> Gate:
        """Gate that decides which figures have an interval."""
        labels = {column.name: column.labels for column in self.project.schema.columns}
        counted = (self.whole or self).counted
        return Gate(counted.marginals, self.centre, counted.merged, labels)

    def about(self, columns: Sequence[str]) -> Study:
        """Return the part of this study on which a question over ``columns`` depends, without copies. Copies of the
        part take a fraction of the time. The study itself is returned if it has copies, or if its model was fitted to
        questions too.
        """
        if len(self.given) > 1 or self._asked is not None or not isinstance(self.model, GraphicalModel):
            return self
        every = [m.clique for m in self.counted.measurements] + list(self.counted.impossible)
        kept = nearby(self.model.sizes, every, columns)
        counted = summed_out(self.counted, kept)
        sizes = {name: self.model.sizes[name] for name in kept}
        model = GraphicalModel(sizes, (), {}, self.model.total, self.model.fit)
        return replace(self, model=model, counted=counted, tilt=None, whole=self)

    def drawn(
        self, number: int, rng: np.random.Generator, *, evenly: bool = True
    ) -> Iterator[tuple[GraphicalModel | VisibleModel | TiltedModel, Rows]]:
        """Yield ``number`` new copies, each a model and its rows.

        Sampling error grows with the row limit per person that the unit of privacy sets.
        """
        counted, k = self.counted, self.project.plan.rows_per_person
        recipe = Recipe(number, self.rows, evenly, k, counted.merged)
        if self.tilt is not None:
            schema, impossible = self.project.schema, counted.impossible
            return tilted_copies(counted.measurements, self.tilt, self._refit, schema, impossible, recipe, rng)
        if self._asked is not None and isinstance(self.centre, VisibleModel):
            return asked_copies(self._asked, self.centre, self.project.schema, recipe, rng)
        return copies(counted.measurements, self.centre, self._refit, recipe, rng)

    def more(
        self, number: int, rng: np.random.Generator, report: Report = silent
    ) -> Iterator[tuple[GraphicalModel | VisibleModel | TiltedModel, Rows]]:
        """Yield ``number`` new copies drawn as the plan draws rows, each a model and its rows.

        Raises :class:`ProjectError` for a number outside 1 … 400.
        """
        if not 1 <= number <= MOST:
            raise ProjectError(f"The number of copies ({number}) must be between 1 and {MOST}.", key="copies")
        if self.counted.in_part:
            raise ProjectError(NO_COPIES, key="copies")
        yield from self._made(number, rng, report)

    def _made(
        self, number: int, rng: np.random.Generator, report: Report
    ) -> Iterator[tuple[GraphicalModel | VisibleModel | TiltedModel, Rows]]:
        evenly = self.whole is not None or self.project.plan.rows_drawn == "even"
        for i, copy in enumerate(self.drawn(number, rng, evenly=evenly)):
            report((i + 1) / number, f"Copy {i + 1} of {number}")
            yield copy

    def without_copies(self) -> Study:
        """Return this study without its copies, for a release with too few copies."""
        return replace(self, given=())

    def with_copies(self, number: int = SUGGESTED, report: Report = silent) -> Study:
        """Return this study with the copies of the release, or with ``number`` new ones if it has fewer than two."""
        if len(self.given) > 1:
            return self
        seed = int.from_bytes(
            hashlib.sha256(self.counted.dumps()).digest()[:8]
        )  # the same question always gets the same answer
        small = replace(self, rows=min(self.rows, ROWS_AT_HAND), tilt=None)
        made = tuple(rows for _, rows in small._made(max(number, 2), np.random.default_rng(seed), report))
        return replace(self, given=made)

    def ask(self, figure: Figure, level: float = 0.95) -> tuple[Answer, ...]:
        """Return the numbers of ``figure`` with the intervals that the gate allows; raises :class:`ProjectError` if
        there are no copies.
        """
        self._check(level)
        return self._answered(figure, Levels(level, level))

    def together(
        self, figures: Sequence[Figure], level: float = 0.95, rule: Rule = "bonferroni"
    ) -> list[tuple[Answer, ...]]:
        """Return the numbers of each figure, with intervals that hold simultaneously with probability ``level``.

        ``rule`` is "bonferroni", or "max-t" for shorter intervals from at least 100 copies.
        """
        self._check(level)
        many, levels = joint_levels(figures, self._copies, self.gate, level, rule)
        found = [self._answered(figure, levels) for figure in figures]
        return [tuple(replace(one, level=level, family=max(many, 1)) for one in answers) for answers in found]

    def _check(self, level: float) -> None:
        if len(self.given) < 2:
            raise EspalierError("A figure needs copies. Make copies first.")
        if not 0 < level < 1:
            raise EspalierError(f"The level ({level:g}) must be between 0 and 1.")

    @property
    def _copies(self) -> Copies:
        plan, counted = self.project.plan, (self.whole or self).counted
        evenly = self.whole is not None or plan.rows_drawn == "even"
        sizes, k = self.project.schema.sizes, plan.rows_per_person
        return Copies(self.given, sizes, evenly, k, counted.marginals, counted.merged)

    def _answered(self, figure: Figure, levels: Levels) -> tuple[Answer, ...]:
        copies = self._copies
        asked = questions(figure, copies.sizes)
        missing = missing_shares(asked, copies.counts, copies.merged, copies.rows_per_person)
        found = answer(figure, copies, self.gate, missing, levels)
        if not (self.whole or self).counted.in_part:
            return found
        return tuple(one if one.badge.kind in ("counted", "thin") else _not_told(one) for one in found)


def _over_counts(project: Project, counted: NoisyCounts) -> GraphicalModel:
    """Return the uniform model over all columns, from which the fits of copies start."""
    total = counted.rows or max(float(np.mean([m.values.sum() for m in counted.measurements])), 1.0)
    return GraphicalModel(project.schema.sizes, (), {}, float(total), FitSummary(0, 0.0, 0.0, True, "not fitted"))


def _not_told(one: Answer) -> Answer:
    """Return an answer without a number for columns that were linked by training instead of counts."""
    sentence = (
        f"{' and '.join(one.badge.apart) or 'These columns'} were not counted together. Training linked the columns of "
        "this release, and its error is not known for this figure."
    )
    return replace(one, value=math.nan, low=None, high=None, width=None, badge=replace(one.badge, sentence=sentence))
