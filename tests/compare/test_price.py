"""The price of a fence as a sentence for people who do not read tables."""

from __future__ import annotations

import pytest

from espalier.core.compare.price import price


@pytest.mark.parametrize(
    ("gap", "accuracy", "said"),
    [
        ((0.47, 0.13), (0.86, 0.80), "falls from 47 to 13 points; predictions lose 6 points of accuracy."),
        ((0.10, 0.20), (0.80, 0.81), "rises from 10 to 20 points; predictions gain 1 point of accuracy."),
        ((0.47, 0.13), (0.8601, 0.8602), "falls from 47 to 13 points; predictions lose no accuracy."),
        ((0.131, 0.132), (None, 0.8), "With it, the gap between the groups stays at 13 points."),
    ],
)
def test_the_price_is_one_sentence(gap, accuracy, said):
    assert price(gap, accuracy, "the real rows", "With it").endswith(said)


def test_without_a_gap_there_is_no_price():
    assert price((None, 0.1), (0.8, 0.8), "a", "b") == ""
