"""Plain names for the pools of a budget: what screens and the report's front say where the annex has the pool's own."""

from __future__ import annotations

POOLS = {
    "one-way": "counts of single columns",
    "two-way": "counts of pairs",
    "pairs": "counts of pairs",
    "task": "counts with the target",
    "total": "the number of rows",
    "background": "counts of the other columns",
    "network": "counts of columns together",
    "further cliques": "counts of columns together",
    "pair choice": "choosing the pairs",
    "tree choice": "choosing the pairs",
    "network choice": "choosing the pairs",
    "selection": "choosing what to count",
    "explain": "scores of refused pairs",
    "effect": "counts for the effect",
    "questions": "answers to questions",
    "counts": "answers to counts",
    "dependence": "how columns go together",
    "regression": "what predicts the target",
    "residuals": "what the prediction leaves over",
    "training": "training the model",
    "schema": "finding categories and bins",
    "test of the drawing": "testing the drawing",
    "accuracy": "counts of right guesses",
    "AUC": "counts of right rankings",
    "CMI": "counts for the fairness figure",
}


def pool_in_words(pool: str) -> str:
    """The pool's plain name; a further target's pool, ``task: income``, names its column. Unknown names stay."""
    base, found, target = pool.partition(": ")
    return f"counts with {target}" if found and base == "task" else POOLS.get(pool, pool)
