"""Editable table of all arrows with their annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.graph.annotations import BELIEFS, Annotation
from espalier.core.graph.dag import Dag
from espalier.pages.common.text import called, plain
from espalier.pages.session.session import Session

Row = dict[str, Any]
FIELDS = ("cause", "effect", "belief", "may_break", "source", "note")


def show(state: Session) -> None:
    """Show the table. Valid rows go into the project at once; an incomplete row stays in the table."""
    dag, columns = state.project.dag, list(state.project.schema.names)
    shown, draft = partial(called, state.project.schema), state.drafts.arrows
    if draft.dag is not dag and draft.dag != dag:
        draft.revision, draft.dag, draft.rows = draft.revision + 1, dag, [*rows_of(dag), *draft.half]
    key = f"arrows-{state.opened}-{draft.revision}"
    st.data_editor(
        _frame(draft.rows),
        key=key,
        num_rows="dynamic",
        hide_index=True,
        width="stretch",
        on_change=_take,
        args=(state, key),
        column_config={
            "cause": st.column_config.SelectboxColumn("cause", options=columns, width="medium", format_func=shown),
            "effect": st.column_config.SelectboxColumn("effect", options=columns, width="medium", format_func=shown),
            "belief": st.column_config.SelectboxColumn("confidence", options=list(BELIEFS)),
            "may_break": st.column_config.CheckboxColumn("may break elsewhere", default=False),
            "source": st.column_config.TextColumn("source"),
            "note": st.column_config.TextColumn("note", width="large"),
        },
    )
    if "arrow_table" in state.trouble:
        st.error(f"{plain(state.trouble['arrow_table'])} The drawing is unchanged until the table is correct.")
    if draft.half:
        st.caption(f"Rows without a cause or an effect are ignored until both are set: {len(draft.half)}.")


def _frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the rows as a frame with explicit column types, which an empty table also needs."""
    kinds = {field: "bool" if field == "may_break" else "object" for field in FIELDS}
    values = {field: [bool(row[field]) if field == "may_break" else row[field] for row in rows] for field in FIELDS}
    return pd.DataFrame(values, columns=list(FIELDS)).astype(kinds)


def rows_of(dag: Dag) -> list[Row]:
    """Return one row per arrow."""
    out = []
    for cause, effect in dag.edges:
        annotation = dag.annotation(cause, effect)
        out.append(
            {
                "cause": cause,
                "effect": effect,
                "belief": annotation.belief or None,
                "may_break": annotation.may_break,
                "source": annotation.source,
                "note": annotation.note,
            }
        )
    return out


def edited(rows: Sequence[Row], change: Mapping[str, Any]) -> list[Row]:
    """Return the rows after the editor's changes: changed cells, added rows, deleted rows."""
    changed, gone = change.get("edited_rows", {}), set(change.get("deleted_rows", []))
    old = [{**row, **changed.get(i, {})} for i, row in enumerate(rows) if i not in gone]
    return old + [{**dict.fromkeys(FIELDS), **row} for row in change.get("added_rows", [])]


def drawn(dag: Dag, rows: Sequence[Row]) -> tuple[Dag, list[Row]]:
    """Return the drawing that the rows describe, and the rows that lack a cause or an effect.

    Raises :class:`GraphError` for a duplicate arrow or a cycle.
    """
    whole = [row for row in rows if row["cause"] and row["effect"]]
    annotations = {
        (row["cause"], row["effect"]): Annotation(
            row["note"] or "", row["belief"] or "", row["source"] or "", bool(row["may_break"])
        )
        for row in whole
    }
    kept = {of: a for of, a in dag.annotations.items() if of not in annotations}
    made = replace(
        dag,
        edges=tuple((row["cause"], row["effect"]) for row in whole),
        annotations={**kept, **{of: a for of, a in annotations.items() if a}},
    )
    half = [row for row in rows if not (row["cause"] and row["effect"]) and any(row.values())]
    return made, half


def _take(state: Session, key: str) -> None:
    draft = state.drafts.arrows
    try:
        drawn_now, half = drawn(state.project.dag, edited(draft.rows, st.session_state[key]))
        drawn_now.check_columns(state.project.schema.names)
        state.editor.redraw(drawn_now)
    except EspalierError as error:
        state.trouble["arrow_table"] = str(error)
        return
    state.trouble.pop("arrow_table", None)
    draft.dag, draft.half = drawn_now, half
