"""Diagnostics of linked tables: figures with verdicts, and pictures of the transitions between visits. Confidential."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from espalier.core.evaluation.linked_pictures import flows, survival, transitions
from espalier.core.evaluation.linked_verdict import DISTANCES, RATES, LinkedVerdict, judged
from espalier.core.tables.panel import Panel
from espalier.core.tables.released import read_linked
from espalier.pages.common import charts, shell, story
from espalier.pages.common.text import plain
from espalier.pages.diagnostics.summary import show_grade
from espalier.pages.release import payment
from espalier.pages.session.bundles import ReleaseBundle
from espalier.pages.session.session import Session

if TYPE_CHECKING:
    import plotly.graph_objects as go

TITLE = "The original tables"


def show(state: Session, released: ReleaseBundle) -> None:
    """Show the button that compares the real and the synthetic tables, then the figures and pictures."""
    real = released.holdout or released.real
    assert isinstance(real, Panel)
    if state.job is not None:
        shell.progress()
    elif TITLE not in state.findings:
        st.markdown(f"Release {released.number} can be compared with the real people and visits. This spends nothing.")
        st.button(
            "Compare with the real tables",
            type="primary",
            on_click=_start,
            args=(state, released, real),
            icon=":material/monitoring:",
        )
    if reason := state.trouble.get("diagnostics"):
        st.error(f"The comparison did not finish: {plain(reason)}")
    if TITLE in state.findings:
        found = state.findings[TITLE]
        show_grade(found["verdict"].grade, found["verdict"].headline)
        if state.sample and state.sample == released.release.project.name:
            story.show(state.sample)
        _figures(found["verdict"])
        _pictures(real, found["synthetic"], released.number)


def _start(state: Session, released: ReleaseBundle, real: Panel) -> None:
    """Run the comparison as a background job."""
    project, record = released.release.project, payment.diagnosed(state, released)
    files = released.files

    def work(report: Any) -> dict[str, Any]:
        record([real])  # before anything is computed
        assert project.linked is not None
        report(0.1, "Comparing visits")
        synthetic = read_linked(project.linked, project.schema, files)
        return {"verdict": judged(project, real, synthetic), "synthetic": synthetic}

    number = released.number

    def done(into: Session, found: dict[str, Any]) -> None:
        if into.releases == number:
            into.findings[TITLE] = found

    state.start("diagnostics", work, done)


def _figures(found: LinkedVerdict) -> None:
    """Show the distances with their floors, the rates, and the prediction of the next visit."""
    st.dataframe(
        [
            {"compared": text, "distance": found.figures[n], "floor": found.floor[n], "verdict": found.grades[n]}
            for n, text in DISTANCES.items()
        ],
        hide_index=True,
        column_config={
            "distance": st.column_config.NumberColumn(
                format="%.3f", help="Total variation from 0 to 1; lower is better."
            ),
            "floor": st.column_config.NumberColumn(
                format="%.3f",
                help="Total variation of a resample of the real people; no release is expected to be closer.",
            ),
        },
    )
    st.dataframe(
        [
            {
                "measured": text,
                "real": found.figures[f"{n}_real"],
                "synthetic": found.figures[n],
                "verdict": found.grades[n],
            }
            for n, text in RATES.items()
        ],
        hide_index=True,
        column_config={k: st.column_config.NumberColumn(format="%.3f") for k in ("real", "synthetic")},
    )
    task = found.task
    if task.auc_synthetic is None or task.auc_real is None:
        st.caption(f"The next visit was not predicted: {plain(task.reason)}.")
        return
    st.markdown(
        f"**Predicting {plain(task.target)} of the next visit** from the person and the previous visit. AUC "
        f"{task.auc_synthetic:.3f} when trained on synthetic people, {task.auc_real:.3f} when trained on real ones, "
        f"both tested on {task.tested_steps:,} real visits: {found.grades['next_visit']}."
    )


def _pictures(real: Panel, synthetic: Panel, number: int) -> None:
    """Show transitions and flow of one column, and survival to the next visit by a column of the person."""
    assert real.linked is not None
    link, schema = real.linked, real.schema
    columns = [n for n in link.step_columns(schema) if n in schema]
    column = st.selectbox("Column in the table of visits", columns, key=f"linked-column-{number}")
    tabs = st.tabs(["Transitions", "Flow over visits", "Survival to the next visit"])
    both = {"Real": real, "Synthetic": synthetic}
    labels = list(schema[column].labels)
    with tabs[0]:
        st.markdown("Each row shows, for people with this value at a visit, the shares of values at the next visit.")
        for place, (title, panel) in zip(shell.beside((1, 1), "transitions"), both.items(), strict=True):
            with place:
                st.markdown(f"**{title}**")
                figure = charts.heat(
                    transitions(panel, column).tolist(), [labels, labels], ["previous visit", "next visit"], 1.0
                )
                charts.show(figure, f"transition-{title}-{number}", f"{title}: transition matrix of {column}")
    with tabs[1]:
        for title, panel in both.items():
            st.markdown(f"**{title}**")
            charts.show(sankey(panel, column, labels), f"flow-{title}-{number}", f"{title}: flow of {column}")
    with tabs[2]:
        group = st.selectbox("By", link.person_columns(schema), key=f"linked-group-{number}")
        names = schema[group].labels
        charts.show(
            stairs({title: survival(panel, group) for title, panel in both.items()}, names),
            f"survival-{number}",
            f"Share of people with at least this many visits, by {group}",
        )
        st.caption(f"The last kept visit, number {link.keep}, is censored: it is unknown whether another follows.")


def sankey(panel: Panel, column: str, labels: list[str]) -> go.Figure:
    """Draw the flow of one column over the first visits."""
    import plotly.graph_objects as go

    found = flows(panel, column)
    nodes = sorted({x for f in found for x in ((f.visit, f.before), (f.visit + 1, f.after))})
    colors = [charts.POOLS[value % len(charts.POOLS)] for value in range(len(labels))]
    at = {node: i for i, node in enumerate(nodes)}
    figure = charts.blank(320)
    figure.add_trace(
        go.Sankey(
            textfont={"shadow": "none"},
            node={
                "label": [f"{charts.short(labels[v], 16)} ({t})" for t, v in nodes],
                "color": [colors[v] for _, v in nodes],
                "pad": 10,
                "thickness": 12,
            },
            link={
                "source": [at[f.visit, f.before] for f in found],
                "target": [at[f.visit + 1, f.after] for f in found],
                "value": [f.share for f in found],
                "color": [_faint(colors[f.before]) for f in found],
            },
        )
    )
    return figure


def _faint(color: str) -> str:
    """Return a translucent form of the colour ``#rrggbb``."""
    return f"rgba({','.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))},0.35)"


def stairs(found: dict[str, Any], names: tuple[str, ...]) -> go.Figure:
    """Draw the share of people with at least 1, 2, … visits. The line of the real people is dotted."""
    import plotly.graph_objects as go

    figure = charts.blank(340)
    for title, groups in found.items():
        for value, shares in groups.items():
            color = charts.POOLS[value % len(charts.POOLS)]
            figure.add_trace(
                go.Scatter(
                    x=list(range(1, len(shares) + 1)),
                    y=shares.tolist(),
                    name=f"{charts.short(names[value], 20)}, {title.lower()}",
                    mode="lines+markers",
                    line={"shape": "hv", "color": color, "dash": "dot" if title == "Real" else "solid"},
                )
            )
    figure.update_xaxes(title="minimum number of visits", dtick=1)
    figure.update_yaxes(title="share of people", range=[0, 1.02])
    return figure
