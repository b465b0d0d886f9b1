"""Independent columns: one-way counts only. The floor every other method must beat."""

from __future__ import annotations

from core.methods.base import Measured, Report, one_ways, silent
from core.methods.frame import Frame
from core.methods.select.allocation import Purse
from core.privacy.curator import Curator
from core.project.file import Project


def independent(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Measured:  # noqa: ARG001
    """The whole budget on one-way counts. Any separation holds, since nothing is linked to anything."""
    report(0.0, "Counting every column")
    purse = Purse.of(project.plan, curator.budget, curator.sizes)
    return Measured(tuple(curator.measure(purse.split(1.0, one_ways(curator)), "one-way")))
