"""TSTR, and the comparison with real rows, which runs once as a background job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.tables.frames import opened
from espalier.core.tables.reading import read_table
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table
from espalier.pages.common import charts
from espalier.pages.common.text import plain
from espalier.pages.data.samples import FOLDER, OTHER
from espalier.pages.diagnostics import distributions
from espalier.pages.glossary.terms import term
from espalier.pages.release import payment
from espalier.pages.session.bundles import ReleaseBundle
from espalier.pages.session.session import Session

Facts = Mapping[str, Any]


def start(state: Session, released: ReleaseBundle, other: tuple[str, Table] | None = None) -> None:
    """Judge ``released`` on the original table (or the holdout), or on another real table.

    The two-hospital example is judged on both hospitals at once, because comparing them is its purpose.
    """
    release, project = released.release, released.release.project
    tests: list[tuple[str, Table | None]] = [other or home(released)]
    if other is None and _two_hospitals(state, released):
        text = read_table(FOLDER / OTHER, OTHER)
        tests.append(("The other hospital", Table.encode(text, project.schema)))
    record = payment.diagnosed(state, released)

    def work(report: Any) -> dict[str, dict[str, Any]]:
        with read_again(released, report) as real:
            record([real, *(t for _, t in tests if t is not None)])  # before anything is computed
            if released.real is None and not released.counted:
                released.counted.update(distributions.counts(real))
            return judged(real, report)

    def judged(real: Source, report: Any) -> dict[str, dict[str, Any]]:
        from espalier.core.compare.fence_cost import cost_or_reason
        from espalier.core.evaluation import evaluate

        part = 1 / (len(tests) + (other is None))
        found = {}
        for i, (title, tested) in enumerate(tests):
            told = partial(_told, report, part * i, part)
            made = evaluate(project, real, release.synthetic, model=release.model, holdout=tested, report=told)
            found[title] = made.to_json()
        if other is None:
            found[tests[0][0]] |= cost_or_reason(
                project,
                real,
                release.synthetic,
                release.edges,
                holdout=tests[0][1],
                report=partial(_told, report, 1 - part, part),
            )
        return found

    number = released.number

    def done(into: Session, found: dict[str, dict[str, Any]]) -> None:
        if into.releases == number:
            into.findings |= found

    state.start("diagnostics", work, done)


@contextmanager
def read_again(released: ReleaseBundle, report: Any) -> Iterator[Source]:
    """Provide the real rows, from memory or encoded again from a table that is read in place. New codes are deleted at
    the end.
    """
    if released.real is not None:
        yield released.real
        return
    with opened(released.relation, released.release.project.schema, report=report) as source:
        yield source


def _told(report: Any, start: float, part: float, fraction: float, message: str) -> None:
    """Report that ``fraction`` of a ``part`` of the work is done; the part begins at ``start``."""
    report(start + part * fraction, message)


def home(released: ReleaseBundle) -> tuple[str, Table | None]:
    """Return the first table on which a release is judged: the holdout, or None for the table from which it was
    made.
    """
    return ("The held-out rows", released.holdout) if released.holdout else ("The original table", None)


def _two_hospitals(state: Session, released: ReleaseBundle) -> bool:
    return released.release.project.name == "readmission" and state.sample == "readmission"


def another_table(state: Session, released: ReleaseBundle) -> None:
    """Test on a second real table, such as data from another hospital or another year."""
    with st.expander("Test on another real table (another place, another year)"):
        st.markdown(
            "A model that learned coincidences fails where they do not occur. This tests both models on rows from "
            "elsewhere."
        )
        file = st.file_uploader(
            "Another table with the same columns", type=["csv", "gz", "parquet", "xlsx"], key=f"other-{released.number}"
        )
        if file is not None:
            try:
                table = Table.encode(read_table(file.getvalue(), file.name), released.release.project.schema)
            except EspalierError as error:
                st.error(plain(error))
                return
            st.button(
                "Test on this table",
                on_click=start,
                args=(state, released, (file.name, table)),
                disabled=state.job is not None,
            )


def task(facts: Facts, where: str) -> None:
    """Show TSTR: a model is trained on synthetic rows and tested on real rows."""
    st.subheader(f"Predicting {plain(facts['target'] or 'the target')}", anchor=False)
    both = [[facts[f"{m}_{t}"] for m in ("auc", "accuracy")] for t in ("synthetic", "real")]
    if not any(v is not None for values in both for v in values):
        st.info(plain(facts.get("auc_synthetic_reason") or "There is nothing to predict."))
        return
    figure = charts.bars(
        ["AUC", "accuracy"],
        {"trained on synthetic": both[0], "trained on real": both[1]},
        "share (0 to 1)",
        (charts.SYNTHETIC, charts.REAL),
        1.12,
    )
    charts.show(
        charts.coin_toss(figure, -0.5, 0.5),
        f"task-{facts['target']}",
        "AUC and accuracy of models trained on synthetic and on real rows",
    )
    st.markdown(
        f"**How to read it.** This is {term('TSTR')}. Two models of the same kind are trained, one on "
        "synthetic rows and one on real rows. Both "
        f"are tested on the same real rows. An {term('AUC')} of 0.5 is a coin toss, and 1 is perfect. Accuracy is the "
        "share of correct predictions"
        + (
            f"; always guessing the most common value gives {facts['accuracy_baseline']:.3f}."
            if facts["accuracy_baseline"]
            else "."
        )
    )
    reasons(facts, "auc_synthetic", "auc_real")
    if facts["tested_rows"]:
        st.caption(f"Tested on {plain(where.lower())}: {facts['tested_rows']:,} rows. {plain(facts['note'])}")


def reasons(facts: Facts, *figures: str) -> None:
    """Show why figures are missing. Each reason is shown once."""
    for why in dict.fromkeys(facts[f"{f}_reason"] for f in figures if f"{f}_reason" in facts):
        st.caption(f"Not shown: {plain(why)}.")
