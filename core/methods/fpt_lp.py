"""First FPT algorithm: answer all questions, then apply the smallest L∞ correction that makes the answers consistent
with some table (Ghazi, Guzmán, Kamath, Knop, Kumar & Manurangsi 2026). It uses linear programming with a max-plus
pricing oracle. The method reproduces the paper's figures and proves that no table agrees better with the answers. The
projection does not improve the answers. In most cases it makes them worse: its maximum error is 1.2 to 1.7 times that
of the plain answers. Nor is it a good source of rows, because a vertex of the program repeats a few hundred rows. The
released rows are therefore drawn from the maximum-entropy fit of the same answers, and the projection is shown next to
each answer for comparison.
"""

from __future__ import annotations

from espalier.core.methods.base import Capabilities, Guidance, Method
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals, one_ways
from espalier.core.methods.question_answers import Asked, ask
from espalier.core.methods.question_links import scopes_of
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project

ONE_WAY = 0.1
"""Share of the budget for one-way counts. Without them, columns in no question would be arbitrary."""


def fpt_lp(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Asked:  # noqa: ARG001
    """Measure one-way counts with a tenth of the budget, and all questions (and counts) directly with the rest."""
    whole = curator.budget
    report(0.0, "Answering the questions")
    answers = ask(curator, project, whole.part(1 - ONE_WAY), direct=True)
    budget = BudgetSplit.of(project.plan, whole, curator.sizes)
    ones = curator.measure(budget.split(ONE_WAY, one_ways(curator)), "one-way")
    return Asked(Marginals.of(curator, ones), answers, tuple(scopes_of(project).values()), projected=True)


FPT_LP = Method(
    name="fpt-lp",
    title="FPT, projection",
    summary="noisy answers to your questions, and the answers of the closest table, with a proof that no table is "
    "closer",
    fit=fpt_lp,
    guidance=Guidance(
        when="Choose it to compare with the paper. For reports, another method with a share for questions is more "
        "accurate and gives better rows.",
    ),
    capabilities=Capabilities(
        questions="alone", constraints=False, accounting=("zcdp", "basic", "pure"), unread=("question_share",)
    ),
)
