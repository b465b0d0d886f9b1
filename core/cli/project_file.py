"""Loading the project file named in a command."""

from __future__ import annotations

from pathlib import Path

from espalier.core.errors import ProjectError
from espalier.core.methods import check_options
from espalier.core.project.file import Project


def load(path: Path) -> Project:
    """Return the project after checking the keys of its plan; raise an :class:`EspalierError` that names the file."""
    project = Project.load(path)
    try:
        check_options(project.plan)
    except ProjectError as error:
        raise ProjectError(f"{path}: {error}", **error.data) from None
    return project
