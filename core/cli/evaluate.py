"""``espalier evaluate``: compare a release with the real table. Confidential."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.cli import ledger, linked
from espalier.core.cli.release import one_table
from espalier.core.cli.terminal import bar
from espalier.core.errors import ProjectError, TableError
from espalier.core.progress import part

if TYPE_CHECKING:
    from espalier.core.analysis.loading import Released
    from espalier.core.project.file import Project
    from espalier.core.tables.source import Source
    from espalier.core.tables.table import Table


def add(commands: Any) -> None:
    """Declare the command."""
    evaluate = commands.add_parser("evaluate", help="compare a release with the real table; confidential")
    evaluate.add_argument("folder", type=Path, help="the folder that `release` wrote (its --out)")
    evaluate.add_argument(
        "--data", required=True, nargs="+", metavar="TABLE", help="the private table, given as for `release`"
    )
    evaluate.add_argument("--relation", metavar="NAME", help="the name of the table in the engine that --data names")
    evaluate.add_argument(
        "--holdout", type=Path, metavar="TABLE", help="a file of rows that were not used for the release"
    )
    evaluate.add_argument(
        "--classifiers",
        action="store_true",
        help="also train five classifiers for each of up to 20 target columns; takes a minute",
    )
    evaluate.add_argument(
        "--price", metavar="COLUMN", help="the column of prices; the price elasticities of sales are then compared"
    )
    evaluate.add_argument(
        "--sales", metavar="COLUMN", help="the column of amounts sold at these prices (default: the plan's target)"
    )
    evaluate.add_argument(
        "--per", metavar="COLUMN", help="compute one elasticity for each value of this column, such as each brand"
    )
    evaluate.add_argument(
        "--public",
        metavar="FILE",
        help="a public table with the same columns, to measure how much the synthetic rows add to it (ΔMSE)",
    )
    evaluate.add_argument("--json", action="store_true", help="print all figures as JSON")
    ledger.add_options(evaluate)
    evaluate.add_argument(
        "--by", default="", metavar="WHO", help="name of the viewer (default: the user of this machine)"
    )
    evaluate.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Compare a release with the real table, and print the figures, which are confidential."""
    from espalier.core.analysis.loading import load_release
    from espalier.core.evaluation import evaluate
    from espalier.core.tables.frames import as_table, opened, read_data, relation_of

    released = load_release(opt.folder)
    if released.project.linked is not None:
        linked.evaluate(opt, released)
        return
    schema = released.project.schema
    check_markets(opt, released.project)
    holdout = as_table(read_data(opt.holdout), schema) if opt.holdout else None
    public = as_table(read_data(opt.public), schema) if opt.public else None
    read = read_data(one_table(opt), opt.relation)
    person = released.project.plan.person
    if relation_of(read) is not None:
        _need_no_rows(opt)
        person = None  # the comparison needs every row
    with bar(opt.json) as progress, opened(read, schema, person, report=part(progress, 0.0, 0.2)) as real:
        tables = [table for table in (real, holdout, public) if table is not None]  # it may be public in name only
        ledger.record_diagnostics(opt, released.facts, [table.digest for table in tables])
        rest = part(progress, 0.2, 1.0)
        result = evaluate(released.project, real, released.table, model=released.model, holdout=holdout, report=rest)
    cost = _fence_cost(released, real, holdout)
    found = {**result.to_json(), **cost, **markets(opt, released.project, (real, released.table, public))}
    if not released.facts.get("private", True):
        found = {"private": False, "warning": released.facts["warning"], **found}
        print(f"warning: {found['warning']}", file=sys.stderr)
    if opt.classifiers:
        assert real.in_memory is not None  # otherwise, `_need_no_rows` would have refused
        found["many_targets"] = classified(opt, released.table, real.in_memory, holdout)
    if opt.json:
        print(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(summary(found)))


def _need_no_rows(opt: argparse.Namespace) -> None:
    """Raise :class:`TableError` for options that a table read in place does not support."""
    for option, given in (("--classifiers", opt.classifiers), ("--price", opt.price is not None)):
        if given:
            raise TableError(f"{option} needs the rows in memory, but this table is read in place: omit the option")


def _fence_cost(released: Released, real: Source, holdout: Table | None) -> dict[str, Any]:
    from espalier.core.compare.fence_cost import cost_or_reason
    from espalier.core.graph.separations import clique_edges

    return cost_or_reason(released.project, real, released.table, clique_edges(released.cliques), holdout=holdout)


def check_markets(opt: argparse.Namespace, project: Project) -> None:
    """Refuse wrong columns before any row is read. The sales column is the target unless the command names another."""
    from espalier.core.evaluation.marketing import check_prices, check_target, holds_amounts

    if opt.price is None and (opt.sales or opt.per):
        raise ProjectError("--sales and --per need --price, the column of prices", key="price")
    target = project.plan.target
    if opt.price is not None and not opt.sales and (target is None or not holds_amounts(project.schema[target])):
        why = "the plan has no target" if target is None else f"the plan's target {target!r} is not a number"
        raise ProjectError(f"--price needs --sales COLUMN, the amounts sold at that price: {why}", key="sales")
    opt.sales = opt.sales or target or ""
    if opt.price is not None:
        check_prices(project.schema, opt.price, opt.sales, opt.per)
    if opt.public:
        check_target(project.schema, target)


def markets(opt: argparse.Namespace, project: Project, tables: tuple[Source, Table, Table | None]) -> dict[str, Any]:
    """Return price elasticities and the gain for a public table, if requested."""
    from espalier.core.evaluation.marketing import gain_of, prices_of

    (real, synthetic, public), found = tables, {}
    if opt.price is not None:
        assert real.in_memory is not None  # otherwise, `_need_no_rows` would have refused
        found["prices"] = prices_of(real.in_memory, synthetic, opt.price, opt.sales, opt.per)
    if public is not None:
        found["public"] = gain_of(project.schema, project.plan.target, synthetic, public)
    return found


def classified(opt: argparse.Namespace, synthetic: Table, real: Table, holdout: Table | None) -> dict[str, Any]:
    """Return the figures of the classifiers for many targets."""
    import numpy as np

    from espalier.core.evaluation.downstream import many_targets

    with bar(opt.json) as progress:
        return many_targets(real, synthetic, holdout, np.random.default_rng(0), report=progress).to_json()


def summary(found: dict[str, Any]) -> list[str]:
    """Return the main figures as lines for a terminal. They are confidential: they were computed on real rows."""
    tstr, looks, fair = found["tstr"], found["fidelity"], found["fairness"]
    lines = ["CONFIDENTIAL: computed on real rows. Do not share."]
    if warning := found.get("warning"):
        lines.append(
            f"{warning}. These rows are close to the real ones, but closeness alone does not make a good release."
        )
    lines.append("")
    if tstr.get("auc_synthetic") is not None:
        lines.append(
            f"Predicting {tstr['target']}, trained on synthetic rows, tested on real ones: "
            f"AUC {tstr['auc_synthetic']:.3f} (trained on real rows: {tstr['auc_real']:.3f})"
        )
    lines.append(f"Columns differ by {100 * looks['one_way_tv']:.1f} % of rows on average (total variation)")
    if looks.get("two_way_tv") is not None:
        lines.append(f"Pairs of columns differ by {100 * looks['two_way_tv']:.1f} % of rows on average")
    if (numbers := found.get("numbers")) is not None:
        far = max((c["relative"] for c in numbers["columns"]), default=0.0)
        lines.append(f"Numeric columns differ by at most {100 * far:.1f} % of their range (Wasserstein distance)")
        if "r2_synthetic" in numbers:
            lines.append(
                f"Predicting {numbers['target']} by a regression trained on synthetic rows: "
                f"R² {numbers['r2_synthetic']:.3f}, mean absolute error {numbers['mae_synthetic']:.4g}"
            )
    lines += _markets(found)
    if fair is not None:
        for key, what in (
            ("demographic_parity_difference", "Demographic parity difference"),
            ("equalized_odds_difference", "Equalized odds difference"),
        ):
            if fair.get(key) is not None:
                lines.append(f"{what}: {fair[key]:.3f}")
    if asked := found.get("asked"):
        lines += [f"Count {c['name']}: {100 * c['tv']:.1f} % of rows differ (total variation)" for c in asked["counts"]]
        if asked["questions"]:
            worst = max(asked["questions"], key=lambda q: abs(q["real"] - q["synthetic"]))
            lines.append(
                f"Of {len(asked['questions'])} questions, {worst['name']!r} differs most: {worst['real']:,.0f} real "
                f"rows, {worst['synthetic']:,.0f} synthetic rows"
            )
    return [*lines, *_classifiers(found.get("many_targets")), "", "All figures: add --json"]


def _markets(found: dict[str, Any]) -> list[str]:
    """Return price elasticities and ΔMSE as lines, if requested."""
    lines = []
    if prices := found.get("prices"):
        about = f"Price elasticity of {prices['sales']}"
        if prices["mapd"] is None:
            lines.append(f"{about}: too few rows with a price and a sale above 0")
        else:
            lines.append(f"{about}: synthetic rows differ by {100 * prices['mapd']:.1f} % on average (MAPD)")
        for g in prices["groups"]:
            line = f"  {g['group']}: {g['elasticity_synthetic']:.2f} (real rows: {g['elasticity_real']:.2f})"
            if g["profit_ratio"] is not None:
                line += (
                    f"; a price chosen by the synthetic rows earns {100 * g['profit_ratio']:.1f} % of the best profit"
                )
            lines.append(line)
        if prices["left_out"]:
            lines.append(f"  left out because of too few rows: {', '.join(prices['left_out'])}")
    if gain := found.get("public"):
        lines.append(
            f"Added to a public table of {gain['rows']:,} rows, the synthetic rows reduce the error by "
            f"{100 * gain['delta_mse']:.0f} % (ΔMSE)"
        )
    return lines


def _classifiers(found: dict[str, Any] | None) -> list[str]:
    """Return the macro figures of each classifier over all targets; nothing if they were not requested."""
    if not found or not found["macro"]:
        return []
    lines = ["", f"{'over all targets':<18} {'AUC real':>9} {'synthetic':>10} {'F1 real':>9} {'synthetic':>10}"]
    for name, of in {**found["classifiers"], "all": found["macro"]}.items():
        figures = (of["auc_real"], of["auc_synthetic"], of["f1_real"], of["f1_synthetic"])
        lines.append(f"{name:<18} {figures[0]:>9.3f} {figures[1]:>10.3f} {figures[2]:>9.3f} {figures[3]:>10.3f}")
    return lines
