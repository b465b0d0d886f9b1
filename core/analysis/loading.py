"""Read the files of a release from a folder or zip. No file is trusted. `evaluate`, `analyse`, `copies`, the pages and
notebooks read releases with this module. It raises :class:`ProjectError` for:

- files larger than `MOST_BYTES`, packed or unpacked; sizes are checked before unpacking;
- JSON that is nested deeper than `DEEPEST`, larger than `MOST_JSON`, or contains NaN or an infinite number;
- numbers out of range: rows, σ, ρ, ε, counts, totals;
- files (release.json, project.json, model, counts and table) that disagree on columns, categories, cliques or rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.analysis.noisy_counts import COUNTS, NoisyCounts
from espalier.core.analysis.survival_table import check_survival, survival_named
from espalier.core.blurring.notice import NOT_PRIVATE_CSV
from espalier.core.blurring.registry import BLURRINGS
from espalier.core.errors import DAMAGED, EspalierError, ProjectError
from espalier.core.graph.separations import Clique, Separation
from espalier.core.ledger.archive import MODEL, check_arrays, files_of
from espalier.core.methods import METHODS
from espalier.core.methods.question_answers import Asked
from espalier.core.models.base import Model
from espalier.core.privacy.draws import Measurement
from espalier.core.project.file import Project
from espalier.core.project.json_text import read_json
from espalier.core.project.plan import IN_MEMORY, MAX_ROWS, MOST_COUNT
from espalier.core.project.regressions import named
from espalier.core.tables.released import read_csv, read_linked
from espalier.core.tables.table import Table

_TABLES = ("synthetic.csv", NOT_PRIVATE_CSV)
_RANGES: Mapping[str, tuple[float, float]] = {
    "rows": (1, MAX_ROWS),
    "rows_shown": (1, IN_MEMORY),
    "copies": (0, 100),
    "rho": (0, 1e6),
    "epsilon": (0, 1e6),
    "delta": (0, 1),
    "sigma": (math.ulp(0.0), MOST_COUNT),
    "scale": (0, MOST_COUNT),
    "sensitivity": (0, MOST_COUNT),
    "cells": (0, MAX_ROWS),
    "candidates": (0, MAX_ROWS),
}
"""Smallest and largest accepted value of each number in release.json, at any depth of the file."""
_WHOLE = ("rows", "rows_shown", "copies", "cells", "candidates")
_USED = ("spent", "asked", "measurements", "choices", "schema_bought", "rows", "rows_shown", "copies")
"""Keys of release.json whose numbers are checked. The project file's reader checks its own numbers."""


@dataclass(frozen=True)
class Released:
    """A release read from its folder; ``model`` is `None` if the folder has no model file."""

    facts: dict[str, Any]
    project: Project
    model: Model | None
    table: Table

    def regression(self, name: str) -> dict[str, Any]:
        """Return a bought regression by its name, or by its outcome if only one has it."""
        found: dict[str, Any] = named(self.facts.get("regressions", []), name)
        return found

    def survival(self, name: str) -> dict[str, Any]:
        """Return a survival table by its name, or by its event if only one has it."""
        return dict(survival_named(self.facts.get("analyses", []), name))

    @property
    def separations(self) -> tuple[Separation, ...]:
        """Separations of the frame."""
        return tuple(Separation.from_json(s) for s in self.facts["separations"])

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Measured cliques."""
        return tuple(tuple(c) for c in self.facts["cliques"])


@dataclass(frozen=True)
class Files:
    """Checked contents of a release's files, without the synthetic table.

    ``counts`` are the noisy counts; `None` for a release without them.
    """

    facts: dict[str, Any]
    project: Project
    model: Model | None
    counts: NoisyCounts | None


def load_release(folder: str | Path) -> Released:
    """Read a release folder; raises :class:`ProjectError` if it is not one.

    >>> import espalier as es, pandas as pd
    >>> frame = pd.DataFrame({"smoker": ["yes", "no"] * 500, "sick": ["yes", "no", "no", "no"] * 250})
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in frame]
    >>> project = es.Project("clinic", es.Schema(tuple(columns)), es.Plan("mst", epsilon=1, delta=1e-6))
    >>> es.release(project, frame).save("clinic")
    >>> es.load_release("clinic").facts["spent"]["delta"]
    1e-06
    """
    folder = Path(folder)
    files = files_of(folder, [NOT_PRIVATE_CSV])
    try:
        read = read_files(files)
        if (linked := read.project.linked) is not None:
            if lacking := [f"{t}.csv" for t in (linked.people, linked.visits) if f"{t}.csv" not in files]:
                raise ProjectError(f"{lacking[0]} is missing.")
            panel = read_linked(linked, read.project.schema, files)
            if panel.rows != read.facts["rows"]:
                raise ProjectError(
                    f"The tables have {panel.rows:,} people, but release.json states a different number."
                )
            return Released(read.facts, read.project, read.model, panel)
        name = _TABLES[0] if read.facts.get("private", True) else NOT_PRIVATE_CSV
        if name not in files:
            raise ProjectError(f"{name} is missing.")
        table = read_table(read, files[name])
        return Released(read.facts, read.project, read.model, table)
    except EspalierError as error:
        said = f"{folder} is not a complete release folder, or is damaged: {error}"
        raise ProjectError(said, path=str(folder)) from None


def read_files(files: Mapping[str, bytes]) -> Files:
    """Return the contents of a release's ``files``; raises :class:`ProjectError` if one is damaged or two disagree."""
    if "release.json" not in files:
        raise ProjectError("release.json is missing. Choose all files of one release.")
    try:
        for name in (MODEL, COUNTS):
            if name in files:
                check_arrays(files[name], name)
        facts = read_facts(files["release.json"])
        project = project_of(facts)
        if "project.json" in files and read_json(files["project.json"], "project.json") != facts["project"]:
            raise ProjectError("project.json and release.json contain different projects.")
        model = _model(files, facts, project)
        counts = None
        if facts.get("noisy_counts") is not None or COUNTS in files:
            counts = _counts(files, facts, project)
        return Files(facts, project, model, counts)
    except ProjectError:
        raise
    except EspalierError as error:
        raise ProjectError(str(error), **error.data) from None
    except DAMAGED as error:
        raise ProjectError(f"one of its files is damaged ({type(error).__name__}: {str(error)[:200]}).") from None


def read_table(read: Files, data: bytes) -> Table:
    """Return the synthetic table in ``data``; raises :class:`ProjectError` unless columns and rows match."""
    table = read_csv(read.project.schema, data)
    facts = read.facts
    if table.rows != facts.get("rows_shown", facts["rows"]):
        raise ProjectError(
            f"The synthetic table has {table.rows:,} rows, but release.json states "
            f"{facts.get('rows_shown', facts['rows']):,}.",
            key="rows",
        )
    return table


def read_copies(read: Files, files: Mapping[str, bytes]) -> Iterator[Table]:
    """Yield the tables of the copies among ``files``; raises :class:`ProjectError`."""
    names = sorted(name for name in files if name.startswith("copies/") and name.endswith(".csv.gz"))
    stated = read.facts.get("copies", 0)
    if stated and len(names) != stated:
        raise ProjectError(f"release.json states {stated} copies, but the files contain {len(names)}.", key="copies")
    for name in names:
        try:
            yield read_csv(read.project.schema, files[name])
        except EspalierError as error:
            raise ProjectError(f"{name}: {error}", key="copies") from None


def read_facts(data: bytes) -> dict[str, Any]:
    """Return the facts of ``release.json``; raises :class:`ProjectError` for a missing key or a number out of range."""
    facts = read_json(data, "release.json")
    if not isinstance(facts, dict):
        raise ProjectError("release.json does not describe a release.")
    kinds: Mapping[str, type] = {"project": dict, "method": str, "rows": int, "separations": list, "cliques": list}
    for key, kind in kinds.items():
        if type(facts.get(key)) is not kind:
            raise ProjectError(f"release.json: {key} is missing or has the wrong type", key=key)
    if facts["method"] not in METHODS and facts["method"] not in BLURRINGS:
        raise ProjectError(
            "release.json: this version of Espalier does not include the release's method.", key="method"
        )
    if facts.get("model", MODEL) not in (None, MODEL) or facts.get("noisy_counts", COUNTS) not in (None, COUNTS):
        raise ProjectError("release.json: model or noisy_counts names a different file", key="model")
    for key in _USED:
        _check_ranges(facts.get(key), key)
    _check_regressions(facts)
    _check_analyses(facts)
    schema = facts["project"].get("schema")
    columns = [c.get("name") for c in schema if isinstance(c, dict)] if isinstance(schema, list) else []
    names = {name for name in columns if isinstance(name, str)}
    for clique in facts["cliques"]:
        if not isinstance(clique, list) or not all(isinstance(name, str) and name in names for name in clique):
            raise ProjectError("release.json: cliques names a column that is not in the project.", key="cliques")
    for separation in facts["separations"]:
        if not isinstance(separation, dict) or not {"left", "right", "given"} <= set(separation):
            raise ProjectError("release.json: a separation lacks left, right or given", key="separations")
        Separation.read({side: separation[side] for side in ("left", "right", "given")})
    return facts


def _check_analyses(facts: Mapping[str, Any]) -> None:
    """Raise :class:`ProjectError` for planned analyses that a release could not have written."""
    listed = facts.get("analyses", [])
    if not isinstance(listed, list):
        raise ProjectError("release.json: analyses has the wrong type", key="analyses")
    for one in listed:
        if not isinstance(one, dict) or not all(isinstance(one.get(key), str) for key in ("name", "kind")):
            raise ProjectError("release.json: an analysis lacks its name or kind", key="analyses")
        numbers = [one.get(key) for key in ("value", "low", "high", "promised", "reached")]
        if any(x is not None and (type(x) not in (int, float) or not abs(x) < 1e300) for x in numbers):
            raise ProjectError("release.json: an analysis contains a value that is not a number", key="analyses")
        if one["kind"] == "survival":
            check_survival(one)


def _check_regressions(facts: Mapping[str, Any]) -> None:
    """Raise :class:`ProjectError` for bought regressions that a release could not have written."""
    listed = facts.get("regressions", [])
    if not isinstance(listed, list):
        raise ProjectError("release.json: regressions has the wrong type", key="regressions")
    for one in listed:
        texts = isinstance(one, dict) and all(
            isinstance(one.get(key), str) for key in ("name", "outcome", "family", "scale")
        )
        if not texts or not isinstance(one.get("coefficients"), list):
            raise ProjectError("release.json: a regression lacks its name, outcome or coefficients", key="regressions")
        rows = one.get("complete_rows")
        numbers = [one.get("level"), rows if rows is not None else 0]
        for part in one["coefficients"]:
            if not isinstance(part, dict) or not isinstance(part.get("term"), str):
                raise ProjectError("release.json: a coefficient of a regression lacks its term", key="regressions")
            numbers += [0 if part.get(key) is None else part[key] for key in ("value", "low", "high")]
        if any(type(x) not in (int, float) or not abs(x) < 1e300 for x in numbers):
            raise ProjectError("release.json: a regression contains a value that is not a number", key="regressions")


def project_of(facts: Mapping[str, Any]) -> Project:
    """Return the project in ``facts``; raises :class:`EspalierError` if its unit of privacy or cost does not match."""
    project = Project.from_json(facts["project"])
    if not facts.get("private", True):
        return project
    for key, numbers in (("asked", ("epsilon", "delta")), ("spent", ("epsilon", "delta", "rho"))):
        said = facts.get(key)
        if not isinstance(said, dict) or any(type(said.get(name)) not in (int, float) for name in numbers):
            raise ProjectError(f"release.json: {key} is missing or has the wrong type", key=key)
    for key in ("neighbors", "rows_per_person", "person"):
        if facts["spent"].get(key) != getattr(project.plan, key):
            raise ProjectError(f"release.json and its project state different units of privacy ({key}).", key=key)
    return project


def _check_ranges(value: Any, key: str) -> None:
    """Raise :class:`ProjectError` for a number under ``key`` that is out of range."""
    if isinstance(value, dict):
        for inner, held in value.items():
            _check_ranges(held, inner)
    elif isinstance(value, list):
        for held in value:
            _check_ranges(held, key if not isinstance(held, int | float) else "")
    elif key in _RANGES and value is not None:
        least, most = _RANGES[key]
        whole = key not in _WHOLE or isinstance(value, int)
        if isinstance(value, bool) or not isinstance(value, int | float) or not whole or not least <= value <= most:
            kind = "whole number" if key in _WHOLE else "number"
            raise ProjectError(f"release.json: {key} must be a {kind} from {least:g} to {most:g}", key=key)


def _model(files: Mapping[str, bytes], facts: Mapping[str, Any], project: Project) -> Model | None:
    """Return the release's model over the project's columns and categories; `None` if no model may be written."""
    if facts.get("model", MODEL) is None:  # earlier releases do not state this, and contain the model
        return None
    if MODEL not in files:
        raise ProjectError(f"{MODEL} is missing")
    model = METHODS[facts["method"]].load(files[MODEL])
    if set(model.columns) != set(project.schema.names):
        raise ProjectError(f"{MODEL} and the project have different columns.", key="columns")
    sizes = getattr(model, "sizes", None)
    if sizes is not None and dict(sizes) != dict(project.schema.sizes):
        raise ProjectError(f"{MODEL} and the project have different categories.", key="sizes")
    if not (math.isfinite(model.total) and 0 <= model.total <= MOST_COUNT):
        raise ProjectError(f"{MODEL} states an impossible number of rows.", key="total")
    return model


def _counts(files: Mapping[str, bytes], facts: Mapping[str, Any], project: Project) -> NoisyCounts:
    """Return the noisy counts of the release; raises :class:`ProjectError` if they do not fit the project."""
    if COUNTS not in files:
        raise ProjectError(f"{COUNTS} is missing.")
    counts = NoisyCounts.loads(files[COUNTS])
    sizes = dict(project.schema.sizes)
    rows = counts.rows
    if not (rows is None or (type(rows) is int and 0 < rows <= MAX_ROWS)):
        raise ProjectError(f"{COUNTS} states an impossible number of rows.", key="rows")
    groups = dict(sizes)
    for name, merged in counts.merged.items():
        used = np.unique(merged)
        if merged.shape != (sizes.get(name),) or not np.array_equal(used, np.arange(len(used))):
            raise ProjectError(f"{COUNTS} groups categories that are not in the project.", key="merged")
        groups[name] = len(used)
    for one in counts.marginals:
        if not one.clique or any(name not in groups for name in one.clique):
            raise ProjectError(f"{COUNTS} contains counts of a column that is not in the project.", key="columns")
        if one.values.shape != tuple(groups[name] for name in one.clique):
            raise ProjectError(f"{COUNTS} and the columns of the project have different numbers of cells.", key="cells")
    for one in (*counts.marginals, *counts.histograms):
        _check_noise(one)
    if counts.direct is not None:
        _check_noise(Measurement((), counts.direct.values, counts.direct.sigma, counts.direct.rho))
    if (asked := counts.with_questions(project)) is not None:
        _check_asked(asked, project.plan.max_cells)
    for clique, mask in counts.impossible.items():
        if mask.shape != tuple(sizes.get(name) for name in clique):
            raise ProjectError(f"{COUNTS} rules out cells that are not in the project.", key="impossible")
    if {frozenset(c) for c in facts["cliques"]} != {frozenset(m.clique) for m in counts.measurements}:
        raise ProjectError(f"{COUNTS} and release.json have different cliques.", key="cliques")
    return counts


def _check_asked(asked: Asked, max_cells: int) -> None:
    """Refuse answers to questions or counts that are not in the project, and questions that need too large a model."""
    asked.size(max_cells)
    told, sizes = asked.answers, asked.lowered.sizes
    if told.direct is not None and told.direct.values.shape != (len(told.questions),):
        raise ProjectError(f"{COUNTS} and the project have different questions.", key="questions")
    shapes: dict[tuple[str, ...], tuple[int, ...]] = {(count.name,): (sizes[count.name],) for count in told.counts}
    if any(shapes.get(one.clique) != one.values.shape for one in told.histograms):
        raise ProjectError(f"{COUNTS} and the project have different counts.", key="counts")


def _check_noise(one: Measurement) -> None:
    """Raise :class:`ProjectError` for noisy counts that are not finite, and for an impossible noise scale."""
    fine = isinstance(one.sigma, int | float) and isinstance(one.rho, int | float) and isinstance(one.pool, str)
    if not (fine and 0 < one.sigma <= MOST_COUNT and 0 <= one.rho <= _RANGES["rho"][1]):
        raise ProjectError(f"{COUNTS}: σ must be above 0 and ρ at least 0.", key="sigma")
    if not np.all(np.abs(one.values) <= MOST_COUNT):
        raise ProjectError(f"{COUNTS} contains an impossible count.", key="values")
