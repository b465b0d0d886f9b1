"""PreFair, greedy: the same tree, but an outcome column attaches to admissible columns only."""

from __future__ import annotations

from core.methods.base import Measured, Report, measure_tree, silent
from core.methods.frame import Frame
from core.privacy.curator import Curator
from core.project.file import Project


def prefair(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Measured:
    """PreFair (Pujol, Gilad & Machanavajjhala 2023) as PrivCI §II-C describes it, as one more frame.

    That an outcome o touches admissible columns only is the separation o | everything else, given admissible. The
    published code filters by removing from the list it walks over and lets forbidden edges through; here the
    frame decides, in the loop all methods share.
    """
    return measure_tree(curator, project.plan, frame, report)
