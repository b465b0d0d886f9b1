"""One question as scripts in Python and R that run without Espalier, with the files that they read. ``copies.csv`` has
one line for each combination of the question's columns in each copy, with its number of rows. ``counts.csv`` has the
release's noisy counts that contain these columns. Both scripts estimate in each copy separately and combine the
estimates as `espalier.core.analysis.combine` does.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis import answer_text
from espalier.core.analysis.effect import StandardisedEffect
from espalier.core.analysis.estimands import (
    HALF,
    Difference,
    Figure,
    Level,
    Mean,
    MeanDifference,
    OddsRatio,
    Proportion,
    Regression,
    compared,
)
from espalier.core.analysis.quantiles import Quantile
from espalier.core.analysis.r_script import r_script
from espalier.core.analysis.study import Study
from espalier.core.analysis.tally import Tally
from espalier.core.csv_safety import defuse
from espalier.core.project.schema import Schema

PYTHON_FILE, R_FILE, COPIES_FILE, COUNTS_FILE = "question.py", "question.R", "copies.csv", "counts.csv"


def files(study: Study, figure: Figure, level: float = 0.95) -> dict[str, bytes]:
    """Return both scripts and the files that they read; ``study`` has the copies of the answer."""
    schema = study.project.schema
    return {
        PYTHON_FILE: python_script(schema, figure, level).encode(),
        R_FILE: r_script(schema, figure, answer_text.asked(schema, figure), level).encode(),
        COPIES_FILE: _copies(study, figure).encode(),
        COUNTS_FILE: counts_csv(study.whole or study, figure.columns).encode(),
    }


def _copies(study: Study, figure: Figure) -> str:
    schema = study.project.schema
    labels = [schema[name].labels for name in figure.columns]
    lines: list[Sequence[object]] = [("copy", *figure.columns, "rows")]
    for number, rows in enumerate(study.given, 1):
        tally = Tally.of_rows(rows, schema.sizes, figure.columns)
        for codes, weight in zip(tally.codes.tolist(), tally.weights.tolist(), strict=True):
            lines.append((number, *(named[code] for named, code in zip(labels, codes, strict=True)), round(weight)))
    return _csv(lines)


def counts_csv(study: Study, columns: Iterable[str] = ()) -> str:
    """Return the noisy counts whose columns include one of ``columns`` (all counts if it is empty), a line for each
    cell.

    Names and values that look like formulas are escaped.
    """
    schema, wanted = study.project.schema, set(columns)
    lines: list[Sequence[object]] = [("measurement", "columns", "values", "count", "sigma")]
    merged = study.counted.merged
    for number, m in enumerate(study.counted.measurements, 1):
        if wanted and not wanted & set(m.clique):
            continue
        named = [_groups(schema[name].labels, merged.get(name)) for name in m.clique]
        cells = m.values.reshape(-1).tolist()
        for cell, count in zip(_cells(named), cells, strict=True):
            names = defuse(" | ".join(m.clique)), defuse(" | ".join(cell))
            lines.append((number, *names, f"{count:.10g}", f"{m.sigma:.6g}"))
    return _csv(lines)


def _groups(labels: Sequence[str], groups: NDArray[np.intp] | None) -> list[str]:
    if groups is None:
        return list(labels)
    return [" or ".join(labels[i] for i, g in enumerate(groups) if g == k) for k in range(int(max(groups)) + 1)]


def _cells(named: Sequence[Sequence[str]]) -> Iterable[tuple[str, ...]]:
    return itertools.product(*named)


def _csv(lines: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


HEAD = '''\
"""{title}

Espalier wrote this script. It runs unchanged next to copies.csv and needs pandas, numpy and scipy. Each copy is the
release with a different sample of people and different noise. Estimate in each copy separately, then combine the
estimates. Never stack the copies into one table. If a group is small compared with its noise, Espalier's own interval
follows from the noisy counts instead.
"""

import numpy as np
import pandas as pd
from scipy.stats import t

copies = pd.read_csv("copies.csv", dtype=str, keep_default_na=False)
copies["rows"] = copies["rows"].astype(float)
{prepare}

def estimate(table):
    """Name and value of each number; ratios as logarithms."""
    rows = table["rows"].to_numpy()
{body}


found = [estimate(table) for _, table in copies.groupby("copy", sort=False)]
m = len(found)
for name, ratio in NUMBERS:
    q = np.array([one[name] for one in found])
    half = t.ppf({quantile:g}, m - 1) * np.sqrt((1 + 1 / m) * q.var(ddof=1))
    value, low, high = (np.exp(x) if ratio else x for x in (q.mean(), q.mean() - half, q.mean() + half))
    print(f"{{name}}: {{value:.6g}} ({percent:g} % interval {{low:.6g}} to {{high:.6g}})")
'''
FIT = '''\
def fitted(x, y, rows):
    """Coefficients of a {kind} regression with weights."""
{fit}
'''
LOGISTIC = """\
    beta = np.zeros(x.shape[1])
    for _ in range(40):
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        hessian = (x * (rows * p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(x.shape[1])
        step = np.linalg.solve(hessian, x.T @ (rows * (y - p)))
        beta = np.clip(beta + step, -30, 30)
        if np.abs(step).max() < 1e-9:
            break
    return beta
"""
LINEAR = """\
    weighted = x * rows[:, None]
    return np.linalg.pinv(weighted.T @ x) @ (weighted.T @ y)
"""


def python_script(schema: Schema, figure: Figure, level: float = 0.95) -> str:
    """Return the script in Python."""
    title = json.dumps(answer_text.asked(schema, figure), ensure_ascii=False)[1:-1]
    numbers = [(part.name, part.ratio) for part in figure.parts()]
    prepare = [f"NUMBERS = {_literal(numbers)}"]
    for name, code in figure.missing.items():
        prepare.append(f"copies = copies[copies[{_text(name)}] != {_text(schema[name].labels[code])}]")
    if isinstance(figure, StandardisedEffect) and figure.missing and figure.adjust:
        del prepare[1:]  # crude numbers also use rows that adjusted numbers leave out
    helpers, body = _python(schema, figure)
    lines = "\n".join("    " + line if line else "" for line in body)
    quantile, percent, start = (1 + level) / 2, 100 * level, "\n".join([*prepare, *helpers, ""])
    title = title.replace('"""', "'''")
    return HEAD.format(title=title, prepare=start, body=lines, quantile=quantile, percent=percent)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _list(values: Sequence[object]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def _literal(numbers: Sequence[tuple[str, bool]]) -> str:
    return "[" + ", ".join(f"({_text(name)}, {ratio})" for name, ratio in numbers) + "]"


def _where(schema: Schema, *levels: Level) -> str:
    parts = [f"(table[{_text(v.column)}] == {_text(schema[v.column].labels[v.code])})" for v in levels]
    return " & ".join(parts)


def _middles(name: str, schema: Schema, scores: Sequence[float]) -> str:
    known = dict(zip(schema[name].labels, scores, strict=False))
    return json.dumps(known, ensure_ascii=False)


def _python(schema: Schema, figure: Figure) -> tuple[list[str], list[str]]:
    """Return the lines before the function ``estimate``, and its lines."""

    def total(*levels: Level) -> str:
        return f"rows[{_where(schema, *levels)}].sum()"

    name = _text(figure.parts()[0].name)
    match figure:
        case Proportion(event, among):
            whole = total(*among) if among else "rows.sum()"
            return [], [f"return {{{name}: {total(event, *among)} / {whole}}}"]
        case Difference(event, one, other, among=among):
            shares = [f"{total(event, group, *among)} / {total(group, *among)}" for group in (one, other)]
            return [], [f"return {{{name}: {shares[0]} - {shares[1]}}}"]
        case OddsRatio(event, instead, one, other, among=among):
            cells = [f"{total(e, g, *among)} + {HALF}" for e in (event, instead) for g in (one, other)]
            return [], [f"a, b, c, d = np.log([{', '.join(cells)}])", f"return {{{name}: a - b - c + d}}"]
        case Mean(column, scores, among):
            helper = [f"MIDDLE = {_middles(column, schema, scores)}  # bin midpoints; Espalier allows for any position"]
            return helper, [*_mean("q", schema, column, among), f"return {{{name}: q}}"]
        case Quantile(column, probability, edges, among):
            labels, group = schema[column].labels[: len(edges) - 1], _where(schema, *among)
            helper = [f"BINS, EDGES = {_list(labels)}, {_list(edges)}  # Espalier's own interval ends at edges"]
            return helper, [
                f"group = {f'table[{group}]' if among else 'table'}",
                f'counts = group.groupby({_text(column)})["rows"].sum().reindex(BINS, fill_value=0)',
                "shares = np.concatenate([[0], counts.cumsum()]) / counts.sum()",
                f"i = min(max(int(np.searchsorted(shares, {probability!r})), 1), len(BINS))",
                "step = shares[i] - shares[i - 1]",
                f"inside = ({probability!r} - shares[i - 1]) / step if step > 0 else 0.5",
                f"return {{{name}: EDGES[i - 1] + (EDGES[i] - EDGES[i - 1]) * min(max(inside, 0), 1)}}",
            ]
        case MeanDifference(column, scores, one, other, among=among):
            helper = [f"MIDDLE = {_middles(column, schema, scores)}  # bin midpoints; Espalier allows for any position"]
            lines = [*_mean("q", schema, column, (one, *among)), *_mean("r", schema, column, (other, *among))]
            return helper, [*lines, f"return {{{name}: q - r}}"]
        case Regression():
            kind = "linear" if figure.event is None else "logistic"
            helper, lines = _design(schema, figure)
            helper.append("\n\n" + FIT.format(kind=kind, fit=(LINEAR if figure.event is None else LOGISTIC)).rstrip())
            return helper, [
                *lines,
                _outcome(schema, figure.outcome, figure.event),
                "beta = fitted(x, y, rows)",
                "return dict(zip([name for name, _ in NUMBERS], beta[1:]))",
            ]
        case StandardisedEffect():
            return _effect(schema, figure)
    raise TypeError(f"no script for {type(figure).__name__}")


def _mean(name: str, schema: Schema, column: str, among: Sequence[Level]) -> list[str]:
    group = f"table[{_where(schema, *among)}]" if among else "table"
    return [f"group = {group}", f'{name} = np.average(group[{_text(column)}].map(MIDDLE), weights=group["rows"])']


def _outcome(schema: Schema, outcome: str, event: int | None) -> str:
    if event is None:
        return f"y = table[{_text(outcome)}].map(MIDDLE[{_text(outcome)}]).to_numpy()"
    return f"y = ({_where(schema, Level(outcome, event))}).to_numpy(float)"


def _design(schema: Schema, figure: Regression) -> tuple[list[str], list[str]]:
    """Return the midpoints of numbers, and the lines that build the design matrix."""
    scored = [f"    {_text(name)}: {_middles(name, schema, scores)}," for name, scores in figure.scores.items()]
    helper = ["MIDDLE = {  # midpoints of the bins", *scored, "}"] if scored else []
    lines = ["x = np.column_stack(", "    [", "        np.ones(len(table)),"]
    for name in figure.predictors:
        if name in figure.scores:
            lines.append(f"        table[{_text(name)}].map(MIDDLE[{_text(name)}]),")
            continue
        first = figure.reference.get(name, 0)
        codes = [c for c in range(figure.sizes[name]) if c not in (first, figure.missing.get(name))]
        lines += [f"        {_where(schema, Level(name, code))}," for code in codes]
    return helper, [*lines, "    ]", ").astype(float)"]


def _effect(schema: Schema, figure: StandardisedEffect) -> tuple[list[str], list[str]]:
    treatment, outcome = figure.treatment, figure.outcome
    labels = schema[treatment].labels
    reference = _text(labels[figure.reference])
    helper = (
        []
        if figure.event is not None
        else [f"MIDDLE = {{{_text(outcome)}: {_middles(outcome, schema, figure.scores)}}}"]
    )

    def observed(columns: Iterable[str]) -> str:
        named = [n for n in columns if n in figure.missing]
        parts = [f"(table[{_text(n)}] != {_text(schema[n].labels[figure.missing[n]])})" for n in named]
        return f"table = table[{' & '.join(parts)}]" if parts else ""

    what = f"({_where(schema, Level(outcome, figure.event))}).astype(float)" if figure.event is not None else ""
    score = what or f"table[{_text(outcome)}].map(MIDDLE[{_text(outcome)}])"
    lines = [
        "found = {}",
        "whole = table",
        observed((treatment, outcome)),
        f"table = table.assign(y={score})",
        f'crude = table.groupby({_text(treatment)}).apply(lambda g: np.average(g["y"], weights=g["rows"]))',
    ]
    if figure.adjust:
        names = ", ".join(map(_text, figure.adjust))
        lines += ["table = whole", observed(figure.columns), f"table = table.assign(y={score})"]
        if figure.form == "saturated":
            lines += [
                f"by = [{names}]",
                'table["sum"] = table["y"] * table["rows"]',
                f'cell = table.groupby([*by, {_text(treatment)}])[["sum", "rows"]].sum()',
                f'mean = (cell["sum"] / cell["rows"]).where(cell["rows"] > 0).unstack({_text(treatment)})',
                'size = table.groupby(by)["rows"].sum()',
            ]
        else:
            reference_of = {treatment: figure.reference}
            model = Regression(
                outcome, (treatment, *figure.adjust), figure.sizes, 0, {}, reference_of, missing=figure.missing
            )
            kind = "linear" if figure.event is None else "logistic"
            fit = LINEAR if figure.event is None else LOGISTIC
            helper.append("\n\n" + FIT.format(kind=kind, fit=fit).rstrip())
            lines += [
                'rows = table["rows"].to_numpy()',
                *_design(schema, model)[1],
                'beta = fitted(x, table["y"].to_numpy(float), rows)',
            ]
    for i, code in enumerate(figure.levels):
        level = _text(labels[code])
        pairs = {"crude": f"(crude[{level}], crude[{reference}])"}
        if figure.adjust and figure.form == "saturated":
            lines += [
                f"both = mean[[{level}, {reference}]].dropna()",
                "weight = size.loc[both.index]",
            ]
            pairs["adjusted"] = f"tuple(np.average(both[g], weights=weight) for g in ({level}, {reference}))"
        elif figure.adjust:
            lines += [
                "risks = []",
                f"for place in ({1 + i}, None):",
                "    treated = x.copy()",
                f"    treated[:, 1:{1 + len(figure.levels)}] = 0.0",
                "    if place is not None:",
                "        treated[:, place] = 1.0",
                "    score = treated @ beta",
                "    risk = score" if figure.event is None else "    risk = 1 / (1 + np.exp(-score))",
                "    risks.append(np.average(risk, weights=rows))",
            ]
            pairs["adjusted"] = "tuple(risks)"
        for kind, pair in pairs.items():
            lines.append(f"one, other = {pair}")
            for part in figure.parts():
                if part.name.startswith(f"{kind} ") and part.name.endswith(_compared(figure, code)):
                    value = "np.log(one / other)" if part.ratio else "one - other"
                    lines.append(f"found[{_text(part.name)}] = {value}")
    return helper, [*filter(None, lines), "return found"]


def _compared(figure: StandardisedEffect, code: int) -> str:
    return ", " + compared(figure.treatment, code, figure.reference, figure.labels)
