"""Stops of the guided tour through the sample *readmission*: each has a page and an instruction."""

from __future__ import annotations

STOPS = (
    ("Structure", "See the arrows into “readmitted”. In the table, only these causes are linked to it directly."),
    ("Plan", "Below ε, one sentence states how much better an attacker could guess."),
    ("Release", "Press the only button that spends budget. The files below are safe to share."),
    ("Analyse", "Ask a question: each answer has an interval where one is valid."),
    (
        "Diagnostics",
        "Press “Compare with the real rows”. The first sentence compares a model trained on this table with one "
        "trained on real rows. It states which predicts better here, and which in another hospital.",
    ),
)


def place(page: str) -> int | None:
    """Return the number of the stop at a page; None if the tour does not stop there."""
    return next((i for i, (name, _) in enumerate(STOPS) if name == page), None)
