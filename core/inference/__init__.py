"""Inference: from noisy marginals to a graphical model, and from the model to marginals and rows. NumPy only."""

from core.inference.estimation import SMOOTHING, estimate
from core.inference.model import FitSummary, GraphicalModel
from core.inference.problem import Zeros
from core.inference.refine import refine
from core.inference.size import MAX_CELLS, Size, check_size, predict_size

__all__ = [
    "MAX_CELLS",
    "SMOOTHING",
    "FitSummary",
    "GraphicalModel",
    "Size",
    "Zeros",
    "check_size",
    "estimate",
    "predict_size",
    "refine",
]
