"""Models fitted to questions and counts over whole rows, with certificates and multiplicative weights."""

from espalier.core.models.question_fit.fitting import Fit, fit
from espalier.core.models.question_fit.joint import fit_together
from espalier.core.models.question_fit.model import VisibleModel
from espalier.core.models.question_fit.network import Network
from espalier.core.models.question_fit.projection import Certificate, Projection, lower_bound, project
from espalier.core.models.question_fit.weights import Course, Rule, multiplicative_weights, public_rule
from espalier.core.privacy.question_recipes.lowering import Block, Lowered, lower
from espalier.core.privacy.question_recipes.prediction import (
    check_cost,
    direct_errors,
    direct_is_better,
    marginal_errors,
    predict_cost,
)
from espalier.core.privacy.question_recipes.sensitivity import Sensitivity, sensitivity
from espalier.core.project.question_types import Count, Question

__all__ = [
    "Block",
    "Certificate",
    "Count",
    "Course",
    "Fit",
    "Lowered",
    "Network",
    "Projection",
    "Question",
    "Rule",
    "Sensitivity",
    "VisibleModel",
    "check_cost",
    "direct_errors",
    "direct_is_better",
    "fit",
    "fit_together",
    "lower",
    "lower_bound",
    "marginal_errors",
    "multiplicative_weights",
    "predict_cost",
    "project",
    "public_rule",
    "sensitivity",
]
