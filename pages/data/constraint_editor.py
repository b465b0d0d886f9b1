"""Constraints on the Data page: impossible combinations, ordered pairs, dependencies.

Constraints added by hand are public. Constraints found in the rows are marked as guessed until they are confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from espalier.core.blurring.registry import blurring_of, is_blurring
from espalier.core.errors import EspalierError, SchemaError
from espalier.core.methods import METHODS, frame_of
from espalier.core.project.constraint_kinds import Determines, Impossible, Monotone, Range, Values
from espalier.core.project.constraints import Constraint, Constraints
from espalier.core.project.file import Project
from espalier.core.project.schema import Column
from espalier.core.tables.consistency import candidates
from espalier.pages.common.text import names, plain
from espalier.pages.session.session import Session

KINDS = {
    "impossible": "Impossible combination",
    "monotone": "One column never exceeds another",
    "determines": "One column determines another",
}


def show(state: Session) -> None:
    """Show the constraints of the open project, and a form to add one."""
    st.markdown(
        "Combinations that cannot occur: the model gives them probability zero, so **no synthetic row has one**. They "
        "are public; real rows may still violate them."
    )
    _listed(state)
    _form(state)
    if trouble := state.trouble.get("constraint"):
        st.error(plain(trouble))
    _look(state)


def _listed(state: Session) -> None:
    given = state.project.constraints
    for i, constraint in enumerate(given):
        left, right = st.columns([6, 1], vertical_alignment="center")
        mark = " :material/warning: **guessed**" if constraint.mark == "guessed" else ""
        left.markdown(f"- {plain(str(constraint))}{mark}")
        right.button(
            "Remove",
            key=f"constraint-off-{state.opened}-{i}",
            on_click=_put,
            width="stretch",
            args=(state, given.without([constraint])),
        )
    if given.guessed:
        st.warning(
            "Guessed constraints come from the real rows. **Confirm one only if you would have written the same "
            "without seeing the rows**; remove the others. No release is possible while a guess is unconfirmed."
        )
        st.button(
            f"Confirm {len(given.guessed)} guessed constraint{'s' if len(given.guessed) > 1 else ''}",
            on_click=_put,
            args=(state, given.confirmed),
            key=f"constraint-confirm-{state.opened}",
            icon=":material/check:",
        )
    if kept := state.editor.aside.constraints:
        are = "constraints are" if len(list(kept)) > 1 else "constraint is"
        st.caption(f"{len(list(kept))} {are} set aside because some columns are left out.")


def _form(state: Session) -> None:
    schema, key = state.project.schema, f"constraint-{state.opened}"
    unable = "; ".join(m.title for m in METHODS.values() if not m.capabilities.constraints)
    kind = st.selectbox(
        "Kind of constraint",
        list(KINDS),
        format_func=KINDS.__getitem__,
        key=f"{key}-kind",
        help=f"These methods cannot enforce constraints: {unable}. Choose another method. Columns whose bins "
        "or categories are bought cannot be used here, because their values are not known yet. If a column "
        "has a hierarchy, an impossible combination can use only its top groups.",
    )
    columns = [c.name for c in schema.columns if c not in schema.undeclared or (kind == "impossible" and c.named)]
    if kind == "impossible":
        chosen = st.multiselect("Columns", columns, key=f"{key}-columns", placeholder="Choose two or more columns")
        values = {name: _values(schema[name], key) for name in chosen}
        ready = bool(chosen) and all(v is not None for v in values.values())
        made = Constraints(impossible=(Impossible({n: v for n, v in values.items() if v is not None}),))
    else:
        a, b = st.columns(2)
        ordered = kind == "monotone"
        first = a.selectbox("Smaller column" if ordered else "Determining column", columns, index=None, key=f"{key}-a")
        second = b.selectbox("Larger column" if ordered else "Determined column", columns, index=None, key=f"{key}-b")
        made, ready = Constraints(), False
        if first is None or second is None or first == second:
            pass
        elif kind == "monotone":
            made, ready = Constraints(monotone=(Monotone(first, second),)), True
        else:
            table = _table(schema[first], schema[second], key)
            made, ready = Constraints(determines=(Determines(first, second, table),)), bool(table)
    st.button(
        "Add this constraint", key=f"{key}-add", on_click=_add, args=(state, made), disabled=not ready, type="primary"
    )


def _values(column: Column, key: str) -> Values | None:
    """Return the values of one column in an impossible combination, or None until values are chosen."""
    if column.kind != "numeric":
        chosen = st.multiselect(f"Values of {plain(column.name)}", list(column.named), key=f"{key}-of-{column.name}")
        return tuple(chosen) or None
    a, b = st.columns(2)
    low = a.number_input(f"{plain(column.name)} from (blank: any)", value=None, key=f"{key}-from-{column.name}")
    high = b.number_input(f"{plain(column.name)} below (blank: any)", value=None, key=f"{key}-below-{column.name}")
    if low is None and high is None:
        return None
    return Range(-math.inf if low is None else float(low), math.inf if high is None else float(high))


def _table(cause: Column, effect: Column, key: str) -> dict[str, str]:
    """Show the value table of a dependency, which the user fills in."""
    if cause.kind == "numeric":
        st.info("The first column must have categories, because a bin of numbers does not determine a value.")
        return {}
    shown = st.data_editor(
        {cause.name: list(cause.categories), effect.name: [""] * len(cause.categories)},
        key=f"{key}-table-{cause.name}-{effect.name}",
        disabled=[cause.name],
        hide_index=True,
        column_config={effect.name: _cell(effect)},
    )
    pairs = zip(shown[cause.name], shown[effect.name], strict=True)
    table = {c: str(e) for c, e in pairs if e}
    return table if len(table) == len(cause.categories) else {}


def _cell(effect: Column) -> Any:
    if effect.kind == "numeric":
        return st.column_config.TextColumn(help="A number for each category")
    return st.column_config.SelectboxColumn(options=list(effect.categories))


def _add(state: Session, new: Constraints) -> None:
    try:
        together = Constraints.from_json((state.project.constraints + new).to_json())  # rejects cycles
        refuse(replace(state.project, constraints=together))
    except EspalierError as error:
        state.trouble["constraint"] = str(error)
        return
    _put(state, together)


def refuse(project: Project) -> None:
    """Raise an error if constraints do not match the columns or would bypass a separation of the plan."""
    project.constraints.masks(project.schema, project.plan.max_cells)
    try:
        blurring_of(project.plan).check(project) if is_blurring(project.plan) else frame_of(project)
    except EspalierError as error:
        if error.data.get("key") == "constraints":
            raise
        project.constraints.check(project.schema, project.separations)  # the plan is still incomplete


def _put(state: Session, constraints: Constraints) -> None:
    state.trouble.pop("constraint", None)
    state.editor.change_constraints(constraints)


def _look(state: Session) -> None:
    """On request, show constraints found in the rows."""
    if state.text is None:
        return
    st.button(
        "Look for constraints in the rows (confidential)",
        on_click=_guess,
        args=(state,),
        key=f"constraint-look-{state.opened}",
        icon=":material/visibility:",
        help="This reads real rows. Its findings are marked as guessed and block a release until you confirm them.",
    )


def _guess(state: Session) -> None:
    try:
        table = state.table()
        found = candidates(state.project.schema, table.codes)
    except (EspalierError, SchemaError) as error:
        state.trouble["constraint"] = str(error)
        return
    fitting, refused = state.project, list[Constraint]()
    for constraint in found:
        one = found.without([c for c in found if c is not constraint])
        try:
            new = replace(fitting, constraints=fitting.constraints + one)
            refuse(new)
            fitting = new
        except EspalierError:
            refused.append(constraint)
    _put(state, fitting.constraints)
    if refused:
        state.trouble["constraint"] = f"Left out because the plan's frame separates their columns: {_some(refused)}"


def _some(constraints: Sequence[Constraint]) -> str:
    return names([str(c) for c in constraints], 5)
