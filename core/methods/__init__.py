"""Published methods. Each queries a curator and turns the answers into a model."""

from espalier.core.methods.base import Fitted, Method
from espalier.core.methods.frame import Frame, Task
from espalier.core.methods.registry import (
    DEFAULT,
    METHODS,
    asks,
    asks_causes_only,
    check_options,
    fit,
    frame_of,
    is_fenced,
    keeps_causes_only,
    may_be_fenced,
    method_of,
    offered,
    options_of,
    planned_effect,
    refuse_unknown_keys,
    unused_options,
)

__all__ = [
    "DEFAULT",
    "METHODS",
    "Fitted",
    "Frame",
    "Method",
    "Task",
    "asks",
    "asks_causes_only",
    "check_options",
    "fit",
    "frame_of",
    "is_fenced",
    "keeps_causes_only",
    "may_be_fenced",
    "method_of",
    "offered",
    "options_of",
    "planned_effect",
    "refuse_unknown_keys",
    "unused_options",
]
