"""PrivCI: the spanning tree is chosen inside the fence outcome ⊥ protected | admissible."""

from __future__ import annotations

from core.methods.base import Measured, Report, measure_tree, silent
from core.methods.frame import Frame
from core.privacy.curator import Curator
from core.project.file import Project


def privci(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Measured:
    """PrivCI, Algorithm 1: ρ' = ρ/3 a stage, exponential mechanism with ε' = √(8ρ'/(d−1)) among feasible edges.

    Corrected where the paper slips: the counts of d columns together have L2 sensitivity √d (times √2 under
    replace-one), not 1; the score's sensitivity is 2 rows under replace-one; and where no column is admissible
    there is no spanning tree, so the result is a forest.
    """
    return measure_tree(curator, project.plan, frame, report)
