"""The fields of a plan."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from espalier.core.blurring.notice import NOT_PRIVATE
from espalier.core.blurring.registry import BLURRINGS, blurring_of, is_blurring
from espalier.core.errors import EspalierError
from espalier.core.methods import METHODS, method_of, offered
from espalier.core.methods.purpose import Advice
from espalier.core.planning.expectation import Assumed
from espalier.core.privacy.contribution import public_rows
from espalier.core.project.plan import AUTO, LEAST_RARER, AccountingRule, Plan
from espalier.core.release.blurred import SENTENCE
from espalier.pages.common import fields, shell, text
from espalier.pages.common.text import plain
from espalier.pages.plan import drawing_test, method_options, people_fields, purpose
from espalier.pages.plan.conflicts import Spots
from espalier.pages.session.session import Session

_FENCE = {
    "always": "This method always has a fence.",
    "never": "This method never has a fence.",
    "optional": "This method can have a fence.",
}


def show(state: Session) -> Spots:
    """Draw the fields. Return the place under each field where a conflict is shown."""
    plan, columns = state.project.plan, list(state.project.schema.names)
    methods = list(dict.fromkeys([*offered(state.project), *BLURRINGS, plan.method]))
    private = not is_blurring(plan)
    spots: Spots = {}

    purpose.show(state, _purposeful)
    left, right = shell.beside((1, 1), "plan")
    with left:
        st.selectbox(
            "Method",
            methods,
            index=methods.index(plan.method),
            format_func=text.method,
            **_bound(state, "method", _method),
        )
        st.markdown(_about(plan))
        st.selectbox(
            "Target (the column to predict)",
            columns,
            index=columns.index(plan.target) if plan.target else None,
            placeholder="Choose a column",
            **_bound(state, "target", lambda s, v: s.editor.change_plan(target=v, rarer=None)),
        )
        spots["target"] = st.container()
        if private and plan.target is not None:
            _rarer(state, spots)
        spots |= method_options.first(state, _bound)
        if private:
            _fence(state, spots)
    with right:
        if private:
            _promise(state, spots)
        else:
            st.error(f"**{NOT_PRIVATE}.** {SENTENCE} This method takes no ε, and no ledger records its releases.")
    if private:
        with st.expander(f"More: allocation, accounting, synthetic {text.counted(state.project)}, schema"):
            _more(state)
            spots["schema_share"] = st.container()
        if method_of(plan).capabilities.embedding or plan.embedding_share:
            with st.expander("More: structure beyond pairs of columns", expanded=bool(plan.embedding_share)):
                _stage(state)
                spots["embedding_share"] = st.container()
        if state.project.linked is None or plan.test_drawing:
            with st.expander("More: test of the drawing", expanded=bool(plan.test_drawing)):
                drawing_test.fields(state, _bound)
                spots["test_drawing"] = spots["statements"] = st.container()
    if method_options.any_further(state):
        with st.expander(f"More: options of {text.method(plan.method)}", expanded=method_options.any_changed(state)):
            spots |= method_options.further(state, _bound)
    purpose.left_aside(state)
    return spots


def _about(plan: Plan) -> str:
    """Describe the plan's method and its use."""
    if is_blurring(plan):
        method = blurring_of(plan)
        return f"**{method.title}**: {method.summary}. {method.when}"
    private = method_of(plan)
    return f"**{private.title}**: {private.summary}. {private.guidance.when}"


def _advanced(state: Session, spots: Spots, public: bool) -> None:
    """Unit of privacy, δ, n and rows per person; open if any differs from its default."""
    plan = state.project.plan
    unusual = not public or plan.delta is not None or state.public_rows is None or "delta" in state.trouble
    with st.expander(f"Advanced: who is protected, δ, number of {text.counted(state.project)}", expanded=unusual):
        known = list(text.NEIGHBORS)
        st.radio(
            "Neighbouring tables",
            known,
            index=known.index(plan.neighbors),
            horizontal=True,
            **_bound(state, "neighbors"),
        )
        filled = plan.person and plan.neighbors == "replace-one"
        st.caption(text.DECLARED if filled else text.NEIGHBORS[plan.neighbors])
        spots["neighbors"] = st.container()
        if public and state.public_rows is not None:
            _n(state)
            spots["rows"] = st.container()
        if plan.pure:
            st.caption("δ is 0: every draw of this plan has a pure guarantee.")
        else:
            st.text_input(
                "δ (blank: 1/n²)" if plan.neighbors == "replace-one" else "δ (required; for example 1e-9)",
                _typed_delta(state),
                help="The probability that the promise of ε fails. Keep it far below 1/n.",
                **_bound(state, "delta", _delta),
            )
        spots["delta"] = st.container()
        if "delta" in state.trouble:
            spots["delta"].error(f"{plain(state.trouble['delta'])} The plan keeps its old δ.")
        people_fields.show(state, spots, _bound)


def _rarer(state: Session, spots: Spots) -> None:
    """Draw the field for the share of rows with the target's rarest value, if the verdict reads it."""
    plan, method = state.project.plan, method_of(state.project.plan)
    if not method.capabilities.links or not (method.capabilities.targets or method.fenced(plan)):
        return

    def take(s: Session, percent: float | None) -> None:
        s.editor.change_plan(rarer=None if percent is None else round(percent / 100, 6))

    st.number_input(
        f"Rows with the rarest value of {plain(plan.target or '')} (%)",
        100 * LEAST_RARER,
        50.0,
        None if plan.rarer is None else round(100 * plan.rarer, 4),
        format="%g",
        placeholder=f"not known: {100 * Assumed.rarer:g} is assumed",
        help="Noise hides rare values first, so the verdict depends on this share. Nothing else uses it. Take it from "
        "a public source, not from a count of this table.",
        **_bound(state, "rarer", take),
    )
    spots["rarer"] = st.container()


def _fence(state: Session, spots: Spots) -> None:
    """Draw the switches of the fence."""
    plan, method = state.project.plan, method_of(state.project.plan)
    fair, kept = _bound(state, "fair"), method.capabilities.fence
    st.session_state[fair["key"]] = method.fenced(plan)
    st.toggle(
        "Fence between outcome and protected columns",
        wrap=True,
        disabled=kept != "optional" and plan.fair in (None, kept == "always"),
        help="The outcome may depend on protected columns only through the admissible ones. " + _FENCE[kept],
        **fair,
    )
    spots["fair"] = spots["roles"] = st.container()
    if method.fenced(plan):
        st.toggle(
            "Strict: also fence off the inadmissible columns",
            plan.strict,
            wrap=True,
            help="If off, an inadmissible column may be linked to the outcome or to the protected columns, but not to "
            "both. If on, inadmissible columns are on the protected side.",
            **_bound(state, "strict"),
        )


def _promise(state: Session, spots: Spots) -> None:
    """Draw the field for ε, the field for n if it is missing, and the advanced fields."""
    plan = state.project.plan
    _epsilon(state)
    spots["epsilon"] = spots["consequences"] = st.container()
    public = plan.neighbors == "replace-one" and plan.person is None
    if public and state.public_rows is None:
        _n(state)
        spots["rows"] = st.container()
    if plan.neighbors == "add-remove":
        counted = text.counted(state.project)
        st.number_input(
            f"Declared number of {counted}",
            1,
            10_000_000,
            plan.rows,
            placeholder="type a round number",
            help=f"Under add-remove the number of {counted} is confidential. Enter a public estimate, not a count of "
            f"this table. The verdict uses this number, and the synthetic table has the same number of {counted}.",
            **_bound(state, "rows"),
        )
        if plan.rows is None:
            st.caption(
                f"Declare the number of {counted} to see the verdict on this plan. Without it, a release still works."
            )
    _advanced(state, spots, public)


def _more(state: Session) -> None:
    plan, method = state.project.plan, method_of(state.project.plan)
    a, b = st.columns(2)
    with a:
        if method.offers(plan, "allocation"):
            rules = ["auto", "optimal", "uniform"]
            st.session_state[f"plan-{state.opened}-allocation"] = (
                plan.allocation if isinstance(plan.allocation, str) else None
            )
            st.selectbox(
                "Allocation inside a pool",
                rules,
                placeholder="set by hand below",
                help="*optimal* gives larger shares to larger tables of counts, *uniform* gives all tables the same "
                "share, and *auto* uses the rule that did better in Espalier's benchmarks. You can also set shares by "
                "hand below.",
                **_bound(state, "allocation"),
            )
        if method.offers(plan, "accounting"):
            kinds = [*method.capabilities.accounting]
            if plan.accounting not in kinds:
                kinds.append(plan.accounting)  # shown until the user corrects it
            st.selectbox(
                "Accounting",
                kinds,
                index=kinds.index(plan.accounting),
                help="*zcdp* adds up ρ and converts the sum to ε once, with a tight formula. *basic* adds up ε and "
                "sets the noise of each measurement separately; the noise is larger, because part of the budget stays "
                "unused. *pure* has δ = 0 and Laplace noise, and adds up ε.",
                **_bound(state, "accounting", _take_accounting),
            )
    with b:
        if method.capabilities.targets:
            _further_targets(state)
        if plan.person is None and plan.neighbors == "replace-one":
            st.number_input(
                f"Synthetic {text.counted(state.project)} (blank: same as the table)",
                1,
                10_000_000,
                plan.rows,
                placeholder="as many as the table",
                **_bound(state, "rows"),
            )
        st.number_input(
            "Share of the budget for buying the schema",
            0.0,
            0.5,
            plan.schema_share,
            0.01,
            help="This share pays for the private choice of bins and categories in columns that declare none (set to "
            "“at most 50” or “8 bins” on the Data page). The counts get the rest; 0.05 is a reasonable first value.",
            **_bound(state, "schema_share"),
        )
        if method.offers(plan, "copies"):
            st.number_input(
                "Copies for intervals",
                0,
                100,
                plan.copies,
                help="A copy is an alternative version of the release, as other people and other noise might have "
                "produced it. With 20 copies, any software can compute intervals. Copies use no budget and can also "
                "be made later.",
                **_bound(state, "copies"),
            )


def _stage(state: Session) -> None:
    """Draw the choice of a second stage for whole rows: off, decided by a probe, or a share."""
    share = state.project.plan.embedding_share
    known = {"off": "Off", AUTO: "Only if a probe shows that it is needed", "on": "Always"}
    choice = share if share == AUTO else "on" if share else "off"
    st.selectbox(
        "Second stage for whole rows",
        list(known),
        list(known).index(choice),
        format_func=known.__getitem__,
        help="A second stage is useful if the classes of the target depend on many columns at once. It uses half of "
        "the budget to measure features of whole rows in each class.",
        **_bound(state, "embedding_share", lambda s, v: s.editor.change_plan(embedding_share=STAGES[v])),
    )


STAGES: dict[str, float | str] = {"off": 0.0, AUTO: AUTO, "on": 0.5}
"""Shares of the second stage that the page offers; a project file may use others."""


def _further_targets(state: Session) -> None:
    """Draw the fields for further columns to predict, with weights relative to the target's."""
    plan = state.project.plan
    further = [name for name in plan.targets if name != plan.target]

    def take(s: Session, chosen: list[str]) -> None:
        s.editor.change_plan(targets={name: plan.targets.get(name, 1.0) for name in chosen})

    st.multiselect(
        "Further targets",
        [name for name in state.project.schema.names if name != plan.target],
        further,
        placeholder="none",
        disabled=plan.target is None,
        help="Other columns that models trained on the table should predict well. They share the target's budget.",
        **_bound(state, "targets", take),
    )
    for i, name in enumerate(further):

        def weigh(s: Session, weight: float, name: str = name) -> None:
            s.editor.change_plan(targets={**s.project.plan.targets, name: weight})

        st.number_input(
            f"Weight of {plain(name)} (the target's is {plan.weights[plan.target or '']:g})",
            0.01,
            1000.0,
            float(plan.targets[name]),
            **_bound(state, f"weight-{i}-{len(further)}", weigh),
        )


def _epsilon(state: Session) -> None:
    epsilon = state.project.plan.epsilon
    field = _bound(state, "epsilon", _take_epsilon)
    typed = state.drafts.plan.epsilon
    st.session_state[field["key"]] = f"{epsilon:g}" if typed is None else typed
    st.text_input(
        "ε (the budget)",
        help="A smaller ε protects more but adds more noise. About 1 is common; above 8 protects little.",
        **field,
    )
    if "epsilon" in state.trouble:
        st.error(f"{plain(state.trouble['epsilon'])} The plan keeps ε = {epsilon:g}.")


def _n(state: Session) -> None:
    key = f"n-{state.opened}"

    def take() -> None:
        state.rows = st.session_state[key]

    def declare(rows: int) -> None:
        state.rows = public_rows(state.project.plan, rows)

    st.session_state[key] = state.rows
    counted = text.counted(state.project)
    st.number_input(
        f"Number of {counted} n",
        1,
        None,
        None,
        key=key,
        on_change=take,
        placeholder="type it, if you know it",
        help="Under replace-one, n is public. It is needed for δ = 1/n², and to show errors as a share of n.",
    )
    if state.public_rows is None and state.text is not None:
        st.button(
            f"Use the open table's number of {counted}",
            on_click=declare,
            args=(state.text.rows,),
            help="This declares the number as public.",
        )


def _bound(state: Session, name: str, take: Callable[[Session, Any], None] | None = None) -> dict[str, Any]:
    """Return a widget's key and the callback that stores its value in the plan."""
    key = f"plan-{state.opened}-{name}"

    def changed() -> None:
        value = st.session_state[key]
        try:
            (take or (lambda s, v: s.editor.change_plan(**{name: v})))(state, value)
            state.trouble.pop(name, None)
        except EspalierError as error:
            state.trouble[name] = str(error).removeprefix("plan: ")

    return {"key": key, "on_change": changed}


def _method(state: Session, method: str) -> None:
    """Change the method. The plan's setting of the fence is kept for methods with an optional fence."""
    plan = state.project.plan
    if not is_blurring(plan) and (method_of(plan).capabilities.fence == "optional" or plan.fair is not None):
        state.drafts.plan.fair = plan.fair
    if method in BLURRINGS:  # methods that are not private refuse an ε
        state.editor.change_plan(
            method=method,
            fair=None,
            epsilon=math.inf,
            delta=None,
            person=None,
            private_evaluation=0.0,
            rows=None,
            strict=False,
            test_drawing=0.0,
        )
        return
    if not plan.has_epsilon:
        state.drafts.plan.epsilon = None
        state.editor.change_plan(method=method, epsilon=1.0)
    optional = METHODS[method].capabilities.fence == "optional"
    state.editor.change_plan(method=method, fair=state.drafts.plan.fair if optional else None)


def _purposeful(state: Session, advice: Advice) -> None:
    """Apply the recommended method and the options that it needs for the purpose."""
    _method(state, advice.method.name)
    state.editor.change_plan(**advice.changes)
    state.opened += 1  # creates new widgets, which show the new plan


def _take_accounting(state: Session, rule: AccountingRule) -> None:
    """Set the accounting rule. The plan's δ is dropped if the old or the new rule is pure."""
    before = state.project.plan
    state.drafts.plan.delta = None
    state.editor.change_plan(accounting=rule, delta=None if "pure" in (rule, before.accounting) else before.delta)


def _take_epsilon(state: Session, typed: str) -> None:
    state.drafts.plan.epsilon = typed
    state.editor.change_plan(epsilon=fields.number(typed, "ε"))


def _typed_delta(state: Session) -> str:
    typed, delta = state.drafts.plan.delta, state.project.plan.delta
    return typed if typed is not None else "" if delta is None else f"{delta:g}"


def _delta(state: Session, typed: str) -> None:
    state.drafts.plan.delta = typed
    state.editor.change_plan(delta=fields.number(typed, "δ") if typed.strip() else None)
