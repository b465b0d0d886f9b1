"""The published methods: what each asks of a curator, and how its answers become a model."""

from espalier.core.methods.base import Fitted, Method
from espalier.core.methods.frame import Frame, Task
from espalier.core.methods.registry import DEFAULT, METHODS, asks, check_options, fit, frame_of, method_of, need_private

__all__ = [
    "DEFAULT",
    "METHODS",
    "Fitted",
    "Frame",
    "Method",
    "Task",
    "asks",
    "check_options",
    "fit",
    "frame_of",
    "method_of",
    "need_private",
]
