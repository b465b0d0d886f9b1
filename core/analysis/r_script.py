"""One question as a script in R that needs only base R; see `espalier.core.analysis.script`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from espalier.core.analysis.effect import StandardisedEffect
from espalier.core.analysis.estimands import (
    HALF,
    Difference,
    Figure,
    Level,
    Mean,
    MeanDifference,
    OddsRatio,
    Part,
    Proportion,
    Regression,
    compared,
)
from espalier.core.analysis.quantiles import Quantile
from espalier.core.project.schema import Schema

HEAD = """\
# {title}
#
# Espalier wrote this script. It runs unchanged next to copies.csv. Each copy is the release with a different sample of
# people and different noise. Estimate in each copy separately, then combine the estimates. Never stack the copies into
# one table. If a group is small compared with its noise, Espalier's own interval follows from the noisy counts instead.

copies <- read.csv("copies.csv", colClasses = "character", na.strings = NULL, check.names = FALSE, encoding = "UTF-8")
copies$rows <- as.numeric(copies$rows)
{prepare}

estimate <- function(table) {{              # one value for each number; ratios as logarithms
  rows <- table$rows
{body}
}}

parts <- split(copies, copies$copy)
found <- sapply(parts, estimate)          # a column for each copy
found <- matrix(found, ncol = length(parts))
m <- ncol(found)
for (i in seq_len(nrow(found))) {{
  q <- found[i, ]
  half <- qt({quantile:g}, m - 1) * sqrt((1 + 1 / m) * var(q))
  ends <- c(mean(q), mean(q) - half, mean(q) + half)
  if (RATIO[i]) ends <- exp(ends)
  ends <- format(ends, digits = 6, trim = TRUE)
  cat(sprintf("%s: %s ({percent:g} %% interval %s to %s)\\n", NAMES[i], ends[1], ends[2], ends[3]))
}}
"""


def r_script(schema: Schema, figure: Figure, title: str, level: float = 0.95) -> str:
    """Return the script in R."""
    parts = figure.parts()
    prepare = [
        f"NAMES <- c({', '.join(_text(part.name) for part in parts)})",
        f"RATIO <- c({', '.join('TRUE' if part.ratio else 'FALSE' for part in parts)})",
    ]
    for name, code in () if isinstance(figure, StandardisedEffect) else figure.missing.items():
        prepare.append(f"copies <- copies[copies[[{_text(name)}]] != {_text(schema[name].labels[code])}, ]")
    helper, body = _r(schema, figure)
    lines = "\n".join("  " + line for line in body)
    return HEAD.format(
        title=json.dumps(title, ensure_ascii=False)[1:-1],
        prepare="\n".join([*prepare, *helper]),
        body=lines,
        quantile=(1 + level) / 2,
        percent=100 * level,
    )


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _where(schema: Schema, *levels: Level) -> str:
    parts = [f"table[[{_text(v.column)}]] == {_text(schema[v.column].labels[v.code])}" for v in levels]
    return " & ".join(parts)


def _middle(schema: Schema, name: str, scores: Sequence[float], table: str = "table") -> str:
    labels = ", ".join(_text(label) for label, _ in zip(schema[name].labels, scores, strict=False))
    values = ", ".join(f"{score:.17g}" for score in scores)
    return f"c({values})[match({table}[[{_text(name)}]], c({labels}))]"


def _r(schema: Schema, figure: Figure) -> tuple[list[str], list[str]]:
    """Return the lines before the function ``estimate``, and its lines."""

    def total(*levels: Level) -> str:
        return f"sum(rows[{_where(schema, *levels)}])"

    match figure:
        case Proportion(event, among):
            whole = total(*among) if among else "sum(rows)"
            return [], [f"{total(event, *among)} / {whole}"]
        case Difference(event, one, other, among=among):
            shares = [f"{total(event, group, *among)} / {total(group, *among)}" for group in (one, other)]
            return [], [f"{shares[0]} - {shares[1]}"]
        case OddsRatio(event, instead, one, other, among=among):
            cells = [f"{total(e, g, *among)} + {HALF}" for e in (event, instead) for g in (one, other)]
            return [], [f"cells <- log(c({', '.join(cells)}))", "cells[1] - cells[2] - cells[3] + cells[4]"]
        case Mean(column, scores, among):
            keep = _where(schema, *among) if among else "rep(TRUE, nrow(table))"
            return [], [f"value <- {_middle(schema, column, scores)}", *_mean("mean", keep), "mean"]
        case Quantile(column, probability, edges, among):
            bins = ", ".join(map(_text, schema[column].labels[: len(edges) - 1]))
            keep = _where(schema, *among) if among else "rep(TRUE, nrow(table))"
            return [], [
                f"bins <- c({bins})",
                f"edges <- c({', '.join(f'{edge:.17g}' for edge in edges)})  # Espalier's own interval ends at edges",
                f"keep <- {keep}",
                f"counts <- sapply(bins, function(bin) sum(rows[keep & table[[{_text(column)}]] == bin]))",
                "shares <- c(0, cumsum(counts)) / sum(counts)",
                f"i <- min(max(sum(shares < {probability!r}), 1), length(bins))",
                "step <- shares[i + 1] - shares[i]",
                f"inside <- if (step > 0) ({probability!r} - shares[i]) / step else 0.5",
                "unname(edges[i] + (edges[i + 1] - edges[i]) * min(max(inside, 0), 1))",
            ]
        case MeanDifference(column, scores, one, other, among=among):
            lines = [f"value <- {_middle(schema, column, scores)}", *_mean("one", _where(schema, one, *among))]
            return [], [*lines, *_mean("other", _where(schema, other, *among)), "one - other"]
        case Regression():
            return [], [*_regression(schema, figure), "coef(fit)[-1]"]
        case StandardisedEffect():
            return [], _effect(schema, figure)
    raise TypeError(f"no script for {type(figure).__name__}")


def _mean(name: str, keep: str) -> list[str]:
    return [f"keep <- {keep}", f"{name} <- weighted.mean(value[keep], rows[keep])"]


def _regression(schema: Schema, figure: Regression) -> list[str]:
    lines = []
    terms = []
    for i, name in enumerate(figure.predictors, 1):
        if name in figure.scores:
            lines.append(f"table$x{i} <- {_middle(schema, name, figure.scores[name])}  # {_text(name)}")
        else:
            first, left_out = figure.reference.get(name, 0), figure.missing.get(name)
            codes = [first, *(c for c in range(figure.sizes[name]) if c not in (first, left_out))]
            levels = ", ".join(_text(schema[name].labels[code]) for code in codes)
            lines.append(f"table$x{i} <- factor(table[[{_text(name)}]], levels = c({levels}))")
        terms.append(f"x{i}")
    formula = f"y ~ {' + '.join(terms)}"
    if figure.event is None:
        lines.append(f"table$y <- {_middle(schema, figure.outcome, figure.scores[figure.outcome])}")
        return [*lines, f"fit <- lm({formula}, data = table, weights = rows, subset = rows > 0)"]
    lines.append(f"table$y <- as.numeric({_where(schema, Level(figure.outcome, figure.event))})")
    return [
        *lines,
        f"fit <- glm({formula}, family = quasibinomial, data = table, weights = rows, subset = rows > 0,",
        "           control = glm.control(epsilon = 1e-12, maxit = 50))",
    ]


def _effect(schema: Schema, figure: StandardisedEffect) -> list[str]:
    treatment, outcome = figure.treatment, figure.outcome
    event = figure.event
    score = (
        _middle(schema, outcome, figure.scores)
        if event is None
        else f"as.numeric({_where(schema, Level(outcome, event))})"
    )
    lines = ["whole <- table", *_observed(schema, figure, (treatment, outcome)), f"table$y <- {score}"]
    lines += [
        "crude <- function(g) {",
        f"  keep <- table[[{_text(treatment)}]] == g",
        "  weighted.mean(table$y[keep], table$rows[keep])",
        "}",
    ]
    pairs: dict[str, str] = {"crude": "crude"}
    if figure.adjust:
        lines += ["known <- table", "table <- whole", *_observed(schema, figure, figure.columns), f"table$y <- {score}"]
        lines += _adjusted(schema, figure)
        pairs["adjusted"] = "adjusted"
    lines.append("found <- c()")
    if figure.adjust:
        lines += ["full <- table"]
    reference = _text(schema[treatment].labels[figure.reference])
    for code in figure.levels:
        level = _text(schema[treatment].labels[code])
        own = [
            p
            for p in figure.parts()
            if p.name.endswith(f", {compared(treatment, code, figure.reference, figure.labels)}")
        ]
        lines += _numbers(own, level, reference, bool(figure.adjust))
    lines.append("found")
    return lines


def _numbers(parts: Sequence[Part], level: str, reference: str, adjusted: bool) -> list[str]:
    lines = ["table <- known"] if adjusted else []
    lines += [f"crude_of <- c(crude({level}), crude({reference}))"]
    if adjusted:
        lines += ["table <- full", f"adjusted_of <- adjusted({level}, {reference})"]
    for part in parts:
        of = f"{part.name.partition(' ')[0]}_of"
        lines.append(f"found <- c(found, {f'log({of}[1] / {of}[2])' if part.ratio else f'{of}[1] - {of}[2]'})")
    return lines


def _observed(schema: Schema, figure: StandardisedEffect, columns: Sequence[str]) -> list[str]:
    missing = figure.missing
    return [
        f"table <- table[table[[{_text(n)}]] != {_text(schema[n].labels[missing[n]])}, ]"
        for n in columns
        if n in missing
    ]


def _adjusted(schema: Schema, figure: StandardisedEffect) -> list[str]:
    """Return lines that define ``adjusted(level, reference)``: both standardised means."""
    treatment = _text(figure.treatment)
    if figure.form == "saturated":
        names = ", ".join(f"table[[{_text(name)}]]" for name in figure.adjust)
        return [
            f'stratum <- interaction({names}, drop = TRUE, sep = "\\u001f")',
            "means <- function(g) {",
            f"  keep <- table[[{treatment}]] == g & table$rows > 0",
            "  sums <- tapply(table$y[keep] * table$rows[keep], stratum[keep], sum)",
            "  sums / tapply(table$rows[keep], stratum[keep], sum)",
            "}",
            "adjusted <- function(one, other) {",
            "  a <- means(one); b <- means(other)",
            "  both <- is.finite(a) & is.finite(b)",
            "  weight <- tapply(table$rows, stratum, sum)[both]",
            "  c(weighted.mean(a[both], weight), weighted.mean(b[both], weight))",
            "}",
        ]
    model = Regression(
        figure.outcome,
        (figure.treatment, *figure.adjust),
        figure.sizes,
        None if figure.event is None else figure.event,
        {figure.outcome: figure.scores} if figure.event is None else {},
        {figure.treatment: figure.reference},
        missing=figure.missing,
    )
    return [
        "rows <- table$rows",
        *_regression(schema, model),
        "adjusted <- function(one, other) sapply(c(one, other), function(g) {",
        "  treated <- table",
        "  treated$x1 <- factor(g, levels = levels(table$x1))",
        '  weighted.mean(predict(fit, treated, type = "response"), table$rows)',
        "})",
    ]
