"""Price elasticities of the synthetic and the real rows for the chosen columns."""

from __future__ import annotations

import streamlit as st

from espalier.core.evaluation.marketing import holds_amounts, prices_of
from espalier.core.project.file import Project
from espalier.core.tables.table import Table
from espalier.pages.common.text import name, names


def show(project: Project, tables: tuple[Table, Table], which: object) -> None:
    """Show fields for the columns, and the figures once a price is chosen. ``tables`` are the real and the synthetic
    table.

    ``which`` distinguishes the fields of different releases.
    """
    schema = project.schema
    amounts = [c.name for c in schema.columns if holds_amounts(c)]
    if len(amounts) < 2:
        return
    st.subheader("Prices", anchor=False)
    st.markdown(
        "If a column is a price: by how much do sales fall when it rises, and how much profit is lost if prices are "
        "set from the synthetic rows?"
    )
    one, other, third = st.columns(3)
    key, target = f"prices-{which}", project.plan.target
    price = one.selectbox("Price", amounts, index=None, placeholder="No column is a price", key=f"{key}-price")
    left = [c for c in amounts if c != price]
    first = left.index(target) if target in left else 0
    sales = other.selectbox("Sales", left, index=first, key=f"{key}-sales")
    brands = [c.name for c in schema.columns if c.kind != "numeric"]
    per = third.selectbox("Separate elasticities by", brands, index=None, placeholder="All rows", key=f"{key}-per")
    if price is None or sales is None or price == sales:
        return
    found = prices_of(*tables, price, sales, per)
    if found["mapd"] is None:
        st.info("Too few rows have a price and sales above 0, or all have the same price.")
        return
    st.markdown(f"On average, elasticities are off by **{100 * found['mapd']:.1f} %** (MAPD).")
    shares = ("markup_real", "markup_synthetic", "profit_ratio")
    shown = [{k: 100 * v if k in shares and v is not None else v for k, v in g.items()} for g in found["groups"]]
    st.dataframe(
        shown,
        hide_index=True,
        column_config={
            "group": per or "rows",
            "elasticity_real": st.column_config.NumberColumn("elasticity, real", format="%.2f"),
            "elasticity_synthetic": st.column_config.NumberColumn("elasticity, synthetic", format="%.2f"),
            "markup_real": st.column_config.NumberColumn("best mark-up, real", format="%.0f %%"),
            "markup_synthetic": st.column_config.NumberColumn("best mark-up, synthetic", format="%.0f %%"),
            "profit_ratio": st.column_config.NumberColumn("share of the best profit", format="%.1f %%"),
        },
    )
    st.caption(
        f"An elasticity of −2 means that sales of {name(sales)} fall by 2 % when {name(price)} rises by 1 %. Below −1 "
        "there is an optimal mark-up on the cost; the last column is the profit with the synthetic rows' mark-up "
        "instead. Rows with a price or sales of 0 are left out."
    )
    if found["left_out"]:
        st.caption(f"Left out, because they have too few such rows or only one price: {names(found['left_out'])}.")
