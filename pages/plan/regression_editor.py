"""Editor for the regressions that a plan buys: their list, a builder, and their share of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from espalier.core.analysis.answer_text import event_name
from espalier.core.errors import EspalierError
from espalier.core.planning.preview import Preview
from espalier.core.project.column import Column
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import ToBuy
from espalier.pages.common import shell
from espalier.pages.common.text import plain
from espalier.pages.plan import listed
from espalier.pages.session.session import Session

_ABOUT = (
    "You can buy a regression directly: the release measures the required sums with noise, and the coefficients come "
    "with intervals, whichever method you choose. Each number is replaced by the midpoint of its bin."
)
FAMILIES = {"linear": "linear", "logistic": "logistic", "poisson": "Poisson"}


def show(state: Session) -> Any:
    """Show the regressions, the builder and the share. Return the place where a conflict is shown."""
    folder = shell.folded(
        "Regressions to buy", partial(_fields, state), bool(state.project.plan.regressions), "regression-"
    )
    spot = folder.container()
    if reason := state.trouble.get("regressions"):
        spot.error(plain(reason))
    return spot


def _fields(state: Session) -> None:
    regressions = state.project.plan.regressions
    st.markdown(_ABOUT)
    for i, one in enumerate(regressions):
        robust = ", robust" if one.robust else ""
        on = plain(", ".join(one.on))
        listed.line(
            f"**{plain(one.name)}**: {FAMILIES[one.family]} of {plain(one.outcome)} on {on}{robust}",
            f"regressions-{i}-{state.opened}",
            f"Remove the regression {one.name}",
            *(_take, state, (*regressions[:i], *regressions[i + 1 :])),
        )
    _build(state)
    if regressions:
        listed.share(
            state,
            "regression_share",
            "Share of the budget for regressions (%)",
            "The method gets the rest. The share is divided evenly among the regressions.",
        )


def _build(state: Session) -> None:
    schema, at = state.project.schema, f"{state.opened}-{len(state.project.plan.regressions)}"
    columns = [c for c in schema.columns if not isinstance(c, ToBuy) and c.values > 1]
    family = st.selectbox("Family", list(FAMILIES), format_func=FAMILIES.__getitem__, key=f"regression-family-{at}")
    outcome = st.selectbox(
        "Outcome",
        outcomes(columns, family),
        index=None,
        format_func=partial(event_name, schema),
        key=f"regression-outcome-{family}-{at}",
    )
    if outcome is None:
        return
    taken = outcome if outcome in schema else outcome.partition("=")[0]
    others = [c.name for c in columns if c.name != taken]
    on = st.multiselect("Predictors", others, key=f"regression-on-{at}", placeholder="columns")
    robust = st.toggle(
        "Robust intervals",
        key=f"regression-robust-{at}",
        help="Robust standard errors remain valid if the outcome's spread differs between rows. They cost 30 % of "
        "the share.",
    )
    name = st.text_input("Name", key=f"regression-name-{at}", placeholder="a short name for the report").strip()
    asked = {"name": name, "outcome": outcome, "on": on, "family": family, "robust": robust}
    st.button(
        "Add the regression",
        on_click=_add,
        args=(state, asked),
        disabled=not (name and on),
        key=f"regression-add-{at}",
        icon=":material/add:",
    )


def outcomes(columns: Sequence[Column], family: str) -> list[str]:
    """Return the possible outcomes of a family: events, numbers, or both."""
    numbers = [c.name for c in columns if c.kind == "numeric"]
    events = [f"{c.name}={value}" for c in columns if c.kind != "numeric" for value in c.value_names]
    return events if family == "logistic" else numbers if family == "poisson" else [*numbers, *events]


def _add(state: Session, asked: dict[str, Any]) -> None:
    try:
        _take(state, (*state.project.plan.regressions, BoughtRegression.from_json(asked)))
    except EspalierError as error:
        state.trouble["regressions"] = str(error)


def _take(state: Session, taken: tuple[BoughtRegression, ...]) -> None:
    share = state.project.plan.regression_share or (0.2 if taken else 0.0)
    try:
        state.editor.change_plan(regressions=taken, regression_share=share if taken else 0.0)
        state.trouble.pop("regressions", None)
    except EspalierError as error:
        state.trouble["regressions"] = str(error)


def planned(seen: Preview) -> None:
    """Show how much data the regressions need, before any row is read."""
    if not seen.needs:
        return
    st.subheader("What your regressions need", anchor=False)
    st.markdown("\n".join(f"- {plain(one.sentence)}" for one in seen.needs))
    st.caption("With fewer rows, noise may leave a coefficient's interval unbounded. A rare event needs more rows.")
