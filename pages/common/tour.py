"""Stops of the guided tour through the sample *readmission*: the page of each, and its instruction."""

from __future__ import annotations

STOPS = (
    ("Structure", "See the arrows into “readmitted”: the table links it directly only to those causes."),
    ("Plan", "Below ε, one sentence states how much better an attacker could guess."),
    ("Release", "Press the only button that spends budget. The files below are safe to share."),
    ("Analyse", "Ask a question: each answer has an interval where one is valid."),
    (
        "Diagnostics",
        "Press “Compare with the real rows”. The first sentence compares two models, one trained on this "
        "table and one on real rows: which of them predicts better here, and which does in another hospital.",
    ),
)


def place(page: str) -> int | None:
    """Return the number of the stop at a page; None if the tour does not stop there."""
    return next((i for i, (name, _) in enumerate(STOPS) if name == page), None)
