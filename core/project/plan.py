"""Plan of a release: method, unit of privacy and budget. A plan does not read data."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Separation
from espalier.core.project.options import Option, check_number, check_weights, short, unquoted
from espalier.core.project.regressions import BoughtRegression, read_regressions

Neighbors = Literal["replace-one", "add-remove"]
AllocationRule = Literal["auto", "optimal", "uniform"]
AccountingRule = Literal["zcdp", "basic", "pure"]
RowsDrawn = Literal["even", "independent"]
MOST_COUNT = 1e13
"""Largest noisy count, largest number of rows of a model, and largest σ accepted from a release's files."""
MAX_ROWS = 1_000_000_000
IN_MEMORY, CELLS_IN_MEMORY = 1_000_000, 20_000_000
"""Number of rows or cells above which synthetic rows stay on disk as codes and are written in batches."""
SHOWN = 100_000
"""Number of rows of a large release that are kept in memory and written to ``synthetic.csv``. Rows are in random
order.
"""
MOST_STATEMENTS = 10
MOST_ASKED = 0.9
"""Largest share of the budget for questions and counts, or for a second stage."""
AUTO = "auto"
"""Value of ``embedding_share`` for which a probe decides, at release, whether the second stage is used."""
_OLD_KEYS = {"looking": "private_evaluation"}
"""Keys of earlier project files that can still be read."""
ALWAYS = {"regime": "predictive", "features": None}
"""Options that every project file contains, and their defaults."""
_WORDS: dict[str, Any] = {
    "neighbors": Neighbors,
    "allocation": AllocationRule,
    "accounting": AccountingRule,
    "rows_drawn": RowsDrawn,
}
SCHEMA_SHARE = 0.05
"""Default share of the budget that buys a schema."""
LEAST_RARER = 0.0001
"""Smallest share of rows with the target's rarest value that a plan may declare."""
_WHOLE = {"rows_per_person": 10_000, "rows": MAX_ROWS, "max_cells": 10**9}
_LEFT_OUT = (
    "analysis_share",
    "copies",
    "embedding_share",
    "max_cells",
    "person",
    "private_evaluation",
    "question_share",
    "rarer",
    "regression_share",
    "regressions",
    "rows_drawn",
    "schema_share",
    "statements",
    "strict",
    "test_drawing",
)


def rows_in_memory(columns: int) -> int:
    """Return the largest number of synthetic rows with ``columns`` columns that are made in memory."""
    return max(1, min(IN_MEMORY, CELLS_IN_MEMORY // max(columns, 1)))


def rows_shown(columns: int) -> int:
    """Return the number of rows of ``synthetic.csv`` in a release that keeps its rows on disk."""
    return min(SHOWN, rows_in_memory(columns))


@dataclass(frozen=True)
class Plan:
    """Plan of a release: method, unit of privacy and budget. A plan does not read data.

    ``epsilon`` and ``delta`` (`None`: 1/n², replace-one only) are the whole budget. If ``accounting`` is "pure", δ is
    0. ε is infinite if the plan gives none; every private method refuses such a plan
    (`espalier.core.methods.registry.check_options`). ``neighbors`` and ``rows_per_person`` are the unit of privacy.
    ``person`` is the person column, which is in the table but not in the schema: at most ``rows_per_person`` rows of
    each person are kept. Without it, that number is a promise. ``fair`` `None` means the method's default; ``strict``
    also keeps inadmissible columns away from the outcome. ``target`` is the column to predict; ``targets`` are further
    columns with their weights; the target's own weight is 1 unless it is given. ``rarer`` is the declared share of rows
    with the target's rarest value, which only the verdict reads. ``allocation`` may also map marginals ("age × income")
    to shares of their pools; the others follow ``auto``. ``rows`` `None` means n, or the noisy total under add-remove.
    With a person column under replace-one, ``rows`` is required; it is the declared total to which the private table is
    filled up or cut. ``max_cells`` is the maximum size of the model's tables, in cells.

    ``schema_share`` is the share of the budget that buys the bins and categories that are not declared.
    ``private_evaluation`` is the share of the people (rows) held out for private evaluation, 0 for none.
    ``question_share`` is the share of the budget that measures the project's questions and counts next to the method's
    marginals. ``embedding_share`` is the share of a second stage for structure that pairs of columns do not show: 0 for
    none, or "auto" if a probe decides. ``rows_drawn`` states how the table is drawn from the model: ``even`` spreads
    the rows over the cells as evenly as whole numbers allow, so the table has smaller errors and varies less than
    independent draws. ``copies`` is the number of copies of the release for intervals. ``test_drawing`` is the share of
    the budget for a test of the drawing's implied independences; ``statements`` is the number of independences tested,
    or their list. ``regressions`` are bought with ``regression_share`` of the budget, in equal parts.
    ``analysis_share`` of the budget buys the counts of the project's planned analyses.

    ``options`` are the keys that methods declare for themselves (`espalier.core.project.options`); the method registry
    checks them. The file is flat: these keys are on the same level as the others.

    Raises :class:`ProjectError` for impossible values.

    >>> import espalier as es
    >>> plan = es.Plan("mst", epsilon=1, delta=1e-6)
    >>> plan.neighbors, plan.rows_per_person
    ('replace-one', 1)
    """

    method: str
    epsilon: float = math.inf
    delta: float | None = None
    fair: bool | None = None
    strict: bool = False
    target: str | None = None
    targets: Mapping[str, float] = field(default_factory=dict)
    rarer: float | None = None
    neighbors: Neighbors = "replace-one"
    rows_per_person: int = 1
    allocation: AllocationRule | Mapping[str, float] = "auto"
    accounting: AccountingRule = "zcdp"
    rows: int | None = None
    max_cells: int = 10_000_000
    person: str | None = None
    private_evaluation: float = 0.0
    schema_share: float = 0.0
    question_share: float = 0.0
    embedding_share: float | str = 0.0
    rows_drawn: RowsDrawn = "even"
    copies: int = 0
    test_drawing: float = 0.0
    statements: int | tuple[Separation, ...] = 5
    regressions: tuple[BoughtRegression, ...] = ()
    regression_share: float = 0.0
    analysis_share: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.method, str):
            raise ProjectError(f"plan: method is {short(self.method)}; it must be a method's name", key="method")
        for name, allowed in _WORDS.items():
            if name == "allocation" and isinstance(self.allocation, Mapping):
                _check_shares(self.allocation)
            elif getattr(self, name) not in get_args(allowed):
                known = ", ".join(get_args(allowed))
                raise ProjectError(f"plan: {name} is {getattr(self, name)!r}; it must be one of {known}", key=name)
        if self.has_epsilon:
            _check_finite("epsilon", self.epsilon)
            if not 1e-6 <= self.epsilon <= 100:
                raise ProjectError(
                    f"plan: epsilon is {self.epsilon:g}; it must be at least 1e-6 and at most 100", key="epsilon"
                )
        if self.pure:
            if self.delta:
                raise ProjectError("a plan with pure accounting has δ = 0: leave delta out", key="delta")
            object.__setattr__(self, "delta", 0.0)
        elif self.delta is not None:
            _check_finite("delta", self.delta)
            if not 1e-300 <= self.delta < 1:
                raise ProjectError(f"plan: delta is {self.delta:g}; it must be above 0 and below 1", key="delta")
        if not isinstance(self.fair, bool | None) or not isinstance(self.strict, bool):
            raise ProjectError("plan: fair and strict must be true or false", key="fair")
        for name, top in _WHOLE.items():
            if name != "rows" or self.rows is not None:
                check_number(name, getattr(self, name), Option("", low=1, high=top, whole=True))
        if self.target is not None and not isinstance(self.target, str):
            raise ProjectError("plan: target must be a column name", key="target")
        check_weights("targets", self.targets, 1000)
        if self.rarer is not None:
            check_number("rarer", self.rarer, Option("", low=LEAST_RARER, high=0.5))
        check_number("test_drawing", self.test_drawing, Option("", low=0, high=0.5))
        if isinstance(self.statements, tuple):
            if not 1 <= len(self.statements) <= MOST_STATEMENTS:
                raise ProjectError(f"plan: statements must list 1 to {MOST_STATEMENTS} statements", key="statements")
        else:
            check_number("statements", self.statements, Option("", low=1, high=MOST_STATEMENTS, whole=True))
        check_number("copies", self.copies, Option("", low=0, high=100, whole=True))
        if self.person is not None and (not isinstance(self.person, str) or not self.person):
            raise ProjectError("plan: person must be the name of a column", key="person")
        check_number("schema_share", self.schema_share, Option("", low=0, high=0.5))
        check_number("private_evaluation", self.private_evaluation, Option("", low=0, high=0.5))
        check_number("question_share", self.question_share, Option("", low=0, high=MOST_ASKED))
        check_number("analysis_share", self.analysis_share, Option("", low=0, high=MOST_ASKED))
        if isinstance(self.embedding_share, str) and self.embedding_share != AUTO:
            raise ProjectError(
                f'plan: embedding_share is {short(self.embedding_share)}; it must be "auto" or a share from 0 to '
                f"{MOST_ASKED:g}",
                key="embedding_share",
            )
        if self.embedding_share != AUTO:
            check_number("embedding_share", self.embedding_share, Option("", low=0, high=MOST_ASKED))
        check_number("regression_share", self.regression_share, Option("", low=0, high=MOST_ASKED))
        object.__setattr__(self, "regressions", read_regressions(self.regressions))

    @property
    def has_epsilon(self) -> bool:
        """True if the plan gives an ε. A plan without one promises nothing."""
        return self.epsilon != math.inf

    @property
    def pure(self) -> bool:
        """True if the plan promises pure ε-differential privacy, with δ = 0."""
        return self.accounting == "pure"

    @property
    def weights(self) -> dict[str, float]:
        """Every target with its weight, the main target first; empty without a target."""
        if self.target is None:
            return {}
        return {self.target: self.targets.get(self.target, 1.0), **self.targets}

    def changed(self, **changes: Any) -> Plan:
        """Return this plan with different values for its own keys or its method's options."""
        own = {f.name for f in fields(self)}
        options = {**self.options, **{k: v for k, v in changes.items() if k not in own}}
        return replace(self, **{"options": options, **{k: v for k, v in changes.items() if k in own}})

    def to_json(self) -> dict[str, Any]:
        """Return the plan as the project file stores it."""
        out = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "options"}
        if isinstance(self.allocation, Mapping):
            out["allocation"] = dict(self.allocation)
        out["targets"] = dict(self.targets)
        if isinstance(self.statements, tuple):
            out["statements"] = [s.to_json() for s in self.statements]
        out["regressions"] = [one.to_json() for one in self.regressions]
        if not self.targets:
            del out["targets"]
        for key in _LEFT_OUT:
            if getattr(self, key) == getattr(Plan, key):
                del out[key]
        if self.fair is None:
            del out["fair"]
        if not self.has_epsilon:
            del out["epsilon"]
        return {**out, **ALWAYS, **self.options}

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """Return a plan from the project file; raise :class:`ProjectError`."""
        if not isinstance(data, Mapping):
            raise ProjectError("plan must be an object")
        given = dict(data)
        for old, new in _OLD_KEYS.items():
            if old in given and new in given:
                raise ProjectError(f"plan: {old!r} is an old name of {new!r}; give only one of the two", key=old)
            if old in given:
                given[new] = given.pop(old)
        if "method" not in given:
            raise ProjectError("plan: method is missing", key="method")
        if given.get("epsilon") == math.inf:
            raise ProjectError("plan: epsilon must be a finite number", key="epsilon")
        if given.get("epsilon") is None:
            given.pop("epsilon", None)
        if isinstance(given.get("statements"), list):
            given["statements"] = tuple(Separation.read(s) for s in given["statements"])
        own = {f.name for f in fields(cls)} - {"options"}
        options = {k: v for k, v in given.items() if k not in own and (k not in ALWAYS or v != ALWAYS[k])}
        return cls(**{k: v for k, v in given.items() if k in own}, options=options)


def _check_shares(given: Mapping[Any, Any]) -> None:
    for name, share in given.items():
        if not isinstance(name, str) or isinstance(share, bool) or not isinstance(share, int | float):
            raise ProjectError("plan: allocation must map names of marginals to numbers", key="allocation")
        if not 0 < share < 1:
            raise ProjectError(
                f"plan: the share of {name!r} in allocation is {short(share)}; it must be above 0 and below 1",
                key="allocation",
            )


def _check_finite(name: str, value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= sys.float_info.max:
        raise ProjectError(f"plan: {name} ({short(value)}) must be a number{unquoted(value)}", key=name)
