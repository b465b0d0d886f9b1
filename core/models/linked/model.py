"""Fitted model of linked tables: people with their first visit, and all later visits."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import DAMAGED, EspalierError
from espalier.core.graph.separations import Separation
from espalier.core.graph.two_slices import TwoSlices, Unrolled
from espalier.core.models.base import Answer, Codes
from espalier.core.models.graphical import GraphicalModel
from espalier.core.models.linked.column import StepColumn
from espalier.core.models.linked.steps import StepModel
from espalier.core.progress import Report
from espalier.core.project.linked import BEFORE, EARLIER, POSITION, Linked

FORMAT = "espalier-linked-model/1"


@dataclass(frozen=True)
class LinkedModel:
    """A distribution over people with their visits. A row contains a person, the first visit and the number of
    visits."""

    people: GraphicalModel
    steps: StepModel
    slices: TwoSlices

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a row, in schema order."""
        return self.people.columns

    @property
    def sizes(self) -> Mapping[str, int]:
        """Number of codes of each column of a row."""
        return self.people.sizes

    @property
    def total(self) -> float:
        """Number of people."""
        return self.people.total

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a row's columns that the model links."""
        return self.people.edges

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = False, report: Report | None = None) -> Codes:
        """Return ``rows`` people with their first visits."""
        return self.people.sample(rows, rng, even=even, report=report)

    def visits(self, rows: Codes, rng: np.random.Generator, *, even: bool = False) -> dict[str, NDArray[Any]]:
        """Return all visits of people with these ``rows``; see `StepModel.visits`."""
        return self.steps.visits(rows, rng, even=even)

    @property
    def unrolled(self) -> Unrolled:
        """Graph of the columns that the model draws, over all visits."""
        arcs: dict[str, list[tuple[str, str]]] = {"whole": [], "within": [], "before": [], "earlier": []}
        for column in self.steps.columns:
            arcs["before"].append((column.name, column.name))
            arcs["earlier"].append((column.name, column.name))
            for parent in column.effects:
                if parent == POSITION:
                    continue  # the visit's number is given
                past = "before" if parent.endswith(BEFORE) else "earlier" if parent.endswith(EARLIER) else ""
                where = past or ("whole" if parent in self.slices.person else "within")
                arcs[where].append((parent.removesuffix(BEFORE).removesuffix(EARLIER), column.name))
        return Unrolled(self.slices, self.edges, arcs["whole"], arcs["within"], arcs["before"], arcs["earlier"])

    def answers(self, separation: Separation) -> Answer:
        """Return ``exact`` if the model's graph respects ``separation`` at every visit."""
        return "exact" if self.unrolled.path(separation) is None else "not promised"

    def facts(self) -> dict[str, Any]:
        """Return the outcome of the fit for release.json."""
        return self.people.facts()

    def dumps(self) -> bytes:
        """Return the model's file, which contains plain arrays and text, without pickle."""
        arrays: dict[str, NDArray[Any]] = {"people": np.frombuffer(self.people.dumps(), dtype=np.uint8)}
        columns = list[dict[str, Any]]()
        for i, column in enumerate(self.steps.columns):
            columns.append({"name": column.name, "echo": column.echo, "effects": list(column.effects)})
            arrays |= {f"base_{i}": column.base, f"stay_{i}": column.stay}
            arrays |= {f"effect_{i}_{j}": effect for j, effect in enumerate(column.effects.values())}
        head = {
            "format": FORMAT,
            "link": asdict(self.steps.linked),
            "sizes": dict(self.steps.sizes),
            "columns": columns,
            "slices": asdict(self.slices),
        }
        out = io.BytesIO()
        text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        np.savez_compressed(out, allow_pickle=False, head=text, **arrays)
        return out.getvalue()


def load_linked(data: bytes) -> LinkedModel:
    """Read a file written by `LinkedModel.dumps`. Raises :class:`EspalierError` for anything else."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            head = json.loads(file["head"].tobytes())
            if head["format"] != FORMAT:
                raise ValueError(head["format"])
            linked = Linked(**{**head["link"], **_tuples(head["link"], ("gap", "arrows"))})
            sizes = {str(name): int(size) for name, size in head["sizes"].items()}
            columns = []
            for i, column in enumerate(head["columns"]):
                effects = {name: np.array(file[f"effect_{i}_{j}"]) for j, name in enumerate(column["effects"])}
                base, stay, echo = np.array(file[f"base_{i}"]), np.array(file[f"stay_{i}"]), float(column["echo"])
                size = sizes[column["name"]]
                fits = all(e.shape == (sizes[name], size) for name, e in effects.items())
                finite = all(np.isfinite(a).all() for a in (base, stay, np.array(echo), *effects.values()))
                if not fits or not finite or base.shape != (size,) or stay.shape != (size,):
                    raise ValueError("the shape of an effect does not match its columns")
                columns.append(StepColumn(column["name"], base, stay, echo, effects))
            slices = head["slices"]
            names = _tuples(slices, ("person", "first", "steps", "drawn"))
            people = GraphicalModel.loads(file["people"].tobytes())
            return LinkedModel(people, StepModel(linked, sizes, tuple(columns)), TwoSlices(**{**slices, **names}))
    except DAMAGED as error:
        raise EspalierError("This is not a model saved by Espalier.") from error


def _tuples(data: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Return JSON lists as tuples, including nested pairs."""
    return {key: tuple(tuple(x) if isinstance(x, list) else x for x in data[key]) for key in keys}
