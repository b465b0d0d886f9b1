"""MST: a maximum spanning tree of pair counts (McKenna, Miklau & Sheldon 2021). The unconstrained baseline."""

from __future__ import annotations

from core.methods.base import Measured, Report, measure_tree, silent
from core.methods.frame import Frame
from core.privacy.curator import Curator
from core.project.file import Project


def mst(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Measured:
    """Algorithm box of PrivCI §III-C without any separation; ``frame`` is empty."""
    return measure_tree(curator, project.plan, frame, report)
