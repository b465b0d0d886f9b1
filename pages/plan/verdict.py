"""Verdict on the Plan page before spending: one sentence, a dial for ε, and the effect of noise on each column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.ledger.population import Population
from espalier.core.planning.expectation import EPSILONS, Rating
from espalier.core.planning.preview import Preview
from espalier.core.planning.verdict import Step, Verdict, enough
from espalier.core.privacy.accounting import guess_right, rho_asked, round_up
from espalier.pages.common import shell
from espalier.pages.common.text import name, plain
from espalier.pages.glossary.terms import term
from espalier.pages.session.session import Session

HIGHEST = 420
"""Maximum height in pixels; a longer table scrolls."""
NEAR = 0.95
"""The smallest sufficient ε is offered only if it is at most this share of the plan's ε; otherwise it would save
little.
"""
_DIAL = """
export default function ({ data, parentElement, setTriggerValue }) {
  const input = parentElement.querySelector("input"), shown = parentElement.querySelector("output");
  const says = parentElement.querySelector("p");
  const show = () => {
    const point = data.points[Number(input.value)];
    shown.textContent = "ε = " + point.epsilon;
    input.setAttribute("aria-valuetext", "ε = " + point.epsilon);
    says.textContent = Number(input.value) === data.now ? "" : point.says;
  };
  input.max = data.points.length - 1;
  input.value = data.now;
  input.oninput = show;
  input.onchange = () => setTriggerValue("epsilon", data.points[Number(input.value)].epsilon);
  show();
}
"""
"""While the dial moves, the browser shows the sentences for each ε; on release, it sends the chosen ε to Python."""
_HTML = """<div class="dial"><label>Try another value: <output></output><input type="range" min="0" step="1"></label>
<p role="status" aria-live="polite"></p></div>"""
_CSS = """.dial { font-family: var(--st-font); color: var(--st-text-color); font-size: .95rem; }
.dial input { display: block; width: 100%; height: 1.4rem; margin: .3rem 0; appearance: none; background: none;
  --track: color-mix(in srgb, var(--st-text-color) 50%, transparent); }
.dial input::-webkit-slider-runnable-track { height: .35rem; border-radius: .2rem; background: var(--track); }
.dial input::-moz-range-track { height: .35rem; border-radius: .2rem; background: var(--track); }
.dial input::-webkit-slider-thumb { appearance: none; width: 1.2rem; height: 1.2rem; margin-top: -.43rem;
  border-radius: 50%; background: var(--st-primary-color); }
.dial input::-moz-range-thumb { width: 1.2rem; height: 1.2rem; border: 0; border-radius: 50%;
  background: var(--st-primary-color); }
.dial input:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 2px; }
.dial output { font-weight: 700; } .dial p { margin: .2rem 0; min-height: 1.4em; }"""
_BOX: dict[Rating, Callable[..., Any]] = {"works": st.success, "weak": st.warning, "noise": st.warning}


@cache
def _component() -> Any:
    return st.components.v2.component("espalier_dial", js=_DIAL, css=_CSS, html=_HTML)


def headline(state: Session, seen: Preview, population: Population | None) -> None:
    """Show the verdict in one sentence, the dial, and a button with the smallest ε that is enough."""
    found = seen.verdict
    if found is not None:
        _BOX[found.rating](plain(found.headline))
    elif seen.unrated:
        st.info(seen.unrated)
    elif seen.lacks_rows and seen.project.plan.neighbors == "replace-one":  # the field for n states this otherwise
        st.info("Enter the number of rows to see what noise would hide.")
    key = f"dial-{state.opened}"
    points = dial(seen, population)

    def take() -> None:
        chosen = st.session_state[key].get("epsilon")
        if chosen in [point["epsilon"] for point in points]:
            state.choose_epsilon(chosen)

    now = next(i for i, point in enumerate(points) if point["epsilon"] == seen.budget.epsilon)
    _component()(key=key, data={"points": points, "now": now}, on_epsilon_change=take)
    if found is None:
        return
    if found.smallest_epsilon is None:
        st.markdown(f"No ε up to {EPSILONS[-1]:g} is enough for this purpose with these columns.")
        return
    least = float(enough(found.smallest_epsilon))
    if not NEAR * seen.budget.epsilon < least <= seen.budget.epsilon:
        st.markdown(f"The smallest ε that is enough for this purpose is **{least:g}**.")
        st.button(f"Set ε = {least:g}", on_click=state.choose_epsilon, args=(least,), key="smallest-epsilon")


def dial(seen: Preview, population: Population | None) -> list[dict[str, Any]]:
    """Return, for each ε of the dial, the sentences that the browser shows while the dial is moved."""
    found, delta = seen.verdict, seen.budget.delta
    expected = {} if found is None else {e.epsilon: e for e in (*found.grid, found.now)}
    out = []
    for epsilon in sorted({*EPSILONS, seen.budget.epsilon}):
        says = [] if found is None else [replace(found, now=expected[epsilon]).headline]
        right = _percent(epsilon, delta)
        says.append(
            f"Someone who guesses which of two versions of a record is real is right at most {right} of the time."
        )
        if population is not None:
            says.append(
                _left(population, rho_asked(replace(seen.project.plan, epsilon=epsilon), delta), seen.project.plan.pure)
            )
        out.append({"epsilon": epsilon, "says": " ".join(says)})
    return out


def _percent(epsilon: float, delta: float) -> str:
    return f"{round_up(100 * guess_right(epsilon, delta), 3)} %"


def _left(population: Population, rho: float, pure: bool) -> str:
    left = population.outlook(rho, pure)
    if not left["fits"]:
        return f"This is more than the ledger has left: a plan with ε up to {left['largest']:g} fits."
    further = f", enough for a plan with ε up to {left['largest_after']:g}" if left["largest_after"] else ""
    return f"ρ = {left['after']:.4g} of {left['total']:.4g} would remain in the ledger{further}."


def details(state: Session, found: Verdict) -> None:
    """Show the effect of noise on each column, and suggest columns to leave out or coarsen."""
    st.subheader("What noise hides", anchor=False)
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    columns: dict[str, list[Any]] = {
        "column": [c.column for c in found.columns],
        "verdict": [c.rating for c in found.columns],
        "share of the noise (%)": [100 * c.share for c in found.columns],
        "rows moved (%)": [100 * c.error for c in found.columns],
        "smallest visible V": [c.drowned for c in found.columns],
    }
    if all(drowned is None for drowned in columns["smallest visible V"]):
        del columns["smallest visible V"]
    st.dataframe(
        columns,
        hide_index=True,
        placeholder="",
        width="stretch",
        height=min(35 * (len(found.columns) + 1) + 2, HIGHEST),
        column_config={
            "verdict": text(width=80, help="Usability of the column: works, weak, or mostly noise."),
            "share of the noise (%)": number(format="%.1f", help="Share of the plan's noise in this column."),
            "rows moved (%)": number(format="%.2g", help="Share of rows that noise moves to another value."),
            "smallest visible V": number(
                format="%.2f",
                help="Noise hides associations with the target below this Cramér's V (0.1 is small, 0.3 medium).",
            ),
        },
    )
    pairs = found.pair_counts
    st.markdown(
        f"Ratings of the {sum(pairs.values()):,} pairs of columns: “works” for {pairs['works']:,}, “weak” for "
        f"{pairs['weak']:,}, “mostly noise” for {pairs['noise']:,}."
    )
    for i, step in enumerate(found.steps):
        _offer(state, step, i)
    if "step" in state.trouble:
        st.error(plain(state.trouble.pop("step")))
    st.caption(plain(found.assumptions))
    if "AUC" in found.headline:
        st.caption(
            f"AUC refers to {term('TSTR')}: a model is trained on the synthetic table and tested on real rows. "
            "0.5 is a coin toss, 1 is perfect."
        )


def _offer(state: Session, step: Step, i: int) -> None:
    """Show one suggested change of a column. A simple change has a button that makes it."""
    column = state.project.schema[step.column]
    changed = None if step.values_left is None else column.coarser(step.values_left)

    def take() -> None:
        try:
            if changed is None:
                state.leave_out(step.column)
            else:
                state.describe(changed)
        except EspalierError as error:
            state.trouble["step"] = str(error)

    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(plain(step))
        if step.values_left is None:
            st.button(f"Leave out {name(step.column)}", on_click=take, key=f"step-{i}")
        elif changed is not None:
            st.button(f"Coarsen {name(step.column)}", on_click=take, key=f"step-{i}")
        else:
            shell.link_to("Data", f"Group values of {step.column} on the Data page", primary=False)
