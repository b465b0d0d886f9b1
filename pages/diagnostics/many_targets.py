"""Twenty targets and five classifiers: the table of the causal-VAE paper, for any method."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from espalier.core.evaluation.downstream import CLASSIFIERS, Downstream, many_targets
from espalier.core.tables.table import Table
from espalier.pages.common.text import names, plain
from espalier.pages.session.bundles import ReleaseBundle

INTRODUCTION = (
    "Is the table good for predictions that are not planned yet? Up to 20 columns take turns as the target, and five "
    "classifiers learn to distinguish each column's most common category from the "
    "others, once from real rows and once from "
    "synthetic ones. It takes about a minute."
)
WORDS = {
    "kernel": "kernel support vector machine",
    "svc": "linear support vector machine",
    "logistic": "logistic regression",
    "forest": "random forest",
    "knn": "15 nearest neighbours",
}
FIGURES = {
    "auc_real": "AUC, trained on real rows",
    "auc_synthetic": "AUC, trained on synthetic rows",
    "f1_real": "F1, real",
    "f1_synthetic": "F1, synthetic",
}


def work(released: ReleaseBundle, real: Table, report: Any) -> Downstream:
    """Fit the classifiers as a background job."""
    synthetic, holdout = released.release.synthetic, released.holdout
    return many_targets(real, synthetic, holdout, np.random.default_rng(0), report=report)


def show(found: Downstream, number: int) -> None:
    """Show macro figures by classifier, or the figures of one chosen target."""
    macro = found.macro()
    if not macro:
        st.info("No column has at least 20 rows in each of its two classes, so there is nothing to judge.")
        return
    st.markdown(
        f"Over all targets and classifiers the AUC is **{macro['auc_synthetic']:.3f}** when trained on synthetic rows "
        f"and {macro['auc_real']:.3f} when trained on real ones."
    )
    targets = list(dict.fromkeys(task.target for task in found.tasks))
    one = st.selectbox("Target", targets, index=None, placeholder="All targets", key=f"many-targets-of-{number}")
    rows = {WORDS[name]: found.macro(classifier=name, target=one) for name in CLASSIFIERS}
    rows["all classifiers"] = found.macro(target=one)
    _table([{"classifier": name, **of} for name, of in rows.items()])
    with st.expander("Every target"):
        _table([{"target": name, **found.macro(target=name)} for name in targets])
    said = plain("An AUC of 0.5 is a coin toss, and 1 is perfect. F1 treats the rarer class as positive.")
    if found.left_out:
        said += f" Left out because one class has fewer than 20 rows: {names(found.left_out)}."
    st.caption(said)


def _table(rows: list[dict[str, Any]]) -> None:
    columns = {key: st.column_config.NumberColumn(label, format="%.3f") for key, label in FIGURES.items()}
    st.dataframe(rows, hide_index=True, column_config=columns, column_order=[next(iter(rows[0])), *columns])
