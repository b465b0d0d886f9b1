"""The published methods: what each asks of a curator, and how its answers become a model."""

from core.methods.base import Fitted, Method
from core.methods.frame import Frame, Task
from core.methods.registry import DEFAULT, METHODS, check_options, frame_of, method_of

__all__ = ["DEFAULT", "METHODS", "Fitted", "Frame", "Method", "Task", "check_options", "frame_of", "method_of"]
