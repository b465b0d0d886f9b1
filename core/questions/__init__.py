"""Questions and counts over whole rows: hidden columns, sensitivity, fit, certificate, multiplicative weights."""

from core.questions.fitting import Fit, fit
from core.questions.joint import fit_together
from core.questions.lowering import Block, Lowered, lower
from core.questions.model import VisibleModel
from core.questions.network import Network
from core.questions.prediction import check_cost, direct_errors, direct_is_better, marginal_errors, predict_cost
from core.questions.projection import Certificate, Projection, lower_bound, project
from core.questions.sensitivity import Sensitivity, sensitivity
from core.questions.values import Count, Question
from core.questions.weights import Course, Rule, multiplicative_weights, public_rule

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
