"""``espalier attack``: play the membership game on a plan. Confidential."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from espalier.core.cli import ledger, project_file
from espalier.core.cli.number_types import whole
from espalier.core.cli.terminal import bar

ATTACKS = ("density", "naive", "histogram", "correlation", "ensemble")
CLASSIFIERS = ("forest", "logistic", "svc", "kernel", "knn")
"""Names of the attacks in `espalier.core.evaluation.membership.attack`, repeated here to keep the command line fast to
start.
"""


def add(commands: Any) -> None:
    """Declare the command."""
    attack = commands.add_parser("attack", help="play the membership game on a plan; confidential, takes minutes")
    attack.add_argument("project", type=Path, help="the project file (JSON), whose plan is attacked")
    attack.add_argument(
        "--data", type=Path, required=True, metavar="TABLE", help="the private table, which must fit into memory"
    )
    attack.add_argument(
        "--models", type=whole, default=96, metavar="N", help="number of releases that the attacker sees (default: 96)"
    )
    attack.add_argument(
        "--targets",
        type=whole,
        default=20,
        metavar="N",
        help="number of rows to attack, half of them outliers (default: 20)",
    )
    attack.add_argument(
        "--rows", type=whole, nargs="+", metavar="N", help="attack these rows of the table instead; the first row is 1"
    )
    attack.add_argument(
        "--attacks",
        nargs="+",
        choices=ATTACKS,
        default=list(ATTACKS[:4]),
        metavar="NAME",
        help=f"attacks to play, the main one first: {', '.join(ATTACKS)} (default: all but ensemble)",
    )
    attack.add_argument(
        "--classifier",
        choices=CLASSIFIERS,
        default=CLASSIFIERS[0],
        help="classifier for the summaries (default: forest)",
    )
    attack.add_argument("--json", action="store_true", help="print all figures as JSON")
    ledger.add_options(attack)
    attack.add_argument(
        "--by", default="", metavar="WHO", help="name of the viewer (default: the user of this machine)"
    )
    attack.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Play the membership game on a plan and print the success of each attack."""
    import numpy as np

    from espalier.core.compare.membership import play
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.table import Table

    project = project_file.load(opt.project)
    project.need_unit()
    table = Table.encode(read_table(opt.data), project.schema, project.plan.person)
    ledger.record_diagnostics(opt, {}, [table.digest])
    with bar(opt.json) as progress:
        targets = [row - 1 for row in opt.rows] if opt.rows else opt.targets
        played = play(
            project,
            table,
            np.random.default_rng(),
            models=opt.models,
            targets=targets,
            attacks=opt.attacks,
            classifier=opt.classifier,
            report=progress,
        )
    if opt.json:
        print(json.dumps(played.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(summary(played)))


def summary(played: Any) -> list[str]:
    """Return the main figures as lines for a terminal. They are confidential: they were computed on real rows."""
    from espalier.core.evaluation.membership.attack import BLIND_BELOW

    lines = ["CONFIDENTIAL: computed on real rows. Do not share.", "", played.game, "", played.verdict, ""]
    lines.append(f"{'attack':<14} {'AUC (95 %)':<24} {'outliers':>8}  published rows")
    for found, control in zip(played.verdicts, played.control, strict=True):
        auc = f"{found.auc.value:.3f} ({found.auc.low:.3f} … {found.auc.high:.3f})"
        outlying = "none" if found.outlying is None else f"{found.outlying:.3f}"
        lines.append(f"{found.attack:<14} {auc:<24} {outlying:>8}  {control.auc.value:.3f}")
    lines += [
        "",
        "published rows: the AUC of the same attack on the rows themselves, as a control. If this is below",
        f"{BLIND_BELOW:g}, the attack is blind and its other figures are meaningless.",
    ]
    return [*lines, "", "All figures: add --json"]
