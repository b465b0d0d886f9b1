"""``report.html``: a release's facts, rendered for people. One file, no script, nothing fetched from elsewhere.

Works on the facts of ``release.json`` alone, so it cannot show a figure that was not released.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from espalier.core.graph.annotations import Annotation, annotations_from_json
from espalier.core.methods import METHODS
from espalier.core.methods.pools import pool_in_words
from espalier.core.planning.hierarchies import CARRIED
from espalier.core.privacy.accounting import round_up, total_up
from espalier.core.privacy.unit import Unit
from espalier.core.project.schema import FIELDS
from espalier.core.report import front
from espalier.core.report.conclusions import conclusions
from espalier.core.report.effect import effect_section
from espalier.core.report.html import made_with
from espalier.core.report.html import table as _table
from espalier.core.report.questions import question_section
from espalier.core.report.style import STYLE


def render(facts: Mapping[str, Any], label: str = "") -> str:
    """The report's HTML from the facts of ``release.json`` and the privacy ``label``. Every name is escaped."""
    project, spent = facts["project"], facts["spent"]
    name = escape(project["name"])
    pools: dict[str, float] = {}
    for item in [*facts.get("schema_bought", []), *facts["choices"], *facts["measurements"]]:
        pools[item["pool"]] = total_up((pools.get(item["pool"], 0.0), item["rho"]))
    parts = [
        f"<h1>{name}: synthetic table</h1>",
        front.headline(facts),
        front.verdict(facts),
        front.pictures(facts),
        effect_section(facts),
        front.privacy(facts),
        label,
        front.advice(facts),
        front.people(facts),
        front.spent(pools),
        _looking(facts.get("looking"), project["plan"]),
        front.dictionary(facts),
        '<div class="annex"><h1>Technical annex</h1>',
        "<h2>What is promised</h2>",
        _promise({**spent, **facts["asked"], "counted": spent["rho"]}),
        _ledger(facts.get("ledger")),
        _bullets(facts["promises"]),
        "<h2>Shares of the budget</h2>",
        _pools(facts),
        "<h2>The frame</h2>",
        _frame(facts),
        _schema_bought(facts),
        _constraints(facts.get("constraints")),
        _explained(facts),
        "<h2>Every measurement</h2>",
        _measurements(facts),
        _choices(facts),
        _looked_how(facts.get("looking")),
        question_section(facts),
        _bounds(facts),
        conclusions(facts),
        "<h2>What to keep in mind</h2>",
        _bullets(
            [
                "Columns that were not measured together are related in this table only through those that were.",
                "No figure in this report was computed on the real table without being paid for.",
                "A separation says what the table does not show. It does not say that a model trained on it "
                "treats groups alike.",
                *_confirmed(project["schema"], project.get("left_out", [])),
                *facts.get("warnings", []),
            ]
        ),
        _notes(project),
        made_with(facts),
        "</div>",
    ]
    body = "\n".join(p for p in parts if p)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}: synthetic table</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def _confirmed(schema: Sequence[Mapping[str, Any]], left_out: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the curator took responsibility for: read off the private table, and confirmed to be public."""
    told = [f"“{c['name']}” ({', '.join(FIELDS[f] for f in c['confirmed'])})" for c in schema if c.get("confirmed")]
    told += [f"“{c['name']}” (left out as an identifier)" for c in left_out if c.get("confirmed")]
    if not told:
        return []
    return [
        "Parts of the schema were read off the real table, and the curator has confirmed that they are public "
        f"knowledge: {'; '.join(told)}."
    ]


def _promise(spent: Mapping[str, Any]) -> str:
    """What was asked is what is promised: how much of it was spent may itself hang on noisy answers."""
    person = f"“{escape(spent['person'])}”" if spent.get("person") else None
    unit = Unit(spent["neighbors"], spent["rows_per_person"]).in_words(person)
    return (
        f"<p>The release is (ε, δ)-differentially private with ε = {round_up(spent['epsilon'])} and "
        f"δ = {round_up(spent['delta'])}, for {unit} (<em>{escape(spent['neighbors'])}</em>). "
        f"It spent ρ = {round_up(spent['counted'])} of zero-concentrated differential privacy. What that means for a "
        "person in the table stands under Privacy, above.</p>"
    )


def _ledger(ledger: Mapping[str, Any] | None) -> str:
    if ledger is None:
        return (
            "<p><strong>Not recorded in a ledger</strong>: nothing keeps count of this release together with others "
            "from the same people.</p>"
        )
    total, before, after = ledger["total"], ledger["before"], ledger["after"]
    return (
        f"<p>Recorded in a ledger as entry {escape(ledger['entry'])} of {escape(ledger['population'])}, whose releases "
        f"may together reach ε = {total['epsilon']:g} at δ = {total['delta']:g} (ρ = {total['rho']:.4g}). Before this "
        f"one they had reached ε = {round_up(before['epsilon'])} (ρ = {round_up(before['rho'])}); with all that was "
        f"reserved for it, ε = {round_up(after['epsilon'])} (ρ = {round_up(after['rho'])}). {_besides(ledger)}</p>"
    )


def _besides(ledger: Mapping[str, Any]) -> str:
    """The unit that the ledger adds up, and whether figures that are not private were seen before; absent from old
    releases."""
    if "unit" not in ledger:
        return ""
    unit, looks = ledger["unit"], ledger["diagnostics_before"]
    column = f"enforced by the person column “{escape(unit['person'] or '')}”"
    return (
        f"Rows per person are {column if unit['enforced'] else 'promised; no person column enforces them'}. "
        + (
            "<strong>This is another unit than the one the ledger fixed for the table</strong>: the sums add up ρ of "
            "different units. "
            if unit["another_unit"]
            else ""
        )
        + (
            f"Confidential diagnostics had been looked at {looks} time{'s' if looks > 1 else ''} before it."
            if looks
            else "No confidential diagnostics were recorded before it."
        )
    )


def _pools(facts: Mapping[str, Any]) -> str:
    pools: dict[str, float] = {}
    for item in [*facts["choices"], *facts["measurements"]]:
        pools[item["pool"]] = total_up((pools.get(item["pool"], 0.0), item["rho"]))
    whole = math.fsum(pools.values()) or 1.0
    rows = [
        f"<tr><td>{escape(p)}</td><td>{escape(pool_in_words(p))}</td>"
        f'<td class="n">{round_up(r)}</td><td class="n">{100 * r / whole:.1f} %</td>'
        f'<td style="width:30%"><div class="bar" style="width:{100 * r / whole:.1f}%"></div></td></tr>'
        for p, r in pools.items()
    ]
    return _table("Shares of ρ", ["pool", "what for", "ρ#", "share#", ""], rows)


_FIGURES = {
    "accuracy": "Accuracy: share of right guesses of a model trained on the synthetic rows",
    "auc": "AUC of that model (0.5 is a coin toss, 1 is perfect)",
    "one_way_tv": "One-way error: total variation of a column, mean over columns (0 is equal)",
    "cmi": "What the outcome of real rows tells about protected columns beyond the admissible ones (0 is nothing)",
}


def _looking(section: Mapping[str, Any] | None, plan: Mapping[str, Any]) -> str:
    if section is None:
        return ""
    others = ", the first target only" if plan.get("targets") else ""
    rows = []
    for f in section["figures"]:
        what = escape(_FIGURES[f["figure"]])
        if f["value"] is None:
            rows.append(f'<tr><td>{what}</td><td colspan="2">not shown: {escape(f["reason"])}</td></tr>')
        else:
            rows.append(
                f'<tr><td>{what}</td><td class="n">{f["value"]:.3f}</td>'
                f'<td class="n">{f["low"]:.3f} to {f["high"]:.3f}</td></tr>'
            )
    target = f" Predicted was <strong>{escape(section['target'])}</strong>{others}." if section["target"] else ""
    guess = section.get("accuracy_baseline")
    beside = (
        f"Always guessing the commonest value would be right for about {guess:.3f} of them, by the same noisy counts."
        if guess is not None
        else "These counts do not say how often always guessing the commonest value would be right: compare accuracy "
        "with the commonest value's share in the synthetic table."
    )
    if any(f["figure"] == "accuracy" and f["value"] is not None for f in section["figures"]):
        target += f" {beside}"
    who = "of the people with all their rows" if section["by"] == "person" else "of the rows"
    return (
        "<h2>What the table is worth: shareable figures</h2>"
        f"<p>Safe to share: worked out from noisy counts of {section['rows']:,} real rows "
        f"({100 * section['share']:.3g} % {who}), which were held out at random and judge the table.{target} "
        "An interval holds the population's figure in 95 of 100 cases.</p>"
        + _table("Figures on rows held out", ["figure", "value#", "95 % interval#"], rows)
    )


def _looked_how(section: Mapping[str, Any] | None) -> str:
    """How the figures on rows held out were made: their intervals, and the noisy counts."""
    if section is None:
        return ""
    rows = [
        f"<tr><td>{escape(f['figure'])}</td><td>{escape(f['method'])}</td></tr>"
        for f in section["figures"]
        if f["value"] is not None
    ]
    return (
        "<h2>How the shareable figures were made</h2>"
        f"<p>They are differentially private. {escape(section['why'])} An interval is for each figure by itself; it "
        "speaks of the noise and of the rows being a sample.</p>"
        + _table("Their 95 % intervals (cmi: conditional mutual information, in nats)", ["figure", "interval"], rows)
        + _table("Noisy counts they were made from", ["columns", "pool", "cells#", "ρ#", "σ (rows)#"], _counts(section))
    )


def _frame(facts: Mapping[str, Any]) -> str:
    roles = {role: names for role, names in facts["project"]["roles"].items() if names}
    out = ["".join(f"<p>{role.capitalize()} columns: {_list(names)}.</p>" for role, names in roles.items())]
    if facts["selected"]:
        plan = facts["project"]["plan"]
        targets = list(dict.fromkeys([plan["target"], *plan.get("targets", {})]))
        chosen = [c for c in facts["selected"] if c not in targets[:1]]
        out.append(f"<p>Columns measured together with <strong>{_list(targets)}</strong>: {_list(chosen)}.</p>")
    if facts["refused"]:
        out.append(f"<p>Left out because the fence forbids it: {_list(facts['refused'])}.</p>")
    if not facts["separations"]:
        out.append(f"<p>{METHODS[facts['method']].guidance.unseparated(bool(facts['project']['dag']['edges']))}</p>")
    for s in facts["separations"]:
        given = _list(s["given"]) if s["given"] else "nothing"
        state = "holds" if s["holds"] else "DOES NOT HOLD"
        out.append(
            f"<p>{_list(s['left'])} and {_list(s['right'])} are independent given {given} "
            f'<span class="soft">({escape(s["why"])})</span>: <span class="ok">{state}</span>.</p>'
        )
    for column, labels in facts.get("merged", {}).items():
        out.append(
            f"<p>Rare categories of {escape(column)} were counted together, and drawn with equal chance: "
            f"{_list(labels)}.</p>"
        )
    pairs = "; ".join(f"{escape(a)} – {escape(b)}" for a, b in facts["edges"])
    out.append(f"<p>Pairs of columns measured together: {pairs or 'none'}.</p>")
    return "\n".join(out)


def _schema_bought(facts: Mapping[str, Any]) -> str:
    """What the schema was bought with, what came of it, and what is told apart; nothing where all was declared."""
    parts, apart = facts.get("schema_bought"), facts.get("told_apart", [])
    if not parts:
        return ""
    columns = {c["name"]: c for c in facts["project"]["schema"]}
    found = [
        f"{escape(name)} {len(c['edges']) - 1} bins from {c['edges'][0]:,.10g} to {c['edges'][-1]:,.10g}"
        if "edges" in c
        else f"{escape(name)} {len(c['categories'])} categor{'y' if len(c['categories']) == 1 else 'ies'}"
        for name, c in ((name, columns[name]) for name in dict.fromkeys(p["column"] for p in parts))
    ]
    rows = [
        f'<tr><td>{escape(p["what"])}</td><td class="n">{round_up(p["rho"])}</td>'
        f'<td class="n">{round_up(p["delta"])}</td><td class="n">{p["scale"]:.4g}</td></tr>'
        for p in parts
    ]
    return (
        "<h2>The schema that was bought</h2>"
        "<p>Nobody declared these parts of the schema: they were chosen privately, and paid for. Texts of a column "
        f"whose categories were bought count as empty cells where no category was found. Found: {'; '.join(found)}.</p>"
        + "".join(
            f"<p>{escape(a['column'])}: of {a['codes']:,} codes in {a['levels']} levels, {a['alone']:,} are told apart "
            f"and the others stand in {a['groups']:,} groups. {CARRIED}</p>"
            for a in apart
        )
        + _table(
            "Parts of the schema, in the order they were bought", ["part", "ρ#", "δ₀#", "noise scale (rows)#"], rows
        )
    )


def _constraints(section: Mapping[str, Any] | None) -> str:
    """What no row may be, and that none is."""
    if section is None:
        return ""
    rows = [
        f'<tr><td>{escape(c["constraint"])}</td><td class="n">{c["violations"]:,}</td></tr>' for c in section["each"]
    ]
    return (
        "<h2>What no row may be</h2>"
        f"<p>{section['violations']:,} of the synthetic rows break a constraint. They were declared as public, and "
        "hold inside the model: no row was drawn and thrown away.</p>"
        + _table("Constraints, and synthetic rows that break them", ["constraint", "rows#"], rows)
    )


def _explained(facts: Mapping[str, Any]) -> str:
    """What the frame refused, with the noisy scores that were paid for."""
    bought = facts.get("explained")
    if not bought:
        return ""
    q = bought["q"]
    joining = "; ".join(" – ".join(map(escape, pair)) for pair in q["would_join"]) or "none"
    rows = [
        f'<tr><td>{" – ".join(map(escape, x["columns"]))}</td><td class="n">{x["score"]:,.0f}</td></tr>'
        for x in bought["refused"][:12]
    ]
    return (
        "<h2>What the frame gave up</h2>"
        f"<p>The tree's pairs together depart from independence by q = {q['tree']:,.0f} rows; with the refused pairs "
        f"allowed it would be {q['free']:,.0f}: {q['given_up']:,.0f} given up (noise ± {q['sigma']:,.0f}). "
        f"Refused pairs that would join: {joining}. An estimate that errs upward, since noise too can make a pair "
        f"look strong.</p>"
        + _table(
            f"The strongest of {len(bought['refused'])} refused pairs: distance from independence, noise "
            f"± {bought['sigma']:,.0f} rows",
            ["pair", "score (rows)#"],
            rows,
        )
    )


def _measurements(facts: Mapping[str, Any]) -> str:
    sums = any(m.get("kind") in ("gradient", "sums") for m in facts["measurements"])
    return _table(
        "Noisy counts; σ is the standard deviation of the noise, in rows per cell"
        + (" (of sums that are no counts, in their own unit)" if sums else ""),
        ["columns", "pool", "cells#", "ρ#", "σ (rows)#"],
        _counts(facts),
    )


def _counts(facts: Mapping[str, Any]) -> list[str]:
    """Measurements that follow each other and are the same in all that is shown stand once, with how many there are."""
    runs = [list(run) for _, run in itertools.groupby(facts["measurements"])]
    return [
        f"<tr><td>{f'{len(run)} times, each: ' if len(run) > 1 else ''}"
        f"{' × '.join(map(escape, m['columns'])) or escape(m.get('what', 'scores, listed above'))}</td>"
        f"<td>{escape(m['pool'])}</td>"
        f'<td class="n">{m["cells"]:,}</td><td class="n">{round_up(m["rho"])}</td>'
        f'<td class="n">{m["sigma"]:.4g}</td></tr>'
        for run in runs
        for m in run[:1]
    ]


def _choices(facts: Mapping[str, Any]) -> str:
    if not facts["choices"]:
        return ""
    rows = [
        f"<tr><td>{escape(c['what'])}: {' – '.join(map(escape, c['chosen'])) or 'none is worth its noise'}</td>"
        f'<td class="n">{c["candidates"]:,}</td><td class="n">{round_up(c["rho"])}</td>'
        f'<td class="n">{c["scale"]:.4g}</td></tr>'
        for c in facts["choices"]
    ]
    return _table(
        "Private choices, in the order they were made; a choice releases no score",
        ["chosen", "out of#", "ρ#", "noise scale (rows)#"],
        rows,
    )


def _bounds(facts: Mapping[str, Any]) -> str:
    """What theory promises, beside what to expect; absent from releases made before it was computed."""
    bounds = facts.get("bounds")
    if not bounds or not bounds["marginals"]:
        return ""
    rows = [
        f"<tr><td>{' × '.join(map(escape, m['clique']))}</td>"
        f'<td class="n">{m["cells"]:,}</td><td class="n">{_expected(m["expected_tv"])}</td>'
        f'<td class="n">{_within(m["tv"])}</td></tr>'
        for m in bounds["marginals"]
    ]
    inputs = bounds["inputs"]
    out = "<h2>How far off the counts may be</h2>" + _table(
        "Noisy counts before the fit: share of rows in the wrong cell (total variation distance), as expected, which "
        "is what to plan by, and a bound (PRISM's Proposition A.1) that all of them keep together in "
        f"{100 * (1 - inputs['beta']):.0f} of 100 releases",
        ["columns", "cells#", "expected#", "bound#"],
        rows,
    )
    if bounds["tree"] is not None:
        out += (
            "<p>Bound for the share of rows in the wrong cell of a table made from the pairs with the target alone, if "
            f"these columns depend on each other through the target only: {_within(bounds['tree'])}. Bound for the "
            f"excess risk of a model trained on that table (Theorem 6.2, for a loss of at most {inputs['loss']:g} and "
            f"linear predictors of norm at most {inputs['norm']:g}): "
            f"{_within(bounds['excess_risk'], percent=False)}.</p>"
        )
    return out


def _expected(share: float) -> str:
    return "above 100 %: mostly noise" if share > 1 else f"{100 * share:.2f} %"


def _within(bound: float, percent: bool = True) -> str:
    if bound > 1:
        return "vacuous (above 1)"
    return f"{100 * bound:.1f} %" if percent else f"{bound:.3f}"


def _notes(project: Mapping[str, Any]) -> str:
    dag, known = project["dag"], {column["name"] for column in project["schema"]}
    said = annotations_from_json(dag.get("annotations", []))
    arrows = [f"{c} → {e}" + _said(said.get((c, e))) for c, e in dag["edges"]]
    columns = [of[0] + _said(said[of]) for of in said if len(of) == 1 and of[0] in known]
    notes = [f"{k}: {v}" for k, v in dag.get("notes", {}).items() if isinstance(v, str)]
    lines = [*arrows, *columns, *notes]
    return "<h2>The graph that was drawn</h2>" + _bullets(lines) if lines else ""


def _said(annotation: Annotation | None) -> str:
    return f" ({annotation.words})" if annotation else ""


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(escape, names))


def _bullets(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
