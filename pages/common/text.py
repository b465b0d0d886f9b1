"""Sentences for the user, safe for Streamlit's markdown.

Column names come from uploaded files, so they are shown as code. Whole messages are escaped, so that a name cannot
become a link, a heading or a formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from espalier.core.blurring.registry import BLURRINGS
from espalier.core.graph.separations import Separation
from espalier.core.methods import METHODS, Frame
from espalier.core.privacy.accounting import round_up
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import LINKED_UNIT, Project
from espalier.core.project.plan import Neighbors
from espalier.core.project.schema import Schema

NEIGHBORS: dict[Neighbors, str] = {
    "replace-one": "One person's rows may change in place. The number of rows is public.",
    "add-remove": "One person's rows may be present or absent. The number of rows is confidential too.",
}
DECLARED = (
    "All rows of one person may be replaced by any others, or removed. Only the declared total of rows is public."
)
"""The unit of privacy under replace-one with a person column."""
SAFE = ":green-badge[:material/share: Safe to share]"
CONFIDENTIAL = ":red-badge[:material/lock: Confidential: do not share]"
"""The two classes of everything that the app exports or shows: safe to share, and confidential."""
ROLES = {
    "outcome": "the decision or the predicted value",
    "protected": "groups that must be treated alike, such as sex or origin",
    "admissible": "legitimate reasons for the outcome, even if they differ between groups",
    "inadmissible": "columns that may stand in for a protected one, such as a postcode or a club",
}


LONGEST_LABEL = 60
"""Maximum number of characters in a column's label in a list."""
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Line breaks of any kind, which end inline code in markdown; control characters; characters that reorder the text
after them.
"""


def plain(text: object) -> str:
    """Return ``text`` as markdown that shows it literally."""
    shown = _BREAKS.sub(" ", str(text))
    for mark in ("://", "www.", "@"):  # a plain address would become a link
        shown = shown.replace(mark, f"{mark[0]}\u2060{mark[1:]}")
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|<>~$:^=&])", r"\\\1", shown)


def label_of(schema: Schema, column: str) -> str:
    """Return the label of a column, shortened if it is too long; an empty string if the column has no label."""
    label = schema[column].label if column in schema else ""
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def called(schema: Schema, *columns: str) -> str:
    """Return columns with their labels as plain text for a selection list. Several columns are joined by arrows."""
    labels = (label_of(schema, c) for c in columns)
    return " → ".join(f"{c}: {label}" if label else c for c, label in zip(columns, labels, strict=True))


def name(column: str, schema: Schema | None = None) -> str:
    """Return a column's name as inline code; with ``schema``, its label follows in brackets."""
    label = label_of(schema, column) if schema is not None else ""
    if label:
        return f"{name(column)} ({plain(label)})"
    text = _BREAKS.sub(" ", column)
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or len(ticks) > 1 else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def names(columns: Iterable[str], cap: int = 12, nothing: str = "nothing", schema: Schema | None = None) -> str:
    """Return the first ``cap`` names and the number of the remaining ones; with ``schema``, each name has its label."""
    columns = list(columns)
    shown = ", ".join(name(c, schema) for c in columns[:cap])
    more = f" and {len(columns) - cap} more" if len(columns) > cap else ""
    return shown + more if columns else nothing


def where(ledger: str) -> str:
    """Return a ledger's path or URL, without a password."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", ledger)


def size(count: int) -> str:
    """Return a number of bytes in a readable unit."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{max(count / 2**20, 0.1):.1f} MiB"


def separation(s: Separation, schema: Schema | None = None) -> str:
    """Describe the effect of a separation."""
    left, far, gate = (names(side, schema=schema) for side in (s.left, s.right, s.given))
    if not s.given:
        return f"{left} and {far} will show **no association at all**."
    return f"{left} and {far} will be **independent given** {gate}: any other link in the real table will not appear."


def sides(project: Project, frame: Frame) -> list[dict[str, str]]:
    """Describe the sides of the fence on which each inadmissible column may be."""
    roles = project.roles
    out = []
    for column in roles.inadmissible:
        by_outcome = any(not frame.forbids(column, o) for o in roles.outcome)
        by_protected = any(not frame.forbids(column, p) for p in roles.protected)
        if by_outcome and by_protected:
            side = "one side only: a noisy choice decides which"
        elif by_protected:
            side = "the protected columns' side: never linked to the outcome"
        elif by_outcome:
            side = "the outcome's side: never linked to a protected column"
        else:
            side = "neither side"
        out.append({"inadmissible column": column, "side of the fence": side})
    return out


def unit(neighbors: Neighbors, rows_per_person: int, person: str | None = None, *, linked: bool = False) -> str:
    """Return the unit of privacy as a clause. ``linked`` is true if the project has two linked tables."""
    return Unit(neighbors, rows_per_person).in_words(None if person is None else name(person), linked=linked)


def unit_of(project: Project) -> str:
    """Return the unit of privacy of a project's plan as a clause."""
    plan = project.plan
    return unit(plan.neighbors, plan.rows_per_person, plan.person, linked=project.linked is not None)


def counted(project: Project) -> str:
    """Return the unit that n counts: people if the project has two linked tables, otherwise rows."""
    return "rows" if project.linked is None else "people"


def people(project: Project) -> str:
    """Return sentences that state whether the row limit per person is enforced or promised."""
    if project.linked is not None:
        return f"{LINKED_UNIT} The first {project.linked.keep} visits of each person are kept."
    plan, answer = project.plan, project.one_row_per_person
    k = plan.rows_per_person
    if plan.person is not None:
        rows = "1 row of each person is" if k == 1 else f"{k} rows of each person are"
        return f"Column {name(plan.person)} identifies the person; at most {rows} kept."
    if answer is True:
        return "One row per person. This is your promise; nothing checks it."
    if answer is False:
        return f"No person has more than {k} rows. This is your promise; nothing checks it."
    return (
        f"This project file does not state whether one person can have several rows. Its limit of {k} "
        f"row{'s' * (k > 1)} per person is treated as a promise, and the report says so."
    )


def guess(share: float) -> str:
    """Explain ε for a person in the table."""
    return (
        "Without this table, someone who guesses which of two versions of a person's record is real is right half the "
        f"time. With it, they are right at most **{round_up(100 * share, 3)} %** of the time."
    )


def method(name_: str) -> str:
    """Return the title of the method with this name in files, or the name itself if the method is unknown."""
    known = METHODS.get(name_) or BLURRINGS.get(name_)
    return plain(name_) if known is None else known.title
