"""The published methods: what each asks of a curator, and how its answers become a model."""

from core.methods.base import Fitted, Method
from core.methods.frame import Frame, Task
from core.methods.registry import METHODS, check_options, frame_of, method_of

__all__ = ["METHODS", "Fitted", "Frame", "Method", "Task", "check_options", "frame_of", "method_of"]
