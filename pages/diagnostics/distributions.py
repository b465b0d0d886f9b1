"""Fidelity: the columns and pairs that differ most, and the distribution of a chosen column or pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from espalier.core.analysis.answer_text import value_names
from espalier.core.graph.separations import Clique
from espalier.core.tables.source import Source
from espalier.pages.common import charts
from espalier.pages.common.text import plain
from espalier.pages.session.bundles import ReleaseBundle

Facts = Mapping[str, Any]
LARGEST, PAIRS = 10_000, 2_000
"""Maximum number of cells, and of pairs, counted to draw a table that is read in place."""
MOST = 15
UPRIGHT = 12
"""Maximum number of values shown as vertical bars."""
WIDEST = 40
"""Maximum number of columns in a map of pairs. The map shows the columns with the worst pairs."""


def columns(facts: Facts, released: ReleaseBundle) -> None:
    """Show the columns that differ most, and one column in full."""
    worst = sorted(facts["columns"], key=lambda c: -c["tv"])[:MOST]
    names = [c["column"] for c in worst]
    st.subheader(
        f"Columns differ by {100 * facts['one_way_tv']:.1f} % on average",
        anchor=False,
        help="Total variation: the share of rows that would have to change to make the two columns equal.",
    )
    figure = charts.lying(
        names, {"": [c["tv"] for c in worst]}, "share of rows in the wrong place", (charts.SYNTHETIC,)
    )
    _clickable(figure, "one-way", "Total variation of single columns, the worst first", names, "look-column")
    if len(worst) < len(facts["columns"]):
        st.caption(_of(worst, facts["columns"], "columns"))
    every = [c["column"] for c in facts["columns"] if released.real is not None or (c["column"],) in released.counted]
    if not every:
        return
    first = next((n for n in names if n in every), every[0])
    chosen = st.selectbox("Show one column (or click a bar)", every, index=every.index(first), key="look-column")
    if chosen in every:
        _one(released, chosen)


def counts(real: Source) -> dict[Clique, NDArray[np.int64]]:
    """Return the counts for pictures of columns and pairs of a table that is read in place, in one pass."""
    sizes = real.schema.sizes
    singles = [(name,) for name in real.schema.names if sizes[name] <= LARGEST]
    pairs = [q for q in combinations(real.schema.names, 2) if sizes[q[0]] * sizes[q[1]] <= LARGEST][:PAIRS]
    return dict(zip([*singles, *pairs], real.count_many([*singles, *pairs]), strict=True))


def _shares(released: ReleaseBundle, clique: Clique) -> NDArray[np.float64]:
    """Return the real shares of columns, from the comparison or counted now."""
    if released.real is not None:
        return np.asarray(released.real.count(clique) / released.real.rows)
    found = released.counted[clique]
    return np.asarray(found / max(int(found.sum()), 1))


def _one(released: ReleaseBundle, column: str) -> None:
    labels = value_names(released.release.project.schema[column])
    real = _shares(released, (column,))
    series = {
        "real": real.tolist(),
        "synthetic": (released.release.synthetic.count((column,)) / released.release.shown).tolist(),
    }
    colors = (charts.REAL, charts.SYNTHETIC)
    draw = charts.bars if len(labels) <= UPRIGHT else charts.lying
    figure = draw(labels, series, "share of rows", colors)
    charts.show(figure, f"look-{column}", f"Real and synthetic shares of {column}")


def pairs(facts: Facts, released: ReleaseBundle) -> None:
    """Show a map of all pairs, the worst pairs, and one pair in full."""
    if facts["two_way_tv"] is None:
        st.info(plain(facts.get("two_way_tv_reason", "")))
        return
    st.subheader(f"Pairs differ by {100 * facts['two_way_tv']:.1f} % on average", anchor=False)
    errors = {tuple(p["columns"]): p["tv"] for p in facts["pairs"]}
    names = _worst_first([c["column"] for c in facts["columns"]], errors)
    shown = set(names[:WIDEST])
    figure, cells = charts.pair_map(names[:WIDEST], {p: v for p, v in errors.items() if shown.issuperset(p)})
    _clickable(figure, "pair-map", "Error of every pair of columns, the worst columns first", cells, "look-pair")
    if len(names) > WIDEST:
        st.caption(f"The map shows {WIDEST} of {len(names)} columns: those with the worst pairs.")
    worst = sorted(facts["pairs"], key=lambda p: -p["tv"])[:MOST]
    charts.show(
        charts.lying(
            [" × ".join(p["columns"]) for p in worst],
            {"synthetic": [p["tv"] for p in worst], "without any link": [p["tv_independent"] for p in worst]},
            "share of rows in the wrong place",
            (charts.SYNTHETIC, charts.REAL),
        ),
        "two-way",
        "Total variation of pairs of columns, the worst first",
    )
    st.caption(
        f"{_of(worst, facts['pairs'], 'pairs')} If the green bar is as long as the grey one, the link was lost. "
        "Links that the frame forbids are lost by design."
        + " Every pair is about as close to the real rows as two independent columns would be, or closer."
        * (not facts["worse_than_independence"])
    )
    every = [tuple(p["columns"]) for p in sorted(facts["pairs"], key=lambda p: -p["tv"])]
    if released.real is None:
        every = [pair for pair in every if pair in released.counted]
    if every:
        chosen = st.selectbox("Show one pair", every, key="look-pair", format_func=" × ".join)
        if chosen in every:
            _two(released, chosen)
    _lost(facts["worse_than_independence"])


def _worst_first(names: Sequence[str], errors: Mapping[tuple[str, ...], float]) -> list[str]:
    """Return the columns, sorted by their worst pair."""
    worst = dict.fromkeys(names, 0.0)
    for pair, error in errors.items():
        for name in pair:
            worst[name] = max(worst.get(name, 0.0), error)
    return sorted(names, key=lambda name: -worst[name])


def _two(released: ReleaseBundle, pair: tuple[str, str]) -> None:
    schema = released.release.project.schema
    shape = tuple(schema[c].size for c in pair)
    real = _shares(released, pair)
    shares = {
        "Real": real.reshape(shape),
        "Synthetic": released.release.synthetic.count(pair).reshape(shape) / released.release.shown,
    }
    top = max(float(s.max()) for s in shares.values())
    for place, (title, share) in zip(st.columns(2), shares.items(), strict=True):
        with place:
            st.markdown(f"**{title}**")
            figure = charts.heat(share.tolist(), [value_names(schema[c]) for c in pair], pair, top)
            charts.show(figure, f"look-{title}-{pair}", f"{title} shares of {pair[0]} and {pair[1]}")


def _lost(worse: Sequence[Facts]) -> None:
    """Warn about pairs that are less accurate than two independent columns would be."""
    if not worse:
        return
    st.markdown(
        f"**Do not study {'these pairs' if len(worse) > 1 else 'this pair'} in the synthetic table.** "
        "Two independent columns would be closer to the real rows."
    )
    st.dataframe(
        [
            {"pair": " × ".join(p["columns"]), "synthetic": p["tv"], "without any link": p["tv_independent"]}
            for p in worse[:100]
        ],
        hide_index=True,
        column_config={k: st.column_config.NumberColumn(format="%.3f") for k in ("synthetic", "without any link")},
    )


def _clickable(figure: Any, key: str, alt: str, points: Sequence[Any], field: str) -> None:
    """Draw ``figure``; a click on its point i chooses ``points[i]`` in the selection field ``field``."""

    def take() -> None:
        found = st.session_state[key]["selection"]["points"]
        if found:
            st.session_state[field] = points[found[0]["point_index"]]

    charts.show(figure, key, alt, on_select=take)


def _of(shown: Sequence[Any], every: Sequence[Any], what: str) -> str:
    return f"The {len(shown)} worst of {len(every)} {what} are shown." if len(shown) < len(every) else ""
