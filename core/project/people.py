"""The question that determines the unit of privacy: can one person have several rows?

The answer is the project file's key ``one_row_per_person``:

- true: each person has one row. A person column, or a row limit above 1, contradicts it.
- false: a person can have several rows. The plan names the person column, or promises a row limit above 1.
- null: the question is open, as in a draft. A person column answers it; while it is open, no plan is possible.
- no key, in older files: the plan's row limit counts as a promise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from espalier.core.errors import ProjectError
from espalier.core.project.plan import Plan

KEY = "one_row_per_person"
"""Key of the answer in the project file."""
UNASKED: Literal["unasked"] = "unasked"
"""Answer for a project file without the key."""
Answer = bool | None | Literal["unasked"]
ROWS_KEPT = 2
"""Proposed row limit per person for a person column."""
NAMES_PEOPLE = re.compile(
    "(patient|person|people|subject|client|customer|member|participant|employee|applicant|student|citizen|household|user)"
    r"s?[\W_]*(id|identifier|nr|no|nbr|num|number|key|code|name|hash|pseudonym)?$|^(mrn|ssn|pid|nhs[\W_]*(no|number))$",
    re.IGNORECASE,
)
"""Names of columns that identify people rather than cases or rows."""
OPEN = (
    "can one person have several rows? The project does not state it yet, and without an answer no plan is possible. "
    f'Answer on the Data page, or in the project file: "{KEY}": true if each person has one row; or the plan\'s '
    f'"person": "COLUMN" if a column identifies the person; or "{KEY}": false with the plan\'s '
    '"rows_per_person": K if you promise that no person has more than K rows'
)
"""Reason for refusing a plan while the question is open."""


def read_answer(data: Any) -> bool | None:
    """Return the answer in a project file; raise :class:`ProjectError`."""
    if not isinstance(data, bool | None):
        raise ProjectError(f"{KEY} must be true, false or null", key=KEY)
    return data


def check_answer(answer: Answer, plan: Plan) -> None:
    """Raise :class:`ProjectError` if the answer is not one of the four, or if the plan contradicts it."""
    k = plan.rows_per_person
    if not (isinstance(answer, str) and answer == UNASKED):
        read_answer(answer)  # 0 is not accepted as false, because it would count as unanswered
    if answer is True and plan.person is not None:
        raise ProjectError(
            f"the project states one row per person ({KEY}), but the plan names the person column {plan.person!r}. "
            "Remove one of the two, on the Data page or in the project file",
            key=KEY,
        )
    if answer is True and k > 1:
        raise ProjectError(
            f"the project states one row per person ({KEY}), but the plan allows {k} rows per person. Set "
            f"rows_per_person to 1, or change the answer on the Data page or in the project file",
            key=KEY,
        )
    if answer is False and plan.person is None and k == 1:
        raise ProjectError(
            f"the project states that a person can have several rows ({KEY}: false). Name the person column as the "
            "plan's person, or promise a limit: rows_per_person above 1",
            key=KEY,
        )


def is_open(answer: Answer, plan: Plan) -> bool:
    """Return whether the question must still be answered before a plan is possible."""
    return answer is None and plan.person is None


def answer_after(answer: Answer, before: Plan, after: Plan) -> Answer:
    """Return the answer after a change of the plan. A new person column answers the question; its removal reopens the
    question.
    """
    if after.person == before.person:
        return answer
    return False if after.person is not None else None


def stated(answer: Answer, plan: Plan) -> bool | None:
    """Return whether the project states one row per person; ``None`` if it does not."""
    if plan.person is not None:
        return False
    return answer if isinstance(answer, bool) else None


def in_words(answer: Answer, plan: Plan) -> str:
    """Return sentences for plan, report and ledger about the source of the row limit per person, and whether it is
    enforced.
    """
    k, promise = plan.rows_per_person, "This is a promise; no person column enforces it."
    if plan.person is not None:
        kept = f"{k} rows of each person are" if k > 1 else "1 row of each person is"
        return f"Column {plan.person!r} identifies the person; at most {kept} kept."
    if answer is True:
        return f"The project states that each person has one row. {promise}"
    if answer is False:
        return f"The project states that no person has more than {k} rows. {promise}"
    return (
        f"The project file does not state whether one person can have several rows. Its limit of {k} "
        f"row{'s' * (k > 1)} per person is read as a promise; no person column enforces it."
    )


def proposed(set_aside: Sequence[str], columns: Sequence[str] = ()) -> str | None:
    """Return the proposed person identifier, chosen by name: a column that names people, or the only one set aside.

    ``set_aside`` are the columns that look like identifiers; ``columns`` are all others. A table often identifies cases
    too (``encounter_id``), and a limit per case would not protect a person.
    """
    named = [c for c in (*set_aside, *columns) if NAMES_PEOPLE.search(c)]
    return named[0] if named else set_aside[0] if len(set_aside) == 1 else None
