"""Interface of a method without a privacy guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import read_options
from espalier.core.project.plan import Plan


@dataclass(frozen=True)
class Rows:
    """Rows as ``codes``; ``numbers`` contains the values of numeric columns."""

    codes: Mapping[str, NDArray[Any]]
    numbers: Mapping[str, NDArray[np.float64]]


class Blur(Protocol):
    """Algorithm that reads the real rows and returns blurred rows."""

    def __call__(self, project: Project, real: Rows, report: Report = silent) -> tuple[Rows, Mapping[str, Any]]:
        """Return the blurred rows in random order, and their disclosure for release.json."""
        ...


@dataclass(frozen=True)
class Blurring:
    """One method without a privacy guarantee.

    ``options`` is the dataclass of its plan keys. ``check`` raises :class:`ProjectError` for a project that the method
    does not support, or whose plan promises privacy.
    """

    name: str
    title: str
    summary: str
    when: str
    options: type[Any]
    check: Callable[[Project], None]
    blur: Blur

    def read(self, plan: Plan) -> Any:
        """Return the plan's options for this method; raises :class:`ProjectError` for an invalid value."""
        return read_options(self.options, plan.options)
