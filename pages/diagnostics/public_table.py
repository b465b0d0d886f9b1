"""The value of the released rows when added to a public table with the same columns."""

from __future__ import annotations

from typing import Any

import streamlit as st

from espalier.core.evaluation.marketing import gain_of
from espalier.core.tables.frames import as_table
from espalier.core.tables.reading import read_table
from espalier.pages.common.text import name
from espalier.pages.session.bundles import ReleaseBundle

INTRODUCTION = (
    "Someone with a public table of the same columns adds the synthetic rows to it. How much better can they then "
    "predict the target? Five-fold cross-validation on the public rows answers this."
)


def file_field(number: int) -> Any:
    """Show the uploader, and return the uploaded file."""
    return st.file_uploader("A public table with the same columns", type=["csv"], key=f"public-file-{number}")


def work(released: ReleaseBundle, given: Any) -> dict[str, Any]:
    """Compute the figures as a background job."""
    project = released.release.project
    public = as_table(read_table(given.getvalue(), given.name), project.schema)
    return gain_of(project.schema, project.plan.target, released.release.synthetic, public)


def show(found: dict[str, Any], target: str | None) -> None:
    """Show the change in mean squared error (ΔMSE)."""
    st.markdown(
        f"Added to a public table of {found['rows']:,} rows, the synthetic rows lower the mean squared error of "
        f"a forest that predicts {name(target or '')} by **{100 * found['delta_mse']:.0f} %** (ΔMSE)."
    )
    st.caption("If ΔMSE is below 0, the public table alone is better.")
