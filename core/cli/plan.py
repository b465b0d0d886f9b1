"""``espalier plan``: show how a plan spends its budget. Reads no data."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.cli import ledger, project_file, questions_option
from espalier.core.cli.number_types import between, whole
from espalier.core.cli.release import TABLE
from espalier.core.errors import ProjectError
from espalier.core.methods import method_of
from espalier.core.privacy.accounting import round_up, total_up
from espalier.core.project.file import Project
from espalier.core.tables.catalogue import TRUSTED, joint

if TYPE_CHECKING:
    from espalier.core.planning.budget_lines import Line
    from espalier.core.planning.preview import Preview


MOST_SHOWN = 40
"""Maximum number of questions listed on a terminal."""

UP_TO = "; the release may spend the rest, depending on its private choices"


def add(commands: Any) -> None:
    """Declare the command."""
    plan = commands.add_parser("plan", help="show how a plan spends its budget; reads no data")
    plan.add_argument("project", type=Path, help="the project file (JSON)")
    plan.add_argument("--rows", type=whole, help="number of rows n, if it is public")
    plan.add_argument(
        "--auc", type=between(0.5, 1.0), help="for the verdict: the AUC that you expect without noise (default: 0.75)"
    )
    plan.add_argument(
        "--rarer", type=between(0.0, 0.5), help="for the verdict: the share of rows with the target's rarest value"
    )
    plan.add_argument("--json", action="store_true", help="print JSON instead of a table")
    plan.add_argument(
        "--explain-sql", action="store_true", help="print the SQL for the engine of --data; reads no rows"
    )
    plan.add_argument("--data", metavar="TABLE", help=TABLE + "; states the kind of relation in its catalogue")
    plan.add_argument("--relation", metavar="NAME", help="the name of the table in the engine")
    questions_option.add_option(plan)
    ledger.add_options(plan)
    plan.set_defaults(run=run)


def _explain(project: Project, data: str | None, relation: str | None) -> None:
    """Print the statements of a snapshot, from the project and the catalogue alone."""
    from espalier.core.tables.frames import located

    if data is None:
        raise ProjectError("--explain-sql needs --data TABLE, whose catalogue lists the types of the columns")
    found = located(data, relation)
    print(f"-- {found.notice}")
    print(";\n".join(found.statements(project.schema, project.plan)) + ";")


def _origin(project: Project, data: str | None, relation: str | None) -> str | None:
    """Return the kind of the relation, or of two linked relations, in the catalogue; `None` if no engine is named."""
    from espalier.core.tables.frames import is_database, located

    if data is None:
        return None
    names = [relation] if relation is not None else []
    if project.linked is not None and is_database(data):
        names = [project.linked.people, project.linked.visits][project.linked.together :]
    kinds = []
    for name in names:
        found = located(data, name)
        kinds.append(found.origin)
        found.close()
    return joint(kinds)


def run(opt: argparse.Namespace) -> None:
    """Print the plan: budget, measurements, verdict and warnings. ``--explain-sql`` reads a catalogue, never rows."""
    from espalier.core.analysis.drawing import predicted
    from espalier.core.analysis.planned_analyses import unpromised
    from espalier.core.analysis.planned_text import sentence as planned_sentence
    from espalier.core.planning.budget_lines import not_in_rows
    from espalier.core.planning.preview import preview
    from espalier.core.privacy.unit import Unit

    if opt.explain_sql:
        _explain(project_file.load(opt.project), opt.data, opt.relation)
        return
    account = ledger.account(opt)
    project, left = questions_option.load(opt), None
    if account is not None:
        project = account.population.fits(project, account.table)
    try:
        shown = preview(project, opt.rows, {k: v for k in ("auc", "rarer") if (v := getattr(opt, k)) is not None})
    except ProjectError as error:
        if error.data.get("key") != "rows" or opt.rows is not None:
            raise
        raise ProjectError(
            "δ is 1/n² here, so the plan needs the number of rows n, which is public under replace-one: add "
            f"--rows N (such as --rows 1000), or set delta in {opt.project}",
            **error.data,
        ) from None
    if account is not None:
        left = account.population.outlook(shown.budget.rho, shown.budget.pure, shown.delta)
    relation = _origin(project, opt.data, opt.relation)
    if opt.json:
        facts = {**shown.to_json(), "ledger": left, **({} if relation is None else {"relation": relation})}
        print(json.dumps(facts, indent=1, ensure_ascii=False))
        return
    b = shown.budget
    print(
        f"{shown.project.name}: {method_of(shown.project.plan).title}, ε = {b.epsilon:g}, δ = {b.delta:.3g}, "
        f"ρ = {b.rho:.6g}"
    )
    for s in shown.frame.separations:
        given = f" given {', '.join(s.given)}" if s.given else ""
        print(f"  {', '.join(s.left)} and {', '.join(s.right)} are independent{given} ({s.why})")
    p = shown.project.plan
    unit = Unit(p.neighbors, p.rows_per_person)
    protected = unit.in_words(None if p.person is None else repr(p.person), linked=shown.project.linked is not None)
    print(f"The plan protects {protected} ({p.neighbors}). {shown.project.unit_facts()['stated']}")
    if shown.frame.features:
        print(f"  measured with the target: {', '.join(shown.frame.features)}")
    _print_verdict(shown)
    print(f"\n{'pool':<12} {'cells':>9} {'rho':>11} {'sigma (rows)':>13} {'error/n':>13}  description")
    _print_lines(shown.lines)
    if other := not_in_rows(shown.lines):
        print(f"\n{other}")
    for apart in shown.apart:
        print(f"\n{apart}")
    up_to = UP_TO if shown.spent < b.rho * (1 - 1e-9) else ""
    if b.pure:
        epsilon = round_up(sum(shown.alone.values()), 6)
        print(f"\ntotal spent: ε = {epsilon} of {b.epsilon:g}, ρ = {round_up(shown.spent, 6)}")
    else:
        print(f"\ntotal spent: ρ = {round_up(shown.spent, 6)} of {b.rho:.6g}{up_to}")
    if left is not None:
        fits = f"would leave ρ = {left['after']:.4g}" if left["fits"] else "costs more than that and would be refused"
        if not left["fits"] and left["after"] >= 0:
            fits = (
                f"needs δ₀ = {round_up(shown.delta)} for its draws, which the budget does not have left, and would be "
                "refused"
            )
        elif not left["fits"] and left["largest"]:
            fits += f". A plan with ε up to {left['largest']:g} fits"
        print(f"ledger: {left['population']} has ρ = {left['left']:.4g} of {left['total']:.4g} left; this plan {fits}")
    if shown.private_evaluation:
        print("\nprivate evaluation on people (rows) held out at random, at no extra cost")
        _print_lines(shown.private_evaluation)
        for figure in shown.expected:
            if figure.value is None:
                print(f"  {figure.name}: not available: {figure.reason}")
            elif figure.name in ("one_way_tv", "cmi"):
                about = f" ({figure.about})" if figure.about else ""
                print(f"  {figure.name}{about}: at most about {figure.high:.3f} if the true value is 0")
            else:
                print(f"  {figure.name}: about ± {(figure.high or 0) - figure.value:.3f}")
    if shown.asked:
        print(f"\n{'σ (rows)':>10} {'95 % within':>12}  questions and counts, predicted before any row is read")
        for one in shown.asked[:MOST_SHOWN]:
            numbers = f"{one.sigma:>10.1f} {one.within:>12.1f}" if one.sigma is not None else f"{'':>23}"
            print(f"{numbers}  {one.name} ({one.how})")
        if len(shown.asked) > MOST_SHOWN:
            print(f"{'':>23}  … {len(shown.asked) - MOST_SHOWN:,} more; --json lists all")
    width = f", treewidth {shown.size.treewidth}" if shown.size.treewidth else ""
    print(
        f"model: at most {shown.size.cells:,} cells{width}, {shown.size.bytes / 2**20:.1f} MiB, about "
        f"{max(shown.size.seconds, 0.1):.1f} s in total"
    )
    print(memory_line(shown))
    for analysis in shown.analyses:
        print(f"analysis {planned_sentence(analysis.plan())}")
    if why := unpromised(shown.analyses, shown.budget):
        print(f"analyses: {why}")
    if shown.analyses and shown.analyses_epsilon is not None:
        print(
            "analyses: with these shares of the budget, all desired half-widths together need "
            f"ε = {shown.analyses_epsilon:.3g}"
        )
    if shown.stage:
        print(f"second stage: {shown.stage}")
    for family in shown.families[:MOST_SHOWN]:
        print(f"family {family}")
    if len(shown.families) > MOST_SHOWN:
        print(f"… {len(shown.families) - MOST_SHOWN:,} more families; --json lists all")
    for need in shown.needs:
        print(f"regression {need.sentence}")
    for test in shown.tests:
        print(f"test of the drawing: {predicted(test)}")
    for warning in (*shown.warnings, *([TRUSTED[relation]] if relation in TRUSTED else [])):
        print(f"note: {warning}")


def memory_line(shown: Preview) -> str:
    """Return the sentence about the memory that a release needs."""
    m = shown.memory
    said = f"memory: about {m.total / 2**20:,.0f} MiB at the peak"
    if m.rows is None:
        return f"{said}, without the rows. To include them, add --rows N with your estimate"
    parts = ("process", "input", "model", "output")
    return f"{said}: " + ", ".join(f"{part} {getattr(m, part) / 2**20:,.0f}" for part in parts)


def _print_verdict(shown: Preview) -> None:
    """Print the verdict on this plan, or the facts that it still needs."""
    found = shown.verdict
    if found is None:
        if shown.lacks_rows and shown.project.plan.neighbors == "add-remove":
            print(
                "verdict: the number of rows is confidential. Add --rows N with your estimate to see what noise hides."
            )
        elif shown.lacks_rows:
            print("verdict: the number of rows is not given. Add --rows N to see what noise hides.")
        elif shown.unrated:
            print(f"verdict: {shown.unrated}")
        return
    print(f"\nverdict: {found.headline}")
    for sentence in found.sentences:
        print(f"  {sentence}")
    near = [e for e in found.grid if e.epsilon in (0.1, 0.2, 0.501, 1.0, 1.995, 5.012, 10.0)]
    said = ", ".join(f"{round(e.epsilon, 1):g} {e.rating(found.purpose)}" for e in near)
    print(f"  by ε: {said}")


def _print_lines(lines: Iterable[Line]) -> None:
    """Merge lines with the same text into one line, with the range of their figures and the sum of their ρ, and print
    it.
    """
    alike: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        alike.setdefault((line.pool, line.what), []).append(line)
    for (pool, what), run in alike.items():
        cells = _range((x.cells for x in run if x.cells), "{:,}")
        sigma = _range((x.sigma for x in run), "{:.1f}")
        error = _range((100 * x.error for x in run if x.error is not None), "{:.2g}%")
        times = f" ({len(run)} times)" if len(run) > 1 else ""
        rho = float(round_up(total_up(x.rho for x in run)))
        print(f"{pool:<12} {cells:>9} {rho:>11.3e} {sigma:>13} {error:>13}  {what}{times}")


def _range(values: Iterable[float], form: str) -> str:
    """Format the range of the values: a single value if both ends print the same, an empty string without values."""
    ordered = sorted(values)
    return "–".join(dict.fromkeys(form.format(v) for v in (ordered[:1] + ordered[-1:])))
