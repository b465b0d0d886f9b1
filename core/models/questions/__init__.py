"""Questions and counts over whole rows: hidden columns, sensitivity, fit, certificate, multiplicative weights."""

from espalier.core.models.questions.fitting import Fit, fit
from espalier.core.models.questions.joint import fit_together
from espalier.core.models.questions.model import VisibleModel
from espalier.core.models.questions.network import Network
from espalier.core.models.questions.projection import Certificate, Projection, lower_bound, project
from espalier.core.models.questions.weights import Course, Rule, multiplicative_weights, public_rule
from espalier.core.privacy.questions.lowering import Block, Lowered, lower
from espalier.core.privacy.questions.prediction import (
    check_cost,
    direct_errors,
    direct_is_better,
    marginal_errors,
    predict_cost,
)
from espalier.core.privacy.questions.sensitivity import Sensitivity, sensitivity
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
