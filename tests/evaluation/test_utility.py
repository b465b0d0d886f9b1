"""Train on synthetic, test on real, compared with pairs counted one by one and scikit-learn on a one-hot matrix."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from espalier.core.evaluation import classifier
from espalier.core.evaluation.classifier import auc, cross_scores, fit
from espalier.core.evaluation.utility import HOLDOUT, ITSELF, predict, utility_of
from tests.support.tables import project_of, quiet, random_table, schema_of, table_of


def dense(table, features):
    return np.concatenate([np.eye(table.schema[f].size)[table.codes[f]] for f in features], axis=1)


def probabilities(scores):
    weight = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_scores_are_those_of_a_dense_logistic_regression(size):
    schema = schema_of(a=3, y=size, b=4, c=2)
    table, other = random_table(schema, 400, 1), random_table(schema, 300, 2)
    model = LogisticRegression(tol=1e-10, max_iter=5000).fit(dense(table, "abc"), table.codes["y"])
    expected = model.predict_proba(dense(other, "abc"))
    assert probabilities(fit(table, "y").scores(other)) == pytest.approx(expected, abs=2e-3)


def test_a_value_that_no_training_row_has_is_never_predicted():
    schema = schema_of(a=3, y=4)
    table = table_of(schema, a=[0, 1, 2, 0, 1, 2], y=[0, 2, 2, 0, 2, 0])
    scores = fit(table, "y").scores(table)
    assert np.isneginf(scores[:, [1, 3]]).all()
    assert np.isfinite(scores[:, [0, 2]]).all()
    assert probabilities(scores)[:, [0, 2]].sum(axis=1) == pytest.approx(1)


def pairs_won(score, positive):
    """AUC by its definition: the chance that a positive row beats a negative one; ties count half."""
    won = [(p > n) + (p == n) / 2 for p in score[positive] for n in score[~positive]]
    return sum(won) / len(won)


def test_auc_of_two_values_counts_pairs():
    schema = schema_of(a=4, b=3, y=2)
    table = random_table(schema, 120, 3)
    scores, truth = fit(table, "y").scores(table), table.codes["y"]
    assert auc(scores, truth) == pytest.approx(pairs_won((scores[:, 1] - scores[:, 0]).round(9), truth == 1))


def test_auc_by_hand():
    scores = np.log([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]])
    assert auc(scores, np.array([0, 0, 1, 1])) == 0.75


def test_auc_of_more_values_is_the_mean_of_one_against_the_rest():
    schema = schema_of(a=4, b=3, y=4)
    table = random_table(schema, 500, 4)
    scores, truth = fit(table, "y").scores(table), table.codes["y"]
    expected = roc_auc_score(truth, probabilities(scores), multi_class="ovr", average="macro")
    assert auc(scores, truth) == pytest.approx(expected, abs=1e-9)


def test_a_value_the_classifier_never_saw_counts_one_half():
    scores = np.array([[0.0, -5.0, -np.inf], [-5.0, 0.0, -np.inf], [0.0, -4.0, -np.inf]])
    assert auc(scores, np.array([0, 1, 2])) == pytest.approx((1 + 1 + 0.5) / 3)


def test_auc_tells_rows_apart_whose_probability_rounds_to_one():
    scores = np.array([[0.0, 60.0], [0.0, 50.0], [0.0, 45.0]])
    assert auc(scores, np.array([1, 1, 0])) == 1.0
    wide = np.column_stack([scores, np.full(3, -80.0)])
    assert auc(wide, np.array([1, 1, 0])) == 1.0


@pytest.mark.parametrize("rows", [2, 3, 7, 60])
def test_every_row_is_scored_by_a_classifier_that_did_not_train_on_it(rows):
    """A classifier can memorise rows by an identifying column, but out of fold it has not seen the row."""
    schema = schema_of(name=rows, y=2)
    truth = np.arange(rows) % 2
    table = table_of(schema, name=np.arange(rows), y=truth)
    assert auc(fit(table, "y").scores(table), truth) == 1.0
    assert auc(cross_scores(table, "y", quiet), truth) <= 0.5


def test_folds_are_stratified_and_fixed():
    schema = schema_of(a=2, y=2)
    table = table_of(schema, a=[0, 1] * 50, y=[1] * 5 + [0] * 95)
    scores = cross_scores(table, "y", quiet)
    assert np.isfinite(scores).all()  # one of the five rare rows in each fold, so each fit saw the other four
    assert (scores == cross_scores(table, "y", quiet)).all()


def test_a_long_table_trains_on_a_part_of_its_rows(monkeypatch):
    monkeypatch.setattr(classifier, "MAX_ENTRIES", 200)
    schema = schema_of(a=3, b=3, y=2)
    table = random_table(schema, 1000, 5)
    assert fit(table, "y").rows == 100
    monkeypatch.setattr("espalier.core.evaluation.utility.MAX_ENTRIES", 200)
    assert "sampled for training" in judge(project_of(schema, "y"), table, table).note


def judge(project, real, synthetic, holdout=None):
    return utility_of(predict(project, real, synthetic, holdout, quiet))


def test_a_link_that_the_synthetic_table_turned_round_scores_below_one_half():
    schema = schema_of(a=2, y=2)
    real = table_of(schema, a=[0, 1] * 20, y=[0, 1] * 20)
    turned = table_of(schema, a=[0, 1] * 20, y=[1, 0] * 20)
    result = judge(project_of(schema, "y"), real, turned)
    assert (result.auc_synthetic, result.auc_real) == (0.0, 1.0)
    assert (result.accuracy_synthetic, result.accuracy_real, result.accuracy_baseline) == (0.0, 1.0, 0.5)
    assert result.tested_on == ITSELF
    assert "did not train on it" in result.note
    assert result.looked_at_real_data


def test_both_are_tested_on_the_holdout_where_there_is_one():
    schema = schema_of(a=2, y=2)
    real = table_of(schema, a=[0, 1, 1] * 20, y=[0, 1, 1] * 20)
    holdout = table_of(schema, a=[0, 0, 1, 1, 1], y=[0, 1, 1, 1, 0])
    result = judge(project_of(schema, "y"), real, real, holdout)
    assert (result.tested_on, result.tested_rows) == (HOLDOUT, 5)
    assert result.auc_synthetic == result.auc_real == pytest.approx(3.5 / 6)
    assert result.accuracy_real == 0.6
    assert result.accuracy_baseline == 0.6  # the most common real value, v1, is in 3 of the 5 rows


def test_the_target_is_the_plans_else_the_first_outcome_column():
    schema = schema_of(a=2, y=2, z=2)
    table = random_table(schema, 50, 6)
    assert judge(project_of(schema, "z", outcome=("y",)), table, table).target == "z"
    assert judge(project_of(schema, outcome=("y", "a")), table, table).target == "y"


def test_no_target_has_a_reason():
    schema = schema_of(a=2, b=2)
    table = random_table(schema, 20, 7)
    shown = judge(project_of(schema), table, table).to_json()
    for name in ("auc_synthetic", "auc_real", "accuracy_synthetic", "accuracy_real", "accuracy_baseline"):
        assert shown[name] is None
        assert "neither a target nor an outcome" in shown[f"{name}_reason"]


def test_one_value_only_in_the_synthetic_table():
    schema = schema_of(a=2, y=2)
    real, flat = table_of(schema, a=[0, 1] * 9, y=[0, 1] * 9), table_of(schema, a=[0, 1] * 9, y=[1] * 18)
    result = judge(project_of(schema, "y"), real, flat)
    assert result.auc_synthetic is None
    assert result.accuracy_synthetic is None
    assert result.reasons["auc_synthetic"].startswith("every synthetic row has y = v1")
    assert result.auc_real == 1.0


def test_one_value_only_in_the_real_table_or_among_the_tested_rows():
    schema = schema_of(a=2, y=2)
    real, flat = table_of(schema, a=[0, 1] * 9, y=[0, 1] * 9), table_of(schema, a=[0, 1] * 9, y=[1] * 18)
    result = judge(project_of(schema, "y"), flat, real)
    assert result.auc_real is None
    assert result.reasons["auc_real"].startswith("every real row has y = v1")
    assert result.auc_synthetic is None
    assert "nothing to distinguish" in result.reasons["auc_synthetic"]
    assert result.accuracy_synthetic == 0.5
    tested = judge(project_of(schema, "y"), real, real, flat)
    assert tested.auc_real is None
    assert tested.accuracy_real == 0.5


def test_a_single_column_has_nothing_to_predict_from():
    schema = schema_of(y=2)
    table = table_of(schema, y=[0, 1, 1])
    assert "'y' is the only column" in judge(project_of(schema, "y"), table, table).reasons["auc_real"]
