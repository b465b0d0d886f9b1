"""Questions and counts of a project, as listed in its file, and their meaning under a schema.

A question states its conditions on a row: lists of categories, whole-bin ranges of numeric columns, ranges of a count.
It is stored in this form, so a changed schema is checked against the question and never changes its meaning.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espalier.core.errors import ProjectError, first_twice
from espalier.core.project.question_types import Condition, Count, Question
from espalier.core.project.schema import NOT_KNOWN, TOP_ONLY, Column, HierarchyToBuy, Schema, ToBuy

MOST = 20_000
"""Maximum number of questions."""

MOST_EDGES = 12
"""Maximum number of bin edges listed in a message."""

MOST_COUNTED = 200
"""Maximum number of conditions of a count, and of values that it distinguishes."""


@dataclass(frozen=True)
class QuestionList:
    """``questions`` and ``counts`` as the project file lists them; :meth:`resolve` reads them."""

    questions: tuple[Mapping[str, Any], ...] = ()
    counts: tuple[Mapping[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.questions or self.counts)

    def resolve(self, schema: Schema) -> tuple[tuple[Question, ...], tuple[Count, ...]]:
        """Return both as codes of ``schema``.

        Raises a :class:`ProjectError` that names the question or count, and the column.
        """
        counts = tuple(_count(entry, schema) for entry in self.counts)
        taken = set(schema.names)
        for one in counts:
            if one.name in taken:
                raise ProjectError(f"the name {one.name!r} of a count is already taken", key="counts", name=one.name)
            taken.add(one.name)
        sizes = {one.name: one.size for one in counts}
        questions = tuple(_question(entry, schema, sizes) for entry in self.questions)
        names = [one.name for one in questions]
        if (twice := first_twice(names)) is not None:
            raise ProjectError(f"two questions have the name {twice!r}", key="questions", name=twice)
        return questions, counts

    def fitting(self, schema: Schema) -> QuestionList:
        """Return the questions and counts that are still valid after a change to ``schema``."""
        try:
            self.resolve(schema)
        except ProjectError:
            pass
        else:
            return self
        found = QuestionList()
        for key in ("counts", "questions"):
            for entry in getattr(self, key):
                more = QuestionList(
                    (*found.questions, entry) if key == "questions" else found.questions,
                    (*found.counts, entry) if key == "counts" else found.counts,
                )
                try:
                    more.resolve(schema)
                except ProjectError:
                    continue
                found = more
        return found

    def expanded(self, inside: Mapping[str, Mapping[str, Sequence[str]]]) -> QuestionList:
        """Return the same list for bought columns. ``inside`` lists, by column, the categories in each code or top
        group.
        """

        def of_one(column: str, values: Sequence[Any]) -> list[Any]:
            held = inside.get(column, {})
            return [inner for value in values for inner in (held.get(value, [value]) if held else [value])]

        def of_all(where: Mapping[str, Any]) -> dict[str, Any]:
            return {column: of_one(column, values) for column, values in where.items()}

        def expand(entry: Mapping[str, Any]) -> dict[str, Any]:
            whole = {key: of_all(entry[key]) for key in ("where", "of") if key in entry}
            return {**entry, **whole, **({"any": [of_all(part) for part in entry["any"]]} if "any" in entry else {})}

        return QuestionList(tuple(map(expand, self.questions)), tuple(map(expand, self.counts)))

    def to_json(self) -> dict[str, Any]:
        """Return the keys as the project file stores them; a key without entries is absent."""
        return {key: [dict(e) for e in getattr(self, key)] for key in ("questions", "counts") if getattr(self, key)}

    @classmethod
    def from_json(cls, questions: Any, counts: Any) -> QuestionList:
        """Return the list from both keys of a project file; raise :class:`ProjectError` unless they list objects."""
        for key, data, most in (("questions", questions, MOST), ("counts", counts, MOST_COUNTED)):
            if not isinstance(data, list) or not all(isinstance(entry, Mapping) for entry in data):
                raise ProjectError(f"{key} must be a list of objects", key=key)
            if len(data) > most:
                raise ProjectError(f"{key} has {len(data):,} entries, but at most {most:,} are allowed", key=key)
        return cls(tuple(questions), tuple(counts))


def read_questions(text: str, schema: Schema, counts: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return the questions in CSV text, which has one line per condition and the header ``question,column,values``.

    A row must meet all lines of a question. A fourth column ``or`` numbers alternatives; the row must meet at least one
    of them. ``values`` are categories separated by ``;``, or a range such as ``60..100``. Raises a
    :class:`ProjectError` that names the line.
    """
    sizes = {count.name: count.size for count in QuestionList((), tuple(counts)).resolve(schema)[1]}
    rows = _lines(text)
    head = rows[0]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(head):
            hint = ": put ; between categories, and quotes around a value with a comma" * (len(row) > len(head))
            raise ProjectError(f"line {line} has {len(row)} cells, but the header has {len(head)}{hint}", line=line)
        name, column, values = (cell.strip() for cell in row[:3])
        if not name:
            raise ProjectError(
                f"line {line} names no question; each line of a question must repeat its name", line=line
            )
        either = found.setdefault(name, {}).setdefault(row[3].strip() if len(row) > 3 else "", {})
        if column in either:
            raise ProjectError(f"line {line}: the question {name!r} has two conditions on {column!r}", line=line)
        either[column] = _cell(values, column, schema, sizes, line)
        _conditions(f"line {line}: question {name!r}", {column: either[column]}, schema, sizes)
    if not 0 < len(found) <= MOST:
        raise ProjectError(f"the file contains {len(found):,} questions; it must contain from 1 to {MOST:,}")
    out: list[dict[str, Any]] = []
    for name, parts in found.items():
        one = list(parts.values())
        out.append({"name": name, "where": one[0]} if len(one) == 1 else {"name": name, "any": one})
    QuestionList(tuple(out), tuple(counts)).resolve(schema)
    return out


def _lines(text: str) -> list[list[str]]:
    """Return the cells of each line, beginning with the header in lower case; refuse any other header."""
    try:
        rows = list(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=None)))
    except csv.Error as error:
        raise ProjectError(f"the file cannot be read as CSV: {error}") from None
    head = [name.strip().lower() for name in rows[0]] if rows else []
    if head not in (["question", "column", "values"], ["question", "column", "values", "or"]):
        first = ",".join(head)
        said = f"; it is {first[:60]!r}" if first else "; the file is empty"
        if len(head) == 1 and (between := re.search(r"[;\t|]", first)):
            mark = {"\t": "tabs"}.get(between[0], between[0])
            said = f": this file has {mark} between its cells; save it with commas, because ; separates categories"
        raise ProjectError(
            "the first line of a file of questions must be question,column,values or question,column,values,or" + said,
            line=1,
        )
    return [head, *rows[1:]]


def _cell(values: str, name: str, schema: Schema, counts: Mapping[str, int], line: int) -> list[Any]:
    """Return the categories, or the ends of a range if ``name`` is numeric or a count."""
    listed = [value.strip() for value in values.split(";")]
    if name not in counts and (name not in schema or schema[name].kind != "numeric"):
        return listed
    if name not in counts and set(listed) <= set(schema[name].labels):
        return listed
    low, _, high = values.partition("..")
    try:
        return [_whole(float(low)), _whole(float(high))]
    except ValueError:
        known = (1, counts[name] - 1) if name in counts else (schema[name].edges[0], schema[name].edges[-1])
        ends = re.findall(r"(?<![\d.])-?\d+(?:\.\d+)?", values) or [str(_whole(end)) for end in known]
        raise ProjectError(
            f"line {line}: {values!r} is not a range of {name!r}: a range is written {ends[0]}..{ends[-1]}", line=line
        ) from None


def _whole(x: float) -> float | int:
    """Return the number as plain text; raise :class:`ValueError` if it is not finite."""
    if not math.isfinite(x):
        raise ValueError(x)
    return int(x) if x == int(x) else x


def in_words(entry: Mapping[str, Any]) -> str:
    """Return a question or count as part of a sentence, for screens and reports."""
    if "of" in entry:
        conditions = "; ".join(_condition(column, values) for column, values in entry["of"].items())
        return f"number of these conditions that a row meets: {conditions}"
    either = entry.get("any") or [entry.get("where", {})]
    said = [" and ".join(_condition(column, values) for column, values in part.items()) for part in either]
    return "rows with " + ", or with ".join(said)


def _condition(column: str, values: Sequence[Any]) -> str:
    if len(values) == 2 and all(_is_number(v) for v in values):
        return f"{column} from {_whole(values[0])} to {_whole(values[1])}"
    return f"{column} {' or '.join(map(str, values))}"


def _question(entry: Mapping[str, Any], schema: Schema, counts: Mapping[str, int]) -> Question:
    name = _name("question", entry, {"name", "where", "any"})
    what = f"question {name!r}"
    if ("where" in entry) == ("any" in entry):
        raise ProjectError(f"{what}: give either where, or any with a list of alternatives", key="questions", name=name)
    either = entry["any"] if "any" in entry else [entry["where"]]
    if not isinstance(either, list) or not either:
        raise ProjectError(f"{what}: any must be a list of alternatives", key="questions", name=name)
    return Question(name, tuple(_conditions(what, part, schema, counts) for part in either))


def _count(entry: Mapping[str, Any], schema: Schema) -> Count:
    name = _name("count", entry, {"name", "of", "up_to"})
    members = _conditions(f"count {name!r}", entry.get("of"), schema, {})
    up_to = entry.get("up_to", len(members))
    if not isinstance(up_to, int) or isinstance(up_to, bool) or not 1 <= up_to <= MOST_COUNTED:
        raise ProjectError(
            f"count {name!r}: up_to must be a whole number from 1 to {MOST_COUNTED}", key="counts", name=name
        )
    if len(members) > MOST_COUNTED:
        raise ProjectError(f"count {name!r} has more than {MOST_COUNTED} conditions", key="counts", name=name)
    return Count(name, members, up_to)


def _name(what: str, entry: Mapping[str, Any], keys: set[str]) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or not name or name.startswith("~") or len(name) > 200:
        raise ProjectError(f"a {what} needs a name of at most 200 characters that does not start with ~")
    if odd := set(entry) - keys:
        raise ProjectError(f"{what} {name!r}: unknown key {sorted(map(str, odd))[0]!r}", name=name)
    return name


def _conditions(what: str, data: Any, schema: Schema, counts: Mapping[str, int]) -> Condition:
    if not isinstance(data, Mapping) or not data:
        raise ProjectError(f"{what}: each alternative maps columns to their allowed values", what=what)
    found = {}
    for column, values in data.items():
        if column not in counts and column not in schema:
            near = _near(column, [*schema.names, *counts])
            raise ProjectError(f"{what} names {column!r}, which is neither a column nor a count{near}", column=column)
        if not isinstance(values, list) or not values:
            raise ProjectError(
                f"{what}: give {column!r} a list of categories, or a range of two numbers, such as "
                f"{_example(column, schema, counts)}",
                column=column,
            )
        if column in counts:
            found[column] = _range(what, column, values, counts[column])
        elif not schema[column].nameable:
            raise ProjectError(f"{what} names {column!r}. {NOT_KNOWN}", column=column)
        else:
            found[column] = _codes(what, schema[column], values)
    return found


def _near(name: Any, known: Iterable[str]) -> str:
    """Return a suggestion of the intended name, to append to a message."""
    folded = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(str(name).casefold()[:200], list(folded), 1, 0.6)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def _example(name: str, schema: Schema, counts: Mapping[str, int]) -> str:
    """Return an example of a condition on the column or count ``name``, as in the project file."""
    if name in counts:
        return json.dumps([1, counts[name] - 1])
    column = schema[name]
    if column.kind == "numeric":
        return json.dumps([_whole(column.edges[0]), _whole(column.edges[-1])])
    return json.dumps([column.labels[0]], ensure_ascii=False)


def _range(what: str, name: str, values: list[Any], size: int) -> tuple[int, ...]:
    """Return the values of a count from the first number to the second, inclusive."""
    if len(values) != 2 or not all(_is_number(v) and v == int(v) for v in values) or not 0 <= values[0] <= values[1]:
        raise ProjectError(
            f"{what}: {name!r} is a count: give two whole numbers, from and to, such as [1, {size - 1}]", column=name
        )
    if values[0] >= size:
        raise ProjectError(f"{what}: the largest value of the count {name!r} is {size - 1}", column=name)
    return tuple(range(int(values[0]), min(int(values[1]), size - 1) + 1))


def _codes(what: str, column: Column, values: list[Any]) -> tuple[int, ...]:
    if column.kind == "numeric" and len(values) == 2 and all(_is_number(v) for v in values):
        edges = list(column.edges)
        if values[0] not in edges or values[1] not in edges or not values[0] < values[1]:
            raise ProjectError(
                f"{what}: the range {_whole(values[0])} to {_whole(values[1])} of {column.name!r} must run from one "
                f"bin edge to a later one{_edges_near(values, edges)}",
                column=column.name,
            )
        return tuple(range(edges.index(values[0]), edges.index(values[1])))
    known = _labels(column)
    labels = list(known)
    try:
        return tuple(sorted({code for value in values for code in known[value]}))
    except (KeyError, TypeError):
        odd = next(value for value in values if value not in labels)
        listed = f"{', '.join(labels[:12])}{', …' * (len(labels) > 12)}{_near(odd, labels)}"
        wanted = f"; its categories are {listed}"
        if isinstance(column, HierarchyToBuy):
            wanted = f" that can be named. {TOP_ONLY}: {listed}"
        if column.kind == "numeric":
            wanted = f": give a range of two numbers, such as {_example(column.name, Schema((column,)), {})}"
        raise ProjectError(
            f"{what}: {str(odd)[:60]!r} is not a category of {column.name!r}{wanted}", column=column.name
        ) from None


def _labels(column: Column) -> dict[str, tuple[int, ...]]:
    """Return the names that a condition may use for a column, and their codes."""
    if isinstance(column, ToBuy):
        return column.named | ({column.labels[-1]: (column.values,)} if column.missing else {})
    return {label: (code,) for code, label in enumerate(column.labels)}


def _edges_near(values: Sequence[float], edges: Sequence[float]) -> str:
    """Return all edges if there are only a few, or else the edges nearest to each number that is not an edge."""
    said = ": " + ", ".join(str(_whole(edge)) for edge in edges) if len(edges) <= MOST_EDGES else ""
    for value in values:
        if value not in edges:
            below, above = [e for e in edges if e < value][-1:], [e for e in edges if e > value][:1]
            near = " and ".join(str(_whole(edge)) for edge in (*below, *above))
            said += f"; {_whole(value)} is not an edge, {near} {'are' if below and above else 'is'} nearest"
    return said


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < 1e300
