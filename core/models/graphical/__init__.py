"""Inference from noisy marginals to a graphical model, and from the model to marginals and rows. NumPy is the only
dependency."""

from espalier.core.graph.junction_tree import MAX_CELLS, Zeros
from espalier.core.models.graphical.estimation import SMOOTHING, estimate, smoothing_for
from espalier.core.models.graphical.model import FirstFit, FitSummary, GraphicalModel
from espalier.core.models.graphical.refine import refine
from espalier.core.models.graphical.shrinkage import believed
from espalier.core.models.graphical.size import Size, check_size, predict_size
from espalier.core.models.graphical.smoothness import ordered_values

__all__ = [
    "MAX_CELLS",
    "SMOOTHING",
    "FirstFit",
    "FitSummary",
    "GraphicalModel",
    "Size",
    "Zeros",
    "believed",
    "check_size",
    "estimate",
    "ordered_values",
    "predict_size",
    "refine",
    "smoothing_for",
]
