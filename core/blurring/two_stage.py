"""The two-stage method of Liu et al. (LHS-H-KRR). It is NOT private, because each row that it makes is a blurred real
person. It matches Latin hypercube inputs to the real inputs, mixes both, and computes kernel-ridge responses. It has no
ε and no ledger entry, and every entry point that promises privacy refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from espalier.core.blurring.base import Blurring, Rows
from espalier.core.errors import ProjectError, SizeError
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import option, read_options
from espalier.core.project.plan import Plan

MOST_ROWS = 50_000
"""Maximum number of rows, because the cost of matching grows with the square of the block size."""

LANDMARKS = 1_000
"""Number of landmark rows in the regression if an exact one costs too much and the plan gives no number."""

PROMISING = ("delta", "person", "private_evaluation", "rows", "strict", "test_drawing", "statements")
"""Plan keys that make a promise that this method cannot keep, or that have no meaning for it."""


@dataclass(frozen=True)
class TwoStageOptions:
    """Plan keys of the method."""

    eta: float = option(
        0.0001,
        "η: distance below which a value counts as disclosed",
        low=1e-6,
        high=0.5,
        help="A fraction of the declared range. A released value this close to the real one counts as disclosed.",
    )
    lid: float = option(
        0.15,
        "Interval disclosure allowed (LID)",
        low=0.0,
        high=1.0,
        help="Share of people for whom a value may be closer than η to the real one. LID does not measure whether a "
        "row can be traced to its person.",
    )
    alpha: float | None = option(
        None,
        "α: weight of the real row (blank: from the allowed LID)",
        low=0.0,
        high=0.999,
        empty="the largest α within the allowed LID",
        help="At 1, the result would be the real row. A value set here overrides the allowed LID, and the report "
        "states the resulting LID.",
    )
    inputs: Literal["hypercube", "uniform", "weibull", "cauchy"] = option(
        "hypercube",
        "Stage one: source of the inputs",
        choices={
            "hypercube": "Latin hypercube with the columns' distributions and correlation",
            "uniform": "uniform and independent",
            "weibull": "Weibull and independent",
            "cauchy": "Cauchy and independent",
        },
        help="The paper proposes the hypercube and compares it with the others.",
    )
    outcome: Literal["auto", "ridge", "nearest", "adaboost", "forest"] = option(
        "auto",
        "Stage two: regression",
        choices={
            "auto": "the best in five-fold cross-validation",
            "ridge": "kernel ridge regression, as published",
            "nearest": "kernel average of nearby rows",
            "adaboost": "AdaBoost with trees",
            "forest": "random forest",
        },
        help="Ridge regression fails on strongly skewed tables. The report states the choice and the errors.",
    )
    hybrid: bool = option(True, "Mix with the real rows", help="If off, stage-one rows contain no part of a real row.")
    anonymize: Sequence[str] | None = option(
        None,
        "Columns to anonymise (blank: all numeric inputs)",
        columns="several",
        empty="all numeric inputs",
        help="All other inputs keep their values from the real row.",
    )
    residual_noise: bool = option(
        False,
        "Add residuals to the outcome",
        help="The paper omits this step. Without it, the outcome varies too little and standard errors are too small.",
    )
    landmarks: int | None = option(
        None,
        "Landmarks of the regression (blank: exact up to 5,000 rows, then 1,000)",
        low=10,
        high=5_000,
        whole=True,
        empty="exact up to 5,000 rows, then 1,000",
        help="Number of landmark rows of the regression. The cost of an exact regression grows with the cube of "
        "the number of rows.",
    )


def blur(project: Project, real: Rows, report: Report = silent) -> tuple[Rows, Mapping[str, Any]]:
    """Return one blurred row for each real one, shuffled, and their disclosure."""
    from threadpoolctl import threadpool_limits

    from espalier.core.blurring.kernel import EXACT_ROWS
    from espalier.core.blurring.stages import Numbers, Options, synthesize

    plan, schema = project.plan, project.schema
    options = read_options(TwoStageOptions, plan.options)
    target, inputs = plan.target or "", [c for c in schema.columns if c.name != plan.target]
    moved = _anonymized(project)
    kept = [c for c in inputs if c.name not in moved]
    rows = len(real.numbers[target])
    if rows > MOST_ROWS:
        raise SizeError(
            f"this method compares all pairs of rows; it accepts at most {MOST_ROWS:,} rows", limit=MOST_ROWS
        )
    marks = [
        _scaled(c.edges, real.numbers[c.name])[:, None] if c.kind == "numeric" else np.eye(c.size)[real.codes[c.name]]
        for c in kept
    ]
    given = Numbers(
        np.column_stack([real.numbers[name] for name in moved]),
        np.array([[schema[name].edges[0], schema[name].edges[-1]] for name in moved]),
        np.array([schema[name].step for name in moved]),
        np.hstack(marks) if marks else np.zeros((rows, 0)),
        real.numbers[target],
        (schema[target].edges[0], schema[target].edges[-1]),
        schema[target].step,
    )
    report(0.1, "Matching and fitting the real rows")
    landmarks = options.landmarks or (LANDMARKS if rows > EXACT_ROWS else None)
    wanted = Options(
        options.eta,
        options.lid,
        options.alpha,
        options.hybrid,
        options.residual_noise,
        landmarks,
        options.inputs,
        options.outcome,
    )
    with threadpool_limits(1):  # with several threads on two processors, this took six to nine times as long
        made = synthesize(given, wanted, np.random.default_rng())
    numbers = {name: made.anonymized[:, i] for i, name in enumerate(moved)} | {target: made.outcome}
    numbers |= {c.name: real.numbers[c.name][made.whose] for c in kept if c.kind == "numeric"}
    codes = {c.name: real.codes[c.name][made.whose] for c in kept}
    for name in (*moved, target):
        codes[name] = np.searchsorted(np.asarray(schema[name].edges[1:-1]), numbers[name], side="right")
    spread = float(made.outcome.std() / max(float(given.outcome.std()), 1e-300))
    return Rows(codes, numbers), {
        **asdict(made.disclosure),
        "alpha": made.alpha,
        "eta": options.eta,
        "lid_asked": options.lid,
        **({"alpha_given": True} if options.alpha is not None else {}),
        "inputs": options.inputs,
        "regression": made.regression.name,
        **({"regression_errors": dict(made.regression.errors)} if made.regression.errors else {}),
        "anonymized": list(moved),
        "untouched": [c.name for c in kept],
        "spread": spread,
    }


def _scaled(edges: Sequence[float], values: Any) -> Any:
    return (values - edges[0]) / (edges[-1] - edges[0])


def _anonymized(project: Project) -> tuple[str, ...]:
    """Return the columns to anonymise, in schema order. Raise :class:`ProjectError` for a column that cannot be
    anonymised.
    """
    schema, target = project.schema, project.plan.target
    numeric = [c.name for c in schema.columns if c.kind == "numeric" and c.name != target]
    wanted = read_options(TwoStageOptions, project.plan.options).anonymize
    if odd := [name for name in wanted or () if name not in numeric]:
        raise ProjectError(f"anonymize names {odd[0]!r}, which is not a numeric input of this table", key="anonymize")
    moved = tuple(name for name in numeric if wanted is None or name in wanted)
    if not moved:
        raise ProjectError("choose at least one numeric column to anonymise", key="anonymize")
    return moved


def check(project: Project) -> None:
    """Raise :class:`ProjectError` for a table that the method cannot blur, or for a plan with a promise that the method
    cannot keep.
    """
    plan = project.plan
    if plan.target is None or plan.target not in project.schema or project.schema[plan.target].kind != "numeric":
        why = "this method predicts a number from the other columns: choose a numeric column as the target"
        if plan.target:
            raise ProjectError(why, key="target")
        raise ProjectError(why, key="target", missing="target")
    usual = Plan(plan.method)
    if promised := [key for key in PROMISING if getattr(plan, key) != getattr(usual, key)]:
        raise ProjectError(
            f"this method is not private and cannot honour {', '.join(promised)}: remove it from the plan",
            key=promised[0],
        )
    options = read_options(TwoStageOptions, plan.options)
    if options.alpha is not None and "lid" in plan.options:
        raise ProjectError("alpha and lid both fix the mixture: give only one of them", key="alpha")
    if options.alpha is not None and not options.hybrid:
        raise ProjectError("without hybrid, no part of the real row is mixed in: remove alpha", key="alpha")
    if plan.fair:
        raise ProjectError(
            f"the method {plan.method} has no fence: set fair to false, or choose a private method",
            key="fair",
        )
    if project.separations and plan.fair is None:
        raise ProjectError("this method blurs real rows and cannot keep separations", key="fair")
    if project.constraints:
        raise ProjectError(
            "this method blurs real rows and cannot keep constraints. Remove them on the Data page",
            key="constraints",
        )
    if holes := [c.name for c in project.schema.columns if c.kind == "numeric" and c.missing]:
        raise ProjectError(
            f"this method cannot use empty cells of the numeric column {holes[0]!r}: fill them or leave the column out",
            key="method",
            column=holes[0],
        )
    _anonymized(project)


TWO_STAGE = Blurring(
    name="two-stage",
    title="Two-stage (NOT private)",
    summary="each row is a blurred copy of a real row",
    when="Use it only among people who may see the real rows. Its results have no ε and no ledger entry.",
    options=TwoStageOptions,
    check=check,
    blur=blur,
)
