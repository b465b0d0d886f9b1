"""The glossary: one sentence per term, and the link from a term to the Glossary page."""

from __future__ import annotations

TERMS = {
    "Synthetic table": "A table of invented rows that reflects noisy measurements of the real ones and contains no "
    "real person's record.",
    "Differential privacy": "A proven guarantee that the result would look almost the same if one person's data were "
    "different.",
    "ε (epsilon)": "The limit on how much one person's data may change the result. A smaller ε protects more but "
    "adds more noise; values near 1 are common.",
    "δ (delta)": "The small probability that the promise of ε fails; it must be far below 1 divided by the number of "
    "rows.",
    "ρ (rho)": "The unit in which the costs of releases are added up; it is converted to ε and δ.",
    "Budget": "The limit on everything that releases may reveal about the same people, counted in ρ. It is not money.",
    "Unit of privacy": "What is protected: one row, or one person with all their rows.",
    "Bin": "A range of numbers that is counted as one value, such as ages 30 to 39.",
    "Marginal": "A table of joint counts of some columns, such as age by outcome.",
    "Noise": "Random numbers added to each count to hide the presence of any one person.",
    "Frame": "The set of direct links that the drawing and the roles forbid in the table.",
    "Fence": "The rule that outcome and protected columns may be linked only through admissible ones.",
    "Admissible column": "A column that may legitimately explain the outcome, even if it differs between groups.",
    "Gate": "The only columns through which two groups may be linked; for a fence, the admissible columns.",
    "Unmeasured cause": "A common cause of two columns that is not in the table, drawn as ↔ between them.",
    "Markov blanket": "A column's causes, its effects, and the other causes of those effects: its neighbourhood.",
    "CMI": "Conditional mutual information: how much some columns reveal about others once a third group is known, in "
    "nats.",
    "TSTR": "Train on synthetic, test on real: how well a model trained on synthetic rows predicts real ones.",
    "Separation": "Two groups of columns that must not be linked except through a third group.",
    "Regime": "The columns that a prediction may use: drawn causes, drawn neighbours, or all columns.",
    "AUC": "How well a model ranks: the probability that it ranks a case above a non-case. 0.5 is a coin toss, 1 is "
    "perfect.",
    "Gap between groups": "How much more often a model says yes for one protected group than for another.",
    "Copies": "Further tables drawn from the same noisy counts; their differences show how certain a figure is.",
    "Interval": "A range around a figure that contains the true figure 95 times in 100.",
    "Safe to share": "Paid for from the budget, or public: it may be passed on to anyone.",
    "Confidential": "Real rows, or figures computed from them without noise: they must not be passed on.",
    "Ledger": "The record of all releases from the same people.",
}


def term(word: str, of: str = "") -> str:
    """Return ``word`` as a link to the glossary, with its sentence as a tooltip. ``of`` is the term, if it differs from
    ``word``.

    The link opens in a new tab, so the current page stays open. Raises KeyError for an unknown term.
    """
    meaning = {name.split(" (")[0].casefold(): text for name, text in TERMS.items()}[(of or word).casefold()]
    return f'[{word}](glossary "{meaning}")'
