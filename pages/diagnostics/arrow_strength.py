"""Strength of each arrow in the released model, and the same link in real and synthetic rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from espalier.core.evaluation.dependence import link
from espalier.core.tables.table import Table
from espalier.pages.common import charts
from espalier.pages.session.bundles import ReleaseBundle

MOST = 20
Arrow = tuple[str, str]

INTRODUCTION = (
    "How much of each arrow survived? This test measures how strongly the two columns of an arrow are linked in the "
    "real and in the synthetic rows."
)


@dataclass(frozen=True)
class ArrowLinks:
    """Distance from independence of an arrow's two columns, in the real and in the synthetic rows (see `link`)."""

    arrow: Arrow
    real: float
    synthetic: float


def show(strength: Mapping[Arrow, float], drawn: bool) -> None:
    """Show the strongest arrows as bars. Without a drawing, they show only the order in which columns were modelled."""
    if not strength:
        st.info("The model has no arrows.")
        return
    ranked = sorted(strength.items(), key=lambda item: -item[1])
    charts.show(
        charts.lying(
            [_name(arrow) for arrow, _ in ranked[:MOST]],
            {"": [value for _, value in ranked[:MOST]]},
            "mean total variation caused (0 to 1)",
            (charts.MODEL,),
        ),
        "arrow-strength",
        "Strength of each arrow in the released model, the strongest first",
    )
    if not drawn:
        st.info(
            "Nothing is drawn: each column was modelled from the columns before it in the schema. The arrows show an "
            "order, not causes."
        )
    shown = f" The {MOST} strongest of {len(ranked)} arrows are shown." if len(ranked) > MOST else ""
    st.markdown(
        "**How to read it.** A bar shows how much the effect's distribution changes, in total variation, from "
        "one category of the cause to another, with other causes held fixed. At 0 the arrow has no effect in the "
        f"synthetic table, either because it has none in the real table or because noise hides it.{shown}"
    )


def work(released: ReleaseBundle, real: Table, arrows: Iterable[Arrow], report: Any) -> list[ArrowLinks]:
    """Compute both links of every arrow, sorted by the real link, in a background job."""
    every, tables = list(arrows), (real, released.release.synthetic)
    out = []
    for i, arrow in enumerate(every):
        report(i / len(every), f"Arrow {i + 1} of {len(every)}")
        out.append(ArrowLinks(arrow, *(link(table, *arrow) for table in tables)))
    return sorted(out, key=lambda found: -found.real)


def survived(found: list[ArrowLinks]) -> None:
    """Show real and synthetic links side by side."""
    shown = found[:MOST]
    charts.show(
        charts.lying(
            [_name(one.arrow) for one in shown],
            {"real rows": [one.real for one in shown], "synthetic rows": [one.synthetic for one in shown]},
            "share of rows that would have to change to unlink the two columns",
            (charts.REAL, charts.SYNTHETIC),
        ),
        "arrows-survived",
        "Strength of each arrow's link in real and in synthetic rows, the strongest real link first",
    )
    kept, real = sum(one.synthetic for one in found), sum(one.real for one in found)
    share = f"Overall, synthetic links are **{100 * kept / real:.0f} %** as strong as the real ones. " if real else ""
    st.markdown(
        f"{share}If the synthetic bar is much shorter than the real one, noise hides the arrow; if it is longer, "
        "the excess may be only "
        f"noise.{f' The {MOST} strongest of {len(found)} are shown.' if len(found) > MOST else ''}"
    )


def _name(arrow: Arrow) -> str:
    return " → ".join(arrow)
