"""The question of ``espalier init`` whether one person can have several rows, answered by options or on the
terminal.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from espalier.core.errors import ProjectError
from espalier.core.project.people import KEY, ROWS_KEPT, in_words, proposed

if TYPE_CHECKING:
    from espalier.core.project.file import Project


def check_options(opt: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    k = opt.rows_per_person
    if opt.one_row_per_person and k is not None and k > 1:
        raise ProjectError(f"--one-row-per-person contradicts --rows-per-person {k}: give only one")
    if k == 1 and opt.person is None and not opt.one_row_per_person:
        raise ProjectError("--rows-per-person 1 without --person: write --one-row-per-person")


def answered(draft: Project, opt: argparse.Namespace, columns: list[str]) -> Project:
    """Return the draft with the answer from the options or the terminal. Without an answer, the question stays open."""
    person, k = opt.person, opt.rows_per_person
    if person is not None:
        return _with_person(draft, person, k or ROWS_KEPT, columns)
    if opt.one_row_per_person:
        return draft.answered(True)
    if k is not None:
        return draft.answered(False, None, k)
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        return _asked(draft, columns)
    return draft


def _with_person(draft: Project, person: str, k: int, columns: list[str]) -> Project:
    """Return the draft with a person column. This column is removed from the schema."""
    if person not in columns:
        raise ProjectError(
            f"there is no column {person!r} in the table; it has {', '.join(columns[:20])}", key="person"
        )
    schema = draft.schema
    kept = tuple(c for c in schema.columns if c.name != person)
    if not kept:
        raise ProjectError(f"{person!r} is the only column: there would be nothing left to release", key="person")
    left_out = tuple(c for c in schema.left_out if c.name != person)  # a guess about the rows, not confirmed
    draft = replace(draft, schema=replace(schema, columns=kept, left_out=left_out))
    return draft.answered(False, person, k)


def _asked(draft: Project, columns: list[str]) -> Project:
    """Ask on the terminal; an empty answer leaves the question open."""
    print("Can one person have several rows in this table?", file=sys.stderr)
    several = _choice(
        "  y: yes   n: no, one row per person   Enter: decide later > ", {"y": True, "n": False, "": None}
    )
    if several is None:
        return draft
    if not several:
        return draft.answered(True)
    aside = [c.name for c in draft.schema.left_out]
    guess = proposed(aside, [c for c in columns if c not in aside])
    hint = f"Enter: {guess}   -: no column" if guess else "Enter: no column"
    while True:
        named = _line(f"Which column identifies the person? ({hint}) > ") or guess or "-"
        if named == "-":
            k = _number("What is the largest number of rows that one person has? This is your promise > ", 2, None)
            return draft.answered(False, None, k)
        try:
            k = (
                ROWS_KEPT
                if named not in columns
                else _number(
                    f"What is the largest number of rows to keep per person? (Enter: {ROWS_KEPT}) > ", 1, ROWS_KEPT
                )
            )
            return _with_person(draft, named, k, columns)
        except ProjectError as error:
            print(f"  {error}", file=sys.stderr)


def _line(prompt: str) -> str:
    """Return one line typed at the terminal. The prompt is written to stderr."""
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise ProjectError("the input ended before the question was answered; no file was written")
    return line.strip()


def _choice(prompt: str, known: dict[str, bool | None]) -> bool | None:
    while (typed := _line(prompt).lower()[:1]) not in known:
        pass
    return known[typed]


def _number(prompt: str, least: int, usual: int | None) -> int:
    while True:
        typed = _line(prompt)
        if not typed and usual is not None:
            return usual
        if typed.isascii() and typed.isdigit() and len(typed) <= 5 and least <= int(typed) <= 10_000:
            return int(typed)
        print(f"  Enter a whole number from {least} to 10,000.", file=sys.stderr)


def step_to_answer(draft: Project) -> str:
    """Return the draft's answer as a sentence, or a step that asks the user to answer the question."""
    if not draft.unit_open:
        said = f"     {in_words(draft.one_row_per_person, draft.plan)}\n"
        if draft.plan.person is None:
            return said
        return (
            f'{said}     In the plan, declare the number of rows that the table then has, "rows": N, from public '
            "knowledge only.\n"
        )
    aside = [c.name for c in draft.schema.left_out]
    column = proposed(aside, draft.schema.names) or "COLUMN"
    return (
        "     Decide whether one person can have several rows; until then, no plan is possible. "
        "In the project file, set\n"
        f'       "{KEY}": true                                  each person has one row, or\n'
        f'       "person": {json.dumps(column, ensure_ascii=False)}, "rows_per_person": {ROWS_KEPT}   '
        "in the plan: this column identifies the person, or\n"
        f'       "{KEY}": false and "rows_per_person": K        your promise: at most K rows of each person\n'
    )
