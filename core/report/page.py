"""``report.html``, which presents the facts of a release in one file without scripts or external resources.

The report depends only on ``release.json``, so it cannot show a figure that was not released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from espalier.core.display import in_order
from espalier.core.graph.annotations import Annotation, annotations_from_json
from espalier.core.methods import METHODS
from espalier.core.planning.hierarchies import CARRIED
from espalier.core.privacy.accounting import round_up, total_up
from espalier.core.privacy.unit import Unit
from espalier.core.project.schema import FIELDS
from espalier.core.report import front, measurement_section, story
from espalier.core.report.conclusions import conclusions
from espalier.core.report.effect_section import effect_section
from espalier.core.report.evaluation_section import evaluation_methods, private_evaluation
from espalier.core.report.family_section import family_section
from espalier.core.report.html import made_with
from espalier.core.report.html import table as _table
from espalier.core.report.question_section import question_section
from espalier.core.report.regression_section import analysis_section, regression_section
from espalier.core.report.style import STYLE, fonts

MOST_PAIRS = 40
"""Number of measured pairs above which the annex states only their number."""


def render(facts: Mapping[str, Any], label: str = "") -> str:
    """Return the report's HTML from the facts of ``release.json`` and the privacy ``label``. All names are escaped."""
    project, spent = facts["project"], facts["spent"]
    name = escape(project["name"])
    pools: dict[str, float] = {}
    for item in [*facts.get("schema_bought", []), *facts["choices"], *facts["measurements"]]:
        pools[item["pool"]] = total_up((pools.get(item["pool"], 0.0), item["rho"]))
    parts = [
        f'<div class="first"><h1>{name}: synthetic table</h1>',
        front.headline(facts),
        front.verdict(facts),
        front.figure(facts),
        story.section(facts),
        '</div><div class="second">',
        front.privacy(facts),
        front.columns_by_quality(facts),
        front.advice(facts),
        front.people(facts),
        front.spent(pools),
        "</div>",
        _in_full(facts),
        '<div class="annex"><h1>Technical annex</h1>',
        label,
        "<h2>What is promised</h2>",
        _promise({**spent, **facts["asked"], "counted": spent["rho"], "tables": "tables" in facts}),
        _ledger(facts.get("ledger")),
        "" if label else _bullets(facts["promises"]),  # already listed in the label
        "<h2>Shares of the budget</h2>",
        measurement_section.pools(facts),
        "<h2>The frame</h2>",
        _frame(facts),
        _notes(project),
        _stage(facts.get("embedding")),
        family_section(facts),
        _schema_bought(facts),
        _constraints(facts.get("constraints")),
        _of_method(facts.get("method_notes", [])),
        _explained(facts),
        "<h2>Every measurement</h2>",
        measurement_section.measurements(facts),
        measurement_section.choices(facts),
        evaluation_methods(facts.get("looking")),
        question_section(facts),
        measurement_section.bounds(facts),
        front.dictionary(facts),
        conclusions(facts),
        "<h2>What to keep in mind</h2>",
        _bullets(
            [
                "Columns that were not measured together are related in this table only through those that were.",
                "Every figure in this report that depends on the real table was paid for from the budget.",
                "A separation (a required independence) states which association the table does not show. It does not "
                "imply that a model trained on the table treats groups alike.",
                *_declared(project.get("dictionaries", [])),
                *_confirmed(project["schema"], project.get("left_out", [])),
                *facts.get("warnings", []),
            ]
        ),
        made_with(facts),
        "</div>",
    ]
    body = "\n".join(p for p in parts if p)
    return in_order(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}: synthetic table</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{fonts()}'
        f"{STYLE}</style></head>\n"
        f"<body>\n<main>{body}</main>\n</body></html>\n"
    )


def _in_full(facts: Mapping[str, Any]) -> str:
    """Return the sections on figures that the plan paid for, which start the third page; empty if there are none."""
    sections = [
        effect_section(facts),
        analysis_section(facts),
        regression_section(facts),
        private_evaluation(facts.get("looking"), facts["project"]["plan"]),
    ]
    said = "\n".join(section for section in sections if section)
    return f'<div class="paid"><h1>Figures that were paid for</h1>{said}</div>' if said else ""


def _stage(made: Mapping[str, Any] | None) -> str:
    """Return a sentence that states whether the second stage was used and why."""
    if made is None:
        return ""
    probe = ""
    if "missed" in made:
        probe = (
            f" A probe estimated that the counts miss groups of similar rows that make up {made['missed']:.1%} of the "
            f"table. Noise and sampling alone explain {made['by_noise']:.1%}."
        )
    if not made["used"]:
        return f"<h2>Second stage</h2><p>The second stage was not used.{probe} Its budget went to the counts.</p>"
    columns = escape(", ".join(made["columns"]))
    joint = f" These features include the joint cells of {columns}." if columns else ""
    return (
        "<h2>Second stage</h2><p>The second stage was used: the rows reproduce noisy sums of features of whole rows, "
        f"by class of {escape(made['target'])}.{joint}{probe} Figures with intervals are computed only from the "
        "counts.</p>"
    )


def _confirmed(schema: Sequence[Mapping[str, Any]], left_out: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence about guesses from the private table that the curator confirmed as public."""
    by_fields: dict[str, list[str]] = {}
    for c in schema:
        if c.get("confirmed"):
            by_fields.setdefault(", ".join(FIELDS[f] for f in c["confirmed"]), []).append(f"“{c['name']}”")
    told = [f"{fields} of {', '.join(names)}" for fields, names in by_fields.items()]
    told += [f"“{c['name']}” (left out as an identifier)" for c in left_out if c.get("confirmed")]
    if not told:
        return []
    return [
        "Parts of the schema were guessed from the real table. The curator has confirmed that they are public "
        f"knowledge: {'; '.join(told)}."
    ]


def _declared(dictionaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the dictionaries that declared columns, each with the curator's statement."""
    return [
        f"The {d['format']} “{d['name']}” ({d['digest']}) declares {', '.join(d['columns'])}. The curator states: "
        f"“{d['statement']}.”"
        for d in dictionaries
    ]


def _promise(spent: Mapping[str, Any]) -> str:
    """Return the privacy promise, for the requested (ε, δ) because the spent ρ may itself depend on noisy answers."""
    person = f"“{escape(spent['person'])}”" if spent.get("person") else None
    unit = Unit(spent["neighbors"], spent["rows_per_person"]).in_words(person, linked=spent["tables"])
    return (
        f"<p>The release is (ε, δ)-differentially private with ε = {round_up(spent['epsilon'])} and "
        f"δ = {round_up(spent['delta'])}, for {unit} (<em>{escape(spent['neighbors'])}</em>). "
        f"It spent ρ = {round_up(spent['counted'])} of zero-concentrated differential privacy. The Privacy section "
        "above explains what this means for a person in the table.</p>"
    )


def _ledger(ledger: Mapping[str, Any] | None) -> str:
    if ledger is None:
        return (
            "<p><strong>Not recorded in a ledger</strong>: this release will not be counted with others from the same "
            "people.</p>"
        )
    total, before, after = ledger["total"], ledger["before"], ledger["after"]
    return (
        f"<p>Recorded in a ledger as entry {escape(ledger['entry'])} of {escape(ledger['population'])}. All releases "
        f"from these people may together reach ε = {total['epsilon']:g} at δ = {total['delta']:g} "
        f"(ρ = {total['rho']:.4g}). Earlier releases had reached ε = {round_up(before['epsilon'])} "
        f"(ρ = {round_up(before['rho'])}). Including the budget reserved for this release, the total is "
        f"ε = {round_up(after['epsilon'])} (ρ = {round_up(after['rho'])}). {_unit(ledger)}</p>"
    )


def _unit(ledger: Mapping[str, Any]) -> str:
    """Return sentences about the ledger's unit and about earlier confidential diagnostics; empty for old releases."""
    if "unit" not in ledger:
        return ""
    unit, looks = ledger["unit"], ledger["diagnostics_before"]
    column = f"enforced by the person column “{escape(unit['person'] or '')}”"
    return (
        f"The row limit per person is {column if unit['enforced'] else 'promised; no person column enforces it'}. "
        + (
            "<strong>The ledger fixed a different unit for this table</strong>, so these totals add up ρ of "
            "different units. "
            if unit["another_unit"]
            else ""
        )
        + (
            f"Confidential diagnostics were viewed {looks} time{'s' if looks > 1 else ''} before this release."
            if looks
            else "No confidential diagnostics were recorded before this release."
        )
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
        out.append(f"<p>Left out because the fence forbids the link: {_list(facts['refused'])}.</p>")
    if not facts["separations"]:
        out.append(f"<p>{METHODS[facts['method']].guidance.unseparated(bool(facts['project']['dag']['edges']))}</p>")
    for s in facts["separations"]:
        given = _list(s["given"]) if s["given"] else "nothing"
        state = "holds, CMI 0 in the model" if s["holds"] else "DOES NOT HOLD"
        out.append(
            f"<p>In the model of this table, {_list(s['left'])} and {_list(s['right'])} are independent given {given} "
            f'<span class="soft">({escape(s["why"])})</span>: <span class="ok">{state}</span>.</p>'
        )
    if facts["separations"]:
        out.append(
            '<p class="soft">CMI, conditional mutual information, is how much the first columns reveal about the '
            "second once the given ones are known, in nats. In the released rows, it is slightly above 0 by chance. "
            "These independences describe the model, not the real table.</p>"
        )
    for column, labels in facts.get("merged", {}).items():
        out.append(
            f"<p>Rare categories of {escape(column)} were counted together and are drawn with equal probability: "
            f"{_list(labels)}.</p>"
        )
    if len(facts["edges"]) > MOST_PAIRS:
        out.append(f"<p>{len(facts['edges'])} pairs of columns were measured together; release.json lists them.</p>")
    else:
        pairs = "; ".join(f"{escape(a)} – {escape(b)}" for a, b in facts["edges"])
        out.append(f"<p>Pairs of columns measured together{_shape(facts['edges'])}: {pairs or 'none'}.</p>")
    return "\n".join(out)


def _shape(edges: Sequence[Sequence[str]]) -> str:
    """Return the name of a graph without loops, as a suffix to its list of pairs; empty for other graphs."""
    part: dict[str, set[str]] = {}
    for a, b in edges:
        if b in part.setdefault(a, {a}):
            return ""
        joined = part[a] | part.setdefault(b, {b})
        part.update(dict.fromkeys(joined, joined))
    trees = len({id(columns) for columns in part.values()})
    return "" if not trees else " (a tree)" if trees == 1 else " (a forest)"


def _schema_bought(facts: Mapping[str, Any]) -> str:
    """Return the bought parts of the schema, their results and their cost; empty if the whole schema was declared."""
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
        "<h2>Bought parts of the schema</h2>"
        "<p>These parts of the schema were not declared. They were chosen privately and paid for. In a column with "
        "bought categories, a value that is not a category counts as an empty cell. "
        f"Found: {'; '.join(found)}.</p>"
        + "".join(
            f"<p>{escape(a['column'])}: of {a['codes']:,} codes in {a['levels']} levels, {a['alone']:,} are separate "
            f"categories and the others form {a['groups']:,} groups. {CARRIED}</p>"
            for a in apart
        )
        + _table("Bought parts of the schema, in order", ["part", "ρ#", "δ₀#", "noise scale (rows)#"], rows)
    )


def _constraints(section: Mapping[str, Any] | None) -> str:
    """Return the constraints with the number of synthetic rows that violate each; empty without constraints."""
    if section is None:
        return ""
    rows = [
        f'<tr><td>{escape(c["constraint"])}</td><td class="n">{c["violations"]:,}</td></tr>' for c in section["each"]
    ]
    return (
        "<h2>Constraints</h2>"
        f"<p>{section['violations']:,} of the synthetic rows violate a constraint. The constraints were declared as "
        "public and hold inside the model, so no row was drawn and discarded.</p>"
        + _table("Constraints, and synthetic rows that violate them", ["constraint", "rows#"], rows)
    )


def _of_method(notes: Sequence[str]) -> str:
    """Return the method's own sentences about the release; empty for most methods."""
    return "<h2>Notes of the method</h2>" + _bullets(notes) if notes else ""


def _explained(facts: Mapping[str, Any]) -> str:
    """Return the pairs that the frame refused, with their noisy scores; empty if these were not bought."""
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
        "<h2>Cost of the frame</h2>"
        f"<p>In total, the tree's pairs depart from independence by q = {q['tree']:,.0f} rows. Without the frame, "
        f"the tree would reach {q['free']:,.0f}, so the frame costs {q['given_up']:,.0f} (noise ± {q['sigma']:,.0f}). "
        f"Without the frame, the tree would also link: {joining}. The estimate is biased upward, because noise can "
        f"make a pair appear strong.</p>"
        + _table(
            f"The strongest of {len(bought['refused'])} refused pairs: distance from independence, noise "
            f"± {bought['sigma']:,.0f} rows",
            ["pair", "score (rows)#"],
            rows,
        )
    )


def _notes(project: Mapping[str, Any]) -> str:
    dag, known = project["dag"], {column["name"] for column in project["schema"]}
    said = annotations_from_json(dag.get("annotations", []))
    arrows = [f"{c} → {e}" + _said(said.get((c, e))) for c, e in dag["edges"]]
    columns = [of[0] + _said(said[of]) for of in said if len(of) == 1 and of[0] in known]
    notes = [f"{k}: {v}" for k, v in dag.get("notes", {}).items() if isinstance(v, str)]
    lines = [*arrows, *columns, *notes]
    if lines and not said and not notes:
        return f"<h2>The drawn graph</h2><p>{'; '.join(map(escape, lines))}.</p>"
    return "<h2>The drawn graph</h2>" + _bullets(lines) if lines else ""


def _said(annotation: Annotation | None) -> str:
    return f" ({annotation.words})" if annotation else ""


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(escape, names))


def _bullets(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
