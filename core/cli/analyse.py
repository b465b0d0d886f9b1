"""``espalier copies`` and ``espalier analyse``: copies of a release, and figures with valid intervals."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espalier.core.cli.number_types import whole
from espalier.core.cli.terminal import bar
from espalier.core.errors import ProjectError

if TYPE_CHECKING:
    from espalier.core.analysis.quantiles import Quantile
    from espalier.core.analysis.transitions import IntervalShare
    from espalier.core.project.linked import Linked
    from espalier.core.project.schema import Schema


def add(commands: Any) -> None:
    """Declare the commands."""
    copies = commands.add_parser("copies", help="make copies of a release for intervals; uses no budget")
    copies.add_argument("folder", type=Path, help="the folder that `release` wrote (its --out)")
    copies.add_argument(
        "--number", type=whole, default=20, metavar="N", help="number of copies, 1 to 400 (default: 20)"
    )
    copies.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="a new folder; the copies are written to its subfolder copies/ (default: FOLDER-copies)",
    )
    copies.add_argument("--quiet", action="store_true", help="do not show progress on stderr")
    copies.set_defaults(run=_copies)

    analyse = commands.add_parser(
        "analyse",
        help="estimate a figure from a release, with its interval; safe to share",
        description="Estimate a figure from a release, with its interval. The result is safe to share. Rows with "
        "a missing cell in one of the figure's columns are left out, as in R's lm and glm. COLUMN= "
        "asks about the missing cells themselves.",
    )
    analyse.add_argument("folder", type=Path, help="the folder that `release` wrote (its --out)")
    asked = analyse.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--proportion",
        action="append",
        metavar="COLUMN=VALUE",
        help="the share of rows with this value; COLUMN= counts its missing cells",
    )
    asked.add_argument(
        "--mean",
        action="append",
        metavar="COLUMN",
        help="the mean of a numeric column; the interval is valid for any positions of numbers inside their bins",
    )
    asked.add_argument(
        "--quantile",
        action="append",
        nargs=2,
        metavar=("COLUMN", "P"),
        help="a quantile of a numeric column, such as age 0.5; its interval ends at bin edges",
    )
    asked.add_argument(
        "--mean-difference",
        action="append",
        nargs=2,
        metavar=("COLUMN", "GROUP"),
        help="the difference between the means of two groups",
    )
    asked.add_argument(
        "--difference",
        action="append",
        nargs=2,
        metavar=("EVENT", "GROUP"),
        help="the difference between the event's shares in two groups",
    )
    asked.add_argument(
        "--odds-ratio",
        action="append",
        nargs=2,
        metavar=("EVENT", "GROUP"),
        help="the odds ratio of two groups. A GROUP is COLUMN or COLUMN=VALUE[:OTHER]",
    )
    asked.add_argument("--outcome", metavar="COLUMN[=VALUE]", help="the outcome of a regression on --predictors")
    asked.add_argument(
        "--regression", metavar="NAME", help="a regression that the plan bought, by its name or its outcome"
    )
    asked.add_argument(
        "--survival", metavar="NAME", help="a survival table that the plan bought, by its name or its event"
    )
    asked.add_argument(
        "--effect",
        nargs=2,
        metavar=("TREATMENT", "OUTCOME"),
        help="the effect of a treatment, adjusted as the drawing requires",
    )
    asked.add_argument(
        "--transition",
        nargs=3,
        metavar=("COLUMN", "BEFORE", "AFTER"),
        help="linked tables: the share of AFTER at the next visit after BEFORE",
    )
    asked.add_argument(
        "--at-visit",
        nargs=3,
        metavar=("COLUMN", "VALUE", "T"),
        help="linked tables: the share of VALUE at the T-th visit, among people with that visit",
    )
    asked.add_argument(
        "--returned",
        nargs=3,
        metavar=("COLUMN", "VALUE", "DAYS"),
        help="linked tables: the share of visits with VALUE after which the person returned within DAYS days",
    )
    analyse.add_argument(
        "--adjust", metavar="A,B", help="columns that --effect adjusts for (default: the cheapest valid set)"
    )
    analyse.add_argument(
        "--among",
        action="append",
        metavar="COLUMN=VALUE",
        help="restrict the question to these rows; rows must meet all conditions",
    )
    analyse.add_argument(
        "--level", type=float, default=0.95, metavar="L", help="level of the intervals (default: 0.95)"
    )
    analyse.add_argument(
        "--joint",
        choices=["bonferroni", "max-t"],
        help="make the intervals of all figures hold simultaneously; repeat --proportion, … for several figures. "
        "max-t gives shorter intervals and needs --number 100 or more",
    )
    analyse.add_argument("--predictors", metavar="A,B", help="predictors of the regression, separated by commas")
    analyse.add_argument(
        "--number", type=whole, default=20, metavar="N", help="number of copies, if the release has none (default: 20)"
    )
    analyse.add_argument("--json", action="store_true", help="print the figures as JSON")
    analyse.set_defaults(run=_analyse)


def _copies(opt: argparse.Namespace) -> None:
    import numpy as np

    from espalier.core.analysis.study import Study
    from espalier.core.project.plan import IN_MEMORY
    from espalier.core.release.files import check_folder, copy_files, save_files

    study = Study.of_folder(opt.folder)
    if study.rows > IN_MEMORY:
        raise ProjectError(f"copies are drawn in memory, with at most {IN_MEMORY:,} rows each; this release has more")
    out = opt.out or opt.folder.resolve().with_name(f"{opt.folder.resolve().name}-copies")
    check_folder(out)
    with bar(opt.quiet) as report:
        made = study.more(opt.number, np.random.default_rng(), report)
        save_files(dict(copy_files(study.project, made)), out)
    if not opt.quiet:
        print(
            f"{out / 'copies'}: {opt.number} copies. Estimate in each copy separately, then combine the estimates. "
            "Never stack the copies into one table.",
            file=sys.stderr,
        )


def _analyse(opt: argparse.Namespace) -> None:
    from espalier.core.analysis import answer_text, figure_from_text
    from espalier.core.analysis.missing_text import missing_sentences
    from espalier.core.analysis.study import Study
    from espalier.core.statement.check import checked_folder

    if (opt.outcome is None) != (opt.predictors is None):
        raise ProjectError("a regression needs both --outcome and --predictors")
    if opt.among and (opt.outcome or opt.effect or opt.regression or opt.survival):
        raise ProjectError("--among works only with proportions, means, quantiles, differences and odds ratios")
    if opt.regression is not None:
        _regression(opt)
        return
    if opt.survival is not None:
        _survival(opt)
        return
    if opt.transition is not None:
        _transition(opt)
        return
    if opt.at_visit is not None:
        _at_visit(opt)
        return
    if opt.returned is not None:
        _returned(opt)
        return
    study = Study.of_folder(opt.folder)
    print(checked_folder(opt.folder)[1], file=sys.stderr)
    schema = study.project.schema
    read = figure_from_text
    simple: list[tuple[Any, Any]] = [
        (read.proportion, opt.proportion),
        (read.mean, opt.mean),
        (_quantile, opt.quantile),
        (read.mean_difference, opt.mean_difference),
        (read.difference, opt.difference),
        (read.odds_ratio, opt.odds_ratio),
    ]
    figures: list[Any] = [
        make(schema, *([texts] if isinstance(texts, str) else texts), among=opt.among)
        for make, asked in simple
        for texts in asked or ()
    ]
    if opt.effect:
        if not study.project.dag.edges:
            raise ProjectError(
                "this release has no drawing, so no adjustment set for an effect is known; ask for a "
                "--difference, or draw on the Structure page before the next release"
            )
        treatment, outcome = opt.effect
        adjust = _columns(opt.adjust) if opt.adjust else None
        figures = [figure_from_text.effect_by_drawing(study.project, treatment, outcome, adjust, study.rows)]
        print(answer_text.adjusted_for(study.project, figures[0]), file=sys.stderr)
    elif opt.outcome:
        figures = [figure_from_text.regression(schema, opt.outcome, _columns(opt.predictors))]
    if opt.joint == "max-t" and len(study.given) < opt.number:
        study = study.without_copies()
    with bar(opt.json) as report:
        ready = study.about(list(dict.fromkeys(c for f in figures for c in f.columns))).with_copies(opt.number, report)
        if opt.joint:
            every = ready.together(figures, opt.level, opt.joint)
        else:
            every = [ready.ask(figure, opt.level) for figure in figures]
    if opt.json:
        found = [
            {**answer_text.to_json(schema, a), "of": answer_text.asked(schema, figure)}
            for figure, answers in zip(figures, every, strict=True)
            for a in answers
        ]
        print(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False))
        return
    for figure, answers in zip(figures, every, strict=True):
        print(f"Asked: {answer_text.asked(schema, figure)}.")
        for answer in answers:
            print(f"[{answer_text.BADGES[answer.badge.kind]}] {answer_text.sentence(answer)}")
        said, warnings = missing_sentences(schema, answers)
        for line in (*said, *(f"Warning: {warning}" for warning in warnings)):
            print(line)
        if steps := answer_text.remedy(study.project, figure, answers):
            print(steps)
    print("From the release alone: no row of the real table was read, and these figures may be shared.")


def _quantile(schema: Schema, column: str, probability: str, among: Sequence[str] | None) -> Quantile:
    from espalier.core.analysis.figure_from_text import quantile

    try:
        return quantile(schema, column, float(probability), among)
    except ValueError:
        raise ProjectError(f"--quantile needs a number between 0 and 1, not {probability!r}", key="at") from None


def _transition(opt: argparse.Namespace) -> None:
    """Print a transition from one visit to the next, from the counts of the release."""
    from espalier.core.analysis.loading import load_release
    from espalier.core.analysis.transitions import transition

    released = load_release(opt.folder)
    found = transition(released.facts, released.project.schema, *opt.transition)
    _print_share(opt, found, "Each person with more than one kept visit counts once.")


def _at_visit(opt: argparse.Namespace) -> None:
    """Print the share of a value at one visit, from the counts of the release."""
    from espalier.core.analysis.visit_shares import visit_share

    column, value, visit = opt.at_visit
    number = _small(visit, f"--at-visit needs the number of a visit, such as 2, not {visit!r}")
    found = visit_share(*_of_visits(opt, "--at-visit"), column, value, number)
    _print_share(opt, found, f"Among people with visit {found.visit}, each person counts once.")


def _returned(opt: argparse.Namespace) -> None:
    """Print the share of visits with a value after which the person returned in time, from the counts of the
    release.
    """
    from espalier.core.analysis.returns import return_share

    column, value, days = opt.returned
    number = _small(days, f"--returned needs a number of days, such as 30, not {days!r}")
    facts, linked, schema = _of_visits(opt, "--returned")
    found = return_share(facts, linked, schema, column, value, number)
    said = (
        f"Each person has weight 1, spread evenly over their first {linked.keep - 1} visits. A visit without a later "
        "one in the table counts as not followed by a return."
    )
    _print_share(opt, found, said)


def _small(text: str, refusal: str) -> int:
    """Return a whole number below 10,000, or raise :class:`ProjectError` with this ``refusal``."""
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise ProjectError(refusal)
    return int(text)


def _of_visits(opt: argparse.Namespace, option: str) -> tuple[dict[str, Any], Linked, Schema]:
    """Return the facts, the link and the schema of a release of linked tables."""
    from espalier.core.analysis.loading import load_release

    released = load_release(opt.folder)
    linked, schema = released.project.linked, released.project.schema
    if linked is None:
        raise ProjectError(f"{option} is for releases of linked tables, and this release has a single table")
    return released.facts, linked, schema


def _print_share(opt: argparse.Namespace, found: IntervalShare, who: str) -> None:
    """Print a share of linked tables, after the checker's result: as JSON, or with the sentence ``who``, which states
    who is counted.
    """
    from espalier.core.statement.check import checked_folder

    print(checked_folder(opt.folder)[1], file=sys.stderr)
    if opt.json:
        print(json.dumps([found.to_json()], indent=1, ensure_ascii=False, allow_nan=False))
        return
    print(found)
    print(f"{who} This figure comes from the release alone and may be shared.")


def _regression(opt: argparse.Namespace) -> None:
    """Print a bought regression of any release. No copies are needed."""
    from espalier.core.analysis.loading import load_release
    from espalier.core.analysis.regression_text import about, line

    found = load_release(opt.folder).regression(opt.regression)
    _print_bought(opt, found, [about(found), *(f"  {line(part)}" for part in found["coefficients"])])


def _survival(opt: argparse.Namespace) -> None:
    """Print a survival table of any release. No copies are needed."""
    from espalier.core.analysis.loading import load_release
    from espalier.core.analysis.survival_table import about, compared, line

    found = load_release(opt.folder).survival(opt.survival)
    _print_bought(opt, found, [about(found), *(f"  {line(part)}" for part in found["table"]), compared(found)])


def _print_bought(opt: argparse.Namespace, found: dict[str, Any], lines: list[str]) -> None:
    """Print figures that the release bought, after the checker's result: as JSON or as ``lines``."""
    from espalier.core.statement.check import checked_folder

    print(checked_folder(opt.folder)[1], file=sys.stderr)
    if opt.json:
        print(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False))
        return
    print("\n".join(lines))
    print("From the release alone: no row of the real table was read, and these figures may be shared.")


def _columns(text: str) -> list[str]:
    """Split names separated by commas, with or without spaces."""
    return [name.strip() for name in text.split(",")]
