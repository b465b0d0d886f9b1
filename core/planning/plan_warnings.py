"""Warnings about a plan, computed from public facts alone before anything is spent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from espalier.core.analysis.drawing import POOL
from espalier.core.methods import Frame, asks, asks_causes_only, method_of, unused_options
from espalier.core.planning.budget_lines import Line, given_by_hand
from espalier.core.privacy.accounting import Budget
from espalier.core.project.file import Project
from espalier.core.project.options import declared

PARAMETER = re.compile(
    r"([εδρ]\w{0,9})\s*(?:[^\w\s(]{1,2}|is|of|at most|below)\s*\.?\d"
    r"|(\b(?i:epsilon|eps|delta|rho))\s*(?:[=≈<≤:]|is)\s*\.?\d"
)
"""Text that looks like ε, δ or ρ with a number. The verifier rejects a report that states others than the release's."""


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts of a JSON value, including its keys."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def warnings_of(
    project: Project, frame: Frame, budget: Budget, forest: bool, rows: int | None, lines: tuple[Line, ...]
) -> list[str]:
    """Return warnings that a steward should read before spending; ``forest`` is true if the model falls into separate
    parts.
    """
    plan, method = project.plan, method_of(project.plan)
    out = []
    if guessed := project.schema.unconfirmed:
        names = ", ".join(guessed[:6]) + (" …" if len(guessed) > 6 else "")
        out.append(f"Confirm the guesses about these columns on the Data page before you release: {names}.")
    if doubtful := project.constraints.guessed:
        out.append(
            "Confirm or remove the guessed constraints on the Data page before you release: "
            f"{'; '.join(map(str, doubtful[:4]))}{' …' if len(doubtful) > 4 else ''}."
        )
    texts = dict.fromkeys([*_texts(project.to_json()), *map(str, project.constraints)])
    found = ((text, PARAMETER.search(text)) for text in texts)
    if like := [text[: m.end(m.lastindex or 0)][-40:] for text, m in found if m]:  # up to the name, not its number
        out.append(
            "These texts look like privacy parameters. Reports repeat them, so `espalier verify` would reject the "
            f"release. Word them differently: {', '.join(f'“{text} …”' for text in like[:4])}."
        )
    if plan.schema_share and not project.schema.undeclared:
        out.append(
            "Every column is declared, so there is nothing to buy with the share for the schema. The counts get this "
            "share."
        )
    if frame.refused:
        out.append(
            f"The features do not include {', '.join(frame.refused)}, which the fence keeps away from {plan.target}."
        )
    if forest and method.capabilities.links and not frame.warnings:
        out.append(
            "Not all columns are linked with each other. The model falls into separate parts (a forest), which "
            "the table shows as unrelated."
        )
    if project.question_list and not asks(project):
        out.append(
            "The project lists questions or counts, but their share of the budget is 0, so they are not measured."
        )
    if project.analyses and not plan.analysis_share:
        out.append(
            "The project lists analyses, but their share of the budget (analysis_share) is 0, so none is bought."
        )
    if bool(plan.regressions) != bool(plan.regression_share):
        out.append(
            "The plan lists regressions, but their share of the budget is 0, so they are not bought."
            if plan.regressions
            else "The plan lists no regression, so the method gets the share for regressions."
        )
    if plan.question_share and not project.question_list:
        out.append("There are no questions, so the method gets their share.")
    if plan.test_drawing and not any(line.pool == POOL for line in lines):
        out.append(
            "The drawing cannot be tested: it implies no independence, or there are too few rows to detect an odds "
            "ratio of 2.5. The method gets the share for the test."
        )
    if asks_causes_only(plan) and not method.causes_only(plan):
        out.append(
            f"The plan requires a table in which {plan.target} depends only on its drawn causes. The method "
            f"{method.title} does not guarantee this."
        )
    if others := unused_options(plan):
        out.append(f"The method {method.title} ignores {', '.join(others)}.")
    out += [
        f"{option.unbought}, and is added to the counts' share."
        for key, option in declared(method.options).items()
        if option.pool and plan.options.get(key) and not any(line.pool == option.pool for line in lines)
    ]
    if plan.epsilon > 8:
        out.append(f"ε = {plan.epsilon:g} protects little, because an attacker's odds may change by a factor of e^ε.")
    if rows and budget.delta > 1 / rows:
        out.append("δ is above 1/n, so publishing one random row would satisfy it. Choose a smaller δ.")
    elif budget.delta > 1e-5:
        out.append(
            f"δ = {budget.delta:.2g} is large: with about this probability, the promise fails. Choose a smaller δ."
        )
    drowned = [x for x in lines if x.columns and x.cells and x.error and x.error * x.cells > 1]
    if rows and drowned:
        best = {x.columns: x for x in sorted(drowned, key=lambda x: -(x.error or 0))}  # keeps the smallest error
        shown = "; ".join(
            f"{' × '.join(columns or ())}: {rows / (x.cells or 1):,.0f} rows per cell, noise "
            f"±{(x.error or 0) * rows:,.0f}"
            for columns, x in list(best.items())[:4]
        )
        out.append(
            f"Some counts will be mostly noise ({shown}). Coarsen these columns on the Data page, or leave them out."
        )
    out += given_by_hand(plan, lines)
    if plan.person is None and plan.rows_per_person > 1:
        out.append(
            f"This plan promises that no one has more than {plan.rows_per_person} rows. The promise is not checked."
        )
    if plan.person is not None and plan.neighbors == "replace-one":
        out.append(
            f"Before anything is measured, the table is padded or cut to the declared {plan.rows:,} rows. The real "
            "number stays confidential. Declare a number close to the number of rows that are left when each person "
            f"keeps at most {plan.rows_per_person}."
        )
    if plan.private_evaluation and rows is None:
        out.append(
            "Which figures of the private evaluation are possible depends on the number of held-out rows, which is "
            "not known yet. All of them are listed."
        )
    return out
