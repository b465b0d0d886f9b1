"""How much of each arrow is in the released model."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.parts import charts

MOST = 20


def show(strength: Mapping[tuple[str, str], float], drawn: bool) -> None:
    """The strongest arrows as bars; without a drawing they say in which order columns were modelled, and no more."""
    if not strength:
        st.info("The model has no arrows.")
        return
    ranked = sorted(strength.items(), key=lambda item: -item[1])
    charts.show(
        charts.lying(
            [f"{cause} → {effect}" for (cause, effect), _ in ranked[:MOST]],
            {"": [value for _, value in ranked[:MOST]]},
            "mean total variation that the cause makes (0 to 1)",
            (charts.MODEL,),
        ),
        "arrow-strength",
        "How strongly each arrow acts in the released model, the strongest first",
    )
    if not drawn:
        st.info("Nothing is drawn: each column was modelled from those before it in the schema. An order, not causes.")
    shown = f" The {MOST} strongest of {len(ranked)} arrows are shown." if len(ranked) > MOST else ""
    st.markdown(
        "**How to read it.** For each arrow: how far the effect's distribution moves, in total variation, from "
        "one category of the cause to another, all other causes left alone. 0: the arrow does nothing in the synthetic "
        f"table, because it does nothing in the real one or because the noise has swallowed it.{shown}"
    )
