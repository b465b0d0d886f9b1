"""CMI of every separation of the plan: the fence, a regime, and the project's own list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from espalier.pages.common.text import name
from espalier.pages.glossary.terms import term


def show(found: Sequence[Mapping[str, Any]]) -> None:
    """Show a table with one line for each separation, or nothing if there is no separation."""
    if not found:
        return
    st.subheader("Every separation of the plan", anchor=False)
    st.markdown(
        f"{term('CMI')} in nats: how much the first columns reveal about the second ones once the third ones are "
        "known. 0 means nothing. If there is no link, a table's figure stays below the figure for chance in "
        "95 of 100 cases. The model's figure is exact."
    )
    st.dataframe(
        [
            {
                "separation": f"{_listed(one['left'])} ⊥ {_listed(one['right'])} | "
                + (_listed(one["given"]) or "nothing"),
                "CMI, real": one["cmi_real"],
                "chance, real": one["floor_real"],
                "CMI, synthetic": one["cmi_synthetic"],
                "chance, synthetic": one["floor_synthetic"],
                "CMI, model": one["cmi_model"],
                "why": one["why"],
            }
            for one in found
        ],
        hide_index=True,
        column_config={
            k: st.column_config.NumberColumn(format="%.5f")
            for k in ("CMI, real", "chance, real", "CMI, synthetic", "chance, synthetic", "CMI, model")
        },
    )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(name, columns))
