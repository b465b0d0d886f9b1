"""Membership game on a plan: attacks on releases of small tables. Confidential, and never in a report.

Every shadow release is a real release of half of the rows in a pool from the loaded table. None of them leaves the
machine and no ledger records them, so the result is for the curator alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from espalier.core.errors import EspalierError, TableError
from espalier.core.evaluation.membership.attack import (
    BLIND_BELOW,
    Attack,
    AttackResult,
    Classifier,
    ResampledInterval,
    ceiling,
    run,
)
from espalier.core.evaluation.membership.game import (
    TARGETS,
    Codes,
    Game,
    Shadows,
    choose_targets,
    named_targets,
    shadow_releases,
)
from espalier.core.methods import method_of
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.contribution import check_fits, public_rows
from espalier.core.privacy.unit import Unit
from espalier.core.progress import Report, part, silent
from espalier.core.project.file import Project
from espalier.core.project.people import UNASKED
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

MODELS = 96
POOL = 1000
FEWEST = 40
"""Largest and smallest size of the pool, in rows; each table takes half of the pool. A single row has more weight in a
small table, so this game is a harder test of a method than a game on the whole table.
"""

ATTACKS: tuple[Attack, ...] = tuple(attack for attack in get_args(Attack) if attack != "ensemble")
"""Attacks that run by default. The ensemble is left out, because it takes as long as all summaries together."""
WORDS: dict[Attack, str] = {
    "density": "Likelihood ratio of densities near the row (the main attack)",
    "naive": "Summaries of columns (Stadler et al.)",
    "histogram": "Histograms (Stadler et al.)",
    "correlation": "Correlations (Stadler et al.)",
    "ensemble": "All three summaries together (ensemble)",
}


@dataclass(frozen=True)
class Played:
    """Results of the attacks. ``control`` contains the results of the same attacks on the published rows themselves.

    ``rho`` is the budget of each release; ``top`` is the AUC that Gaussian noise of this budget allows in this game.
    All results are computed on real rows.
    """

    method: str
    epsilon: float
    rho: float
    unit: Unit
    rows: int
    models: int
    verdicts: tuple[AttackResult, ...]
    control: tuple[AttackResult, ...]

    @property
    def top(self) -> float:
        """See :func:`espalier.core.evaluation.membership.attack.ceiling`."""
        return ceiling(self.rho, self.unit)

    @property
    def blind(self) -> bool:
        """True if the main attack fails even on published rows."""
        return self.control[0].auc.value < BLIND_BELOW

    @property
    def game(self) -> str:
        """Description of the game."""
        return (
            f"The attacker has {2 * self.rows:,} rows of the table and knows the method and the schema. Each release "
            f"is made from {self.rows:,} of these rows, drawn at random. The attacker must say whether the release was "
            "made with a given row or with another row instead."
        )

    @property
    def verdict(self) -> str:
        """One sentence that compares the success of the main attack with what the budget allows."""
        said = self.verdicts[0].says(self.control[0])
        said = said[:1].upper() + said[1:]
        if self.blind:
            return f"{said}."
        auc = self.verdicts[0].auc
        beside = "above" if auc.low > self.top else "within"
        return f"{said}, {beside} the {self.top:.3f} that the budget allows."

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``attack``."""
        return {
            "private": False,
            "method": self.method,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "rows": self.rows,
            "models": self.models,
            "game": self.game,
            "verdict": self.verdict,
            "blind": self.blind,
            "ceiling": self.top,
            "attacks": {v.attack: _figures(v) for v in self.verdicts},
            "control": {v.attack: _figures(v) for v in self.control},
            "looked_at_real_data": True,
        }


def play(
    project: Project,
    table: Table,
    rng: np.random.Generator,
    *,
    models: int = MODELS,
    targets: int | Sequence[int] = TARGETS,
    attacks: Sequence[Attack] = ATTACKS,
    classifier: Classifier = "forest",
    report: Report = silent,
) -> Played:
    """Release ``models`` small tables under the plan of ``project`` and attack ``targets`` rows.

    ``targets`` is the number of attacked rows, half of them outliers, or the indices of these rows in ``table``.

    Each release spends the ρ that the plan would spend on ``table``. Rows are attacked one by one, so the person column
    is left out, and so is the private evaluation with its held-out rows. The first of ``attacks`` is the main attack,
    and ``classifier`` learns from the summaries. ``rng`` assigns rows to releases and never draws protective noise.
    ``report`` is called for every release; if it raises, the work is cancelled. Raises :class:`EspalierError` if the
    plan cannot be carried out or the result could not be interpreted.
    """
    project.need_unit()
    check_fits(project, table, figures=True)
    if table.rows < FEWEST:
        raise TableError(f"the game needs a table of at least {FEWEST} rows, but this one has {table.rows}")
    if models < 20:
        raise EspalierError(f"{models} models are too few; use at least 20, or 96 to estimate an AUC to within 0.06")
    size = min(POOL, table.rows) // 2 * 2
    named = () if isinstance(targets, int) else tuple(dict.fromkeys(targets))
    count = targets if isinstance(targets, int) else len(named)
    if not 2 <= count <= size:
        raise EspalierError(f"choose 2 to {size:,} different rows to attack, not {count:,}")
    if not all(0 <= row < table.rows for row in named):
        raise EspalierError(
            f"the numbers of the rows to attack must be from 1 to {table.rows:,}, the number of rows in the table"
        )
    others = np.setdiff1d(np.arange(table.rows), named)
    pool = np.concatenate([np.array(named, dtype=np.intp), rng.choice(others, size - len(named), replace=False)])
    plan = project.plan
    delta = Budget.of(plan, public_rows(plan, table.rows)).delta
    alone = project.plan.changed(person=None, rows=None, private_evaluation=0.0, delta=delta)
    small = replace(project, plan=alone, one_row_per_person=UNASKED)  # the game attacks rows, not people
    codes = {name: values[pool] for name, values in table.codes.items()}
    game = Game(codes, project.schema.sizes, len(pool) // 2, models)
    chosen = named_targets(game, range(len(named))) if named else choose_targets(game, count, rng)
    spent: list[float] = []

    def synthesise(rows: Codes, rng: np.random.Generator) -> Codes:  # noqa: ARG001
        made = release(small, Table(project.schema, dict(rows), game.rows), lambda *_: report(*at))
        spent.append(made.budget.rho)
        return made.codes

    at = (0.0, "Shadow models")

    def told(fraction: float, message: str) -> None:
        nonlocal at
        at = (0.6 * fraction, message)
        report(*at)

    shadows = shadow_releases(game, synthesise, rng, told)
    published = Shadows(tuple({n: c[there] for n, c in codes.items()} for there in shadows.inside), shadows.inside)
    found: list[AttackResult] = []
    steps = [(attack, releases) for releases in (shadows, published) for attack in attacks]
    for i, (attack, releases) in enumerate(steps):
        mine = part(report, 0.6 + 0.4 * i / len(steps), 0.6 + 0.4 * (i + 1) / len(steps))
        found.append(run(attack, game, releases, chosen, rng, mine, classifier))
    report(1.0, "All attacks are finished")
    half = len(attacks)
    return Played(
        method_of(plan).title,
        plan.epsilon,
        max(spent),
        Unit(plan.neighbors, plan.rows_per_person),
        game.rows,
        models,
        tuple(found[:half]),
        tuple(found[half:]),
    )


def rows_of(played: Played) -> list[dict[str, Any]]:
    """Return the rows of the displayed table, one for each attack."""
    return [
        {
            "attack": WORDS[v.attack],
            "conclusion": v.concludes(c),
            "AUC": v.auc.value,
            "AUC, low (95 %)": v.auc.low,
            "AUC, high (95 %)": v.auc.high,
            "AUC, random rows": v.random,
            "AUC, outliers": v.outlying,
            "AUC, published rows": c.auc.value,
            "advantage": v.advantage.value,
            "present rows recognised": v.present,
            "absent rows recognised": v.absent,
            "advantage, low (95 %)": v.advantage.low,
            "advantage, high (95 %)": v.advantage.high,
        }
        for v, c in zip(played.verdicts, played.control, strict=True)
    ]


def _figures(verdict: AttackResult) -> dict[str, Any]:
    return {
        "auc": _interval(verdict.auc),
        "advantage": _interval(verdict.advantage),
        "random": verdict.random,
        "outlying": verdict.outlying,
        "by_target": list(verdict.aucs),
    }


def _interval(of: ResampledInterval) -> dict[str, float]:
    return {"value": of.value, "low": of.low, "high": of.high}
