"""Keep an unsaved draft while the browser reloads the tab, but not after the tab is closed.

The draft is stored in the tab itself (``sessionStorage``). Other users of the server, other tabs, later sessions, and
other accounts that sign in to the tab cannot see it. It contains the project file, never rows of a table. While the
project has open guesses, the draft contains the drawing, the answer about rows per person, and the columns that are
declared or confirmed. Open guesses are not kept. A restored draft is checked like any other file.

The tab also keeps the token of its jobs and results (`espalier.pages.session.kept_work`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import cache
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError, ProjectError
from espalier.core.graph.dag import Dag
from espalier.core.graph.merge import inside
from espalier.core.graph.roles import Roles
from espalier.core.methods.registry import DEFAULT
from espalier.core.project.declared_by import read_declared_by
from espalier.core.project.file import Project
from espalier.core.project.people import check_answer, stated
from espalier.core.project.plan import Plan
from espalier.core.project.schema_json import (
    column_from_json,
    column_to_json,
    identifier_from_json,
    identifier_to_json,
    left_out_from_json,
    left_out_to_json,
)
from espalier.pages.common import sign_in
from espalier.pages.common.text import name
from espalier.pages.data.review_draft import Settled
from espalier.pages.session.drafts import Kept
from espalier.pages.session.session import Session

MOST = 5_000_000
"""Maximum number of characters in a draft; a tab stores about five million. Codebooks are kept by their names."""
_KEEP = """
const found = (key, { keep, forget, ask }) => {
  if (keep) sessionStorage.setItem(key, keep);
  else if (forget) sessionStorage.removeItem(key);
  else if (ask) return sessionStorage.getItem(key);
  return null;
};
export default function ({ data, setTriggerValue }) {
  try {
    const draft = found("espalier-draft", data.draft), work = found("espalier-work", data.work);
    if (draft || work) setTriggerValue("found", { draft, work });
  } catch { /* a browser that keeps nothing */ }
}
"""


@cache
def _component() -> Any:
    return st.components.v2.component("espalier_draft", js=_KEEP, html="<span></span>")


def kept(state: Session) -> str | None:
    """Return the text that the tab keeps about the open project."""
    if not state.has_project:
        return None
    project = state.project
    whole = not project.unconfirmed
    one_row = stated(project.one_row_per_person, project.plan)
    answer = None if one_row is None else [one_row, project.plan.person, project.plan.rows_per_person]
    drawing: dict[str, Any] = {"dag": project.dag.to_json(), "roles": project.roles.to_json(), "answer": answer}
    drawing |= {"columns": _settled(project, state), "dictionaries": [d.to_json() for d in project.dictionaries]}
    text = json.dumps(
        {
            "account": account(),
            "title": project.name,
            "project": project.dumps() if whole else None,
            "rows": state.public_rows if whole else None,
            "sample": state.sample,
            "opened": [group for group in state.drafts.board.opened if group in project.dag.groups],
            **({} if whole else drawing),
        },
        ensure_ascii=False,
    )
    return text if len(text) <= MOST else None


def account() -> str:
    """Return text that differs for each account, or the same text for everyone if there is no sign-in."""
    return hashlib.sha256(json.dumps(sign_in.identity()).encode()).hexdigest()


def _settled(project: Project, state: Session) -> dict[str, Any]:
    """Return four lists: columns that are not guesses, confirmed omissions, identifiers, and columns that a
    person left out.
    """
    columns = [c for c in project.schema.columns if not c.guessed]
    out = [c for c in project.schema.left_out if c.confirmed]
    told: list[dict[str, Any]] = [{**identifier_to_json(c), "place": c.place} for c in project.schema.identifiers]
    aside = [n for n in state.columns if n not in project.schema and n in state.drafts.review.aside]
    return {
        "described": [column_to_json(c) for c in columns],
        "left_out": [left_out_to_json(c) for c in out],
        "identifiers": told,
        "aside": [n for n in aside if n != project.plan.person],
    }


def _columns(data: Any) -> Settled:
    """Return the columns that the tab kept; raises :class:`EspalierError`, :class:`KeyError` or :class:`TypeError`."""
    described = tuple(column_from_json(c) for c in data["described"])
    if any(c.guessed for c in described):
        raise ProjectError("the draft contains an open guess")
    told = tuple(
        identifier_from_json({k: v for k, v in c.items() if k != "place"}, c["place"]) for c in data["identifiers"]
    )
    aside = tuple(data["aside"])
    if not all(isinstance(name, str) for name in aside):
        raise TypeError
    return Settled(described, tuple(map(left_out_from_json, data["left_out"])), told, aside)


def read(text: Any) -> Kept:
    """Return the draft that the tab kept; raises :class:`EspalierError`."""
    if not isinstance(text, str) or len(text) > MOST:
        raise ProjectError("the draft is too large")
    try:
        data = json.loads(text)
        title, rows, sample = data["title"], data["rows"], data["sample"]
        if data["account"] != account():
            raise ProjectError("this draft belongs to another account")
        project = None if data["project"] is None else Project.loads(data["project"])
        dag = project.dag if project else Dag.from_json(data["dag"])
        roles = project.roles if project else Roles.from_json(data["roles"])
        answer = None if project else _answer(data.get("answer"))
        columns = _columns(data["columns"]) if project is None and "columns" in data else Settled()
        used = read_declared_by(data.get("dictionaries", []))
        opened = tuple(group for group in data.get("opened", []) if group in dag.groups)
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError):
        raise ProjectError("the draft cannot be read") from None
    if not isinstance(title, str) or not isinstance(sample, str) or (rows is not None and not _is_number_of_rows(rows)):
        raise ProjectError("the draft cannot be read")
    return Kept(title, dag, roles, project, rows, sample, answer, columns, used, opened)


def _is_number_of_rows(rows: Any) -> bool:
    """Return whether the Plan page can show ``rows`` in its field for the number of rows."""
    return type(rows) is int and 1 <= rows < 2**53


def _answer(data: Any) -> tuple[bool, str | None, int] | None:
    """Return the answer to the question about rows per person; raises :class:`TypeError` or :class:`EspalierError`."""
    if data is None:
        return None
    one_row, person, k = data
    if not isinstance(one_row, bool):
        raise TypeError
    plan = Plan(DEFAULT, 1.0, person=person, rows_per_person=k)
    check_answer(one_row, plan)
    return one_row, plan.person, plan.rows_per_person


def keep(state: Session) -> None:
    """Let the tab keep the open project, or ask the tab for the project that it kept. Called once, at the end of a
    page.
    """
    key = "espalier-draft"

    def take() -> None:
        found = st.session_state[key].get("found") or {}
        if isinstance(token := found.get("work"), str):
            state.take_back(token)
        if found.get("draft") and not state.has_project and state.found is None:
            try:
                state.found = read(found["draft"])
            except EspalierError:
                state.forget = True

    state.store()
    text = kept(state)
    draft = {"keep": text, "forget": text is None and state.forget, "ask": text is None and state.found is None}
    work = {"keep": state.token, "forget": state.gone, "ask": True}
    _component()(key=key, height=1, data={"draft": draft, "work": work}, on_found_change=take)


def offer(state: Session) -> None:
    """Offer to restore the draft that the tab kept from before a reload."""
    found, place = state.found, st.empty()  # always reserved, because fields below must not move while they are in use
    if found is None or not fits(state, found):
        return
    arrows = f"{len(found.dag.edges)} arrow{'s' * (len(found.dag.edges) != 1)}"
    with place.container(border=True):
        if found.project is not None:
            st.markdown(
                f"**An unsaved draft from before the reload:** {name(found.title)}, "
                f"{len(found.project.schema.columns)} columns, {arrows}. The browser tab kept it, without any row."
            )
        elif not _drawn(found):
            back = ", then restore your answers" if found.answer or found.columns else ""
            st.markdown(
                f"**{name(found.title)} was open before the reload.** {_how_many(found)} Open guesses are not kept, "
                f"because they come from the table: open the table again{back}."
            )
        else:
            st.markdown(
                f"**A drawing from before the reload:** {name(found.title)}, {arrows}. {_how_many(found)} Open guesses "
                "are not kept, because they come from the table: open the table again, then restore the drawing."
            )
        with st.container(horizontal=True):
            able = found.project is not None or state.has_project
            part = "answers" if found.columns else "drawing" if _drawn(found) else "answer"
            label = "Restore the draft" if found.project else f"Restore the {part}"
            if found.project is not None or _drawn(found) or found.answer or found.columns:
                st.button(
                    label, type="primary", disabled=not able, on_click=bring_back, args=(state,), key="restore-draft"
                )
            st.button("Discard it", on_click=forget, args=(state,), key="forget-draft")


def fits(state: Session, found: Kept) -> bool:
    """Return whether there is anything to restore. If a table is open, a drawing or an answer must match it."""
    if found.project is not None or not state.has_project or _answers(state, found):
        return True
    if any(c.name in state.columns for c in found.columns.described):
        return True
    known = set(state.project.schema.names)
    return any(known.issuperset(columns) for columns in _drawn(found))


def _how_many(found: Kept) -> str:
    many = len(found.columns.described)
    return f"The tab kept {many} declared or confirmed column{'s' * (many != 1)}." if many else ""


def _answers(state: Session, found: Kept) -> bool:
    """Return whether the answer to the question about rows per person can be restored."""
    if found.answer is None or not state.project.unit_open:
        return False
    _, person, _ = found.answer
    return person is None or person in state.columns


def _drawn(found: Kept) -> list[tuple[str, ...]]:
    """Return the columns of each arrow and role."""
    return [*found.dag.edges, *((c,) for _, columns in found.roles.items() for c in columns)]


def bring_back(state: Session) -> None:
    """Open the draft. A bundled sample's table is opened with it; any other table must be opened again."""
    from espalier.pages.data.samples import SAMPLES, read_sample

    found, state.found = state.found, None
    if found is None:
        return
    if found.project is not None:
        text = read_sample(found.sample, found.project) if found.sample in SAMPLES else None
        state.open(found.project, text, found.rows, found.sample if text else "")
        state.drafts.board.opened = found.opened
    elif state.has_project:
        if found.answer is not None and _answers(state, found):
            state.answer(*found.answer)
        if state.columns:
            try:
                state.drafts.review.settle(state.editor, state.columns, found.columns, found.dictionaries)
            except EspalierError as error:
                state.trouble["open"] = str(error)
        columns = state.project.schema.names
        dag, _ = inside(found.dag, columns)
        roles = {role: tuple(c for c in cols if c in columns) for role, cols in found.roles.items()}
        state.editor.redraw(replace(dag, notes={**dag.notes, **state.project.dag.notes}), Roles(**roles))
        state.drafts.board.opened = found.opened


def forget(state: Session) -> None:
    """Discard the tab's draft."""
    state.found, state.forget = None, True
