"""Questions and counts over whole rows: hidden columns, sensitivity, fit, certificate, multiplicative weights."""

from core.models.questions.fitting import Fit, fit
from core.models.questions.joint import fit_together
from core.models.questions.model import VisibleModel
from core.models.questions.network import Network
from core.models.questions.projection import Certificate, Projection, lower_bound, project
from core.models.questions.weights import Course, Rule, multiplicative_weights, public_rule
from core.privacy.questions.lowering import Block, Lowered, lower
from core.privacy.questions.prediction import check_cost, direct_errors, direct_is_better, marginal_errors, predict_cost
from core.privacy.questions.sensitivity import Sensitivity, sensitivity
from core.project.question_types import Count, Question

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
