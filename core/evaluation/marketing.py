"""Measures of the two-stage paper: the gain from adding released rows to a public table (ΔMSE), and the price metrics
of its Table 4.

The measures depend on real rows or a public table, so they are for the curator only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError, TableError
from espalier.core.evaluation.numeric_fidelity import design, forest, thinned
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

FEWEST = 10
"""Minimum number of rows with a price and sales for an elasticity."""

FEWEST_PUBLIC = 20
"""Minimum number of rows of a public table."""


def delta_mse(public: float, combined: float) -> float:
    """Return (MSE_D′ − MSE_{D*+D′}) / MSE_D′ (Table 3), the share of a public table's error that the released rows
    remove.

    ``public`` is the mean squared error of a model trained on D′ alone, ``combined`` on D′ and D* together.
    """
    if not public > 0:
        raise ValueError(f"an error of {public:g} cannot be reduced")
    return (public - combined) / public


def elasticity(log_price: NDArray[np.float64], log_sales: NDArray[np.float64]) -> float:
    """Return β̂ of y = β·x by least squares without a constant (§7.1)."""
    return float(log_price @ log_sales / (log_price @ log_price))


def mapd(estimated: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    """Return the mean absolute percentage deviation of price elasticities, as a share."""
    return float(np.mean(np.abs((estimated - true) / true)))


def optimal_markup(beta: float) -> float:
    """Return the profit-maximising mark-up 1/(|β| − 1) as a share; infinite if demand is inelastic (|β| ≤ 1)."""
    return 1 / (abs(beta) - 1) if abs(beta) > 1 else float("inf")


def profit_ratio(estimated: float, true: float) -> float:
    """Return the optimal profit ratio: profit at the price that β̂ implies, divided by profit at the best price. Both β
    must be below −1.

    (β+1)/(β̂+1) · ((β+1)/(β̂+1) · β̂/β)^β.
    """
    if estimated >= -1 or true >= -1:
        return 0.0
    step = (true + 1) / (estimated + 1)
    return float(step * (step * estimated / true) ** true)


def gain_of(schema: Schema, target: str | None, made: Table, public: Table) -> dict[str, Any]:
    """Return the gain from adding ``made`` to a ``public`` table D′ of the same columns: ΔMSE of a forest, five folds.

    The forest is tested only on public rows, so real rows enter only through the blurred rows. Raises the errors of
    `check_target`, and :class:`TableError` for too few public rows.
    """
    check_target(schema, target)
    assert target is not None
    x, y = design(schema, public.codes, _numbers(public), target)
    if len(y) < FEWEST_PUBLIC:
        raise TableError(f"the public table needs at least {FEWEST_PUBLIC} rows with a value of {target!r}")
    more, drawn = thinned(schema, made, target)
    fold = np.arange(len(y)) % 5
    errors: tuple[list[float], list[float]] = ([], [])
    for k in range(5):
        own, other = fold != k, fold == k
        alone = forest(0).fit(x[own], y[own]).predict(x[other])
        both = forest(0).fit(np.vstack([x[own], more]), np.concatenate([y[own], drawn])).predict(x[other])
        errors[0].append(float(np.mean((alone - y[other]) ** 2)))
        errors[1].append(float(np.mean((both - y[other]) ** 2)))
    before, after = float(np.mean(errors[0])), float(np.mean(errors[1]))
    if not before > 0:
        raise TableError(f"the public table already predicts {target!r} without error, so there is nothing to improve")
    return {"rows": public.rows, "mse_public": before, "mse_combined": after, "delta_mse": delta_mse(before, after)}


def check_target(schema: Schema, target: str | None) -> None:
    """Raise :class:`ProjectError` unless ``target`` is numeric, as `gain_of` requires."""
    if target is None or target not in schema or schema[target].kind != "numeric":
        raise ProjectError(
            "ΔMSE measures the prediction of a number: choose a numeric column as the target", key="target"
        )


def prices_of(real: Table, synthetic: Table, price: str, sales: str, per: str | None = None) -> dict[str, Any]:
    """Compare price elasticities of synthetic and real rows, and compute the cost of prices set from the synthetic ones
    (Table 4).

    ``price`` and ``sales`` are numeric columns of both tables; ``per`` is a column of categories (brands), each with
    its own elasticity. An elasticity is the slope of ln sales on ln price with a constant, over rows where both are
    above 0. The paper's regression has no constant, because its logarithms are centred. A group with fewer than
    ``FEWEST`` such rows, or with a single price, is left out. ``mapd`` is None if no group is left. Raises the errors
    of `check_prices`.
    """
    schema = real.schema
    check_prices(schema, price, sales, per)
    groups, left_out = [], []
    for k, label in enumerate(["all rows"] if per is None else schema[per].labels):
        true, told = (_slope(t, price, sales, None if per is None else (per, k)) for t in (real, synthetic))
        if not true or told is None:
            left_out.append(label)
            continue
        groups.append(
            {
                "group": label,
                "elasticity_real": true,
                "elasticity_synthetic": told,
                "markup_real": _finite(optimal_markup(true)),
                "markup_synthetic": _finite(optimal_markup(told)),
                "profit_ratio": profit_ratio(told, true) if true < -1 else None,
            }
        )
    one, other = (np.array([g[f"elasticity_{which}"] for g in groups]) for which in ("synthetic", "real"))
    return {
        "price": price,
        "sales": sales,
        "per": per,
        "groups": groups,
        "left_out": left_out,
        "mapd": mapd(one, other) if groups else None,
    }


def check_prices(schema: Schema, price: str, sales: str, per: str | None = None) -> None:
    """Raise :class:`ProjectError` unless `prices_of` accepts these columns."""
    for what, name in (("price", price), ("sales", sales)):
        if name not in schema or not holds_amounts(schema[name]):
            raise ProjectError(f"{what} must be a numeric column of the table, not {name!r}", key=what)
    if price == sales:
        raise ProjectError(f"price and sales are both {price!r}; choose two different columns", key="sales")
    if per is not None and (per not in schema or schema[per].kind == "numeric"):
        raise ProjectError(f"per must be a column of categories, each with its own elasticity, not {per!r}", key="per")


def holds_amounts(column: Column) -> bool:
    """Return whether a column can contain prices or sales: numbers, not dates."""
    return column.kind == "numeric" and column.dates is None


def _slope(table: Table, price: str, sales: str, group: tuple[str, int] | None) -> float | None:
    """Return the slope of ln sales on ln price, None if the rows do not determine it."""
    numbers = _numbers(table)
    kept = (numbers[price] > 0) & (numbers[sales] > 0)
    if group is not None:
        kept &= np.asarray(table.codes[group[0]]) == group[1]
    x, y = (np.log(numbers[name][kept]) for name in (price, sales))
    if len(x) < FEWEST or np.ptp(x) < 1e-9:
        return None
    return elasticity(x - x.mean(), y - y.mean())


def _numbers(table: Table) -> Mapping[str, NDArray[np.float64]]:
    return {c.name: table.numbers(c.name) for c in table.schema.columns if c.kind == "numeric"}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
