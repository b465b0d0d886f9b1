"""The terms of the pages, one sentence each, and the link from a term to the Glossary page."""

from __future__ import annotations

TERMS = {
    "Synthetic table": "A table of invented rows that shows what was measured about the real ones, and no real person.",
    "Differential privacy": "A proof that the result would look almost the same if one person's data were different.",
    "ε (epsilon)": "How different the result may look then: small protects more and blurs more; about 1 is common.",
    "δ (delta)": "The small chance that the promise of ε fails; it must be far below 1 divided by the number of rows.",
    "ρ (rho)": "The currency in which releases are added up; it is converted into ε and δ.",
    "Budget": "How much may be revealed in all about the same people, counted in ρ. It is not money.",
    "Unit of privacy": "What is protected: one row, or one person with all their rows.",
    "Bin": "A range of numbers that is counted as one value, such as ages 30 to 39.",
    "Marginal": "A table of counts of some columns together, such as age by outcome.",
    "Noise": "Random numbers added to each count so that no one person's presence shows.",
    "Frame": "All that the drawing and the roles forbid the table to show directly.",
    "Fence": "The rule that outcome and protected columns may be linked only through admissible ones.",
    "Admissible column": "A column that may legitimately explain the outcome, even where it differs between groups.",
    "Gate": "The only columns through which two separated groups may be linked; a fence's gate is the admissible ones.",
    "Unmeasured cause": "A cause of two columns that the table does not have; it is drawn as ↔ between them.",
    "Markov blanket": "A column's causes, its effects, and the other causes of those effects: its neighbourhood.",
    "CMI": "Conditional mutual information: what some columns tell about others once a third group is known, in nats.",
    "TSTR": "Train on synthetic, test on real: how well a model that learned from synthetic rows does on real ones.",
    "Separation": "Two groups of columns that may show no link except through a third group.",
    "Regime": "Which columns a prediction may rest on: drawn causes, drawn neighbours, or whatever predicts.",
    "AUC": "How well a model ranks: the chance that it puts a case above a non-case. 0.5 is a coin toss, 1 perfect.",
    "Gap between groups": "How much more often a model says yes for one protected group than for another.",
    "Copies": "Further tables that the same noisy counts could have given; how they differ shows how sure a figure is.",
    "Interval": "A range around a figure, made so that it holds the true figure 95 times in 100.",
    "Safe to share": "Paid for from the budget, or public: it may leave the building.",
    "Confidential": "Real rows, or figures from them without paid noise: they must not leave the building.",
    "Ledger": "The book that keeps count of all releases from the same people.",
}


def term(word: str, of: str = "") -> str:
    """``word`` as a link to the glossary, with its sentence as a tooltip. ``of`` is the term, where it is another text.

    The link opens a tab of its own: what is open here stays. Raises KeyError for a term that the glossary lacks.
    """
    meaning = {name.split(" (")[0].casefold(): text for name, text in TERMS.items()}[(of or word).casefold()]
    return f'[{word}](glossary "{meaning}")'
