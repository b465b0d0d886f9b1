"""`fit` and `release` without the types of their results.

Tests read what the interfaces of models and fits do not declare, such as the cliques of a graphical model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from espalier.core import methods
from espalier.core.release import spend

fit: Callable[..., Any] = methods.fit
release: Callable[..., Any] = spend.release
