"""Rules for combining copies, checked by hand, by simulation, and against the snippets."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest

from espalier.core.analysis import combine as module
from espalier.core.analysis.combine import combine


def test_between_alone_by_hand():
    got = combine([1.0, 2.0, 3.0])
    assert got.estimate == 2.0
    assert got.variance == pytest.approx(4 / 3)
    assert got.df == 2
    assert got.high - got.low == pytest.approx(2 * 4.302652730 * math.sqrt(4 / 3))
    assert got.rule == "between"


def test_with_variances_by_hand():
    got = combine([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])
    assert got.variance == pytest.approx(4 / 3 - 0.5)
    assert got.df == 2
    assert combine([1.0, 1.1, 0.9], [1.0, 1.0, 1.0]).variance == 1.0


@pytest.mark.parametrize(
    ("estimates", "variances", "says"),
    [
        ([1.0], None, "at least two copies, not 1"),
        ([1.0, math.nan], None, "not a finite number"),
        ([1.0, 2.0], [1.0], "one finite variance"),
        ([1.0, 2.0], [1.0, -1.0], "one finite variance"),
    ],
)
def test_what_cannot_be_combined(estimates, variances, says):
    with pytest.raises(ValueError, match=says):
        combine(estimates, variances)


@pytest.mark.parametrize(("noise", "evenly"), [(0.0, True), (1.0, True), (2.0, True), (0.0, False), (1.0, False)])
def test_intervals_cover_a_mean(noise, evenly):
    """A mean with sampling variance 1, released with ``noise``. Copies have variance 1 + noise², or 2 + noise² if rows
    are drawn one by one."""
    rng = np.random.default_rng(5)
    runs, m, hit = 4000, 20, 0
    for _ in range(runs):
        released = rng.normal(0, math.sqrt(1 + noise**2))
        values = released + rng.normal(0, math.sqrt(1 + noise**2 + (not evenly)), m)
        got = combine(values.tolist(), None if evenly else [1.0] * m)
        hit += got.low <= 0 <= got.high
    assert 0.93 <= hit / runs <= 0.98


def test_the_python_snippet_gives_the_same_figures(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(2)
    (tmp_path / "copies").mkdir()
    shares = []
    for i in range(1, 6):
        yes = rng.random(500) < 0.3
        text = "outcome\n" + "".join("yes\n" if y else "no\n" for y in yes)
        (tmp_path / "copies" / f"{i:02}.csv.gz").write_bytes(gzip.compress(text.encode()))
        shares.append(float(yes.mean()))
    monkeypatch.chdir(tmp_path)
    exec(module.PYTHON, {})
    said = [float(x) for x in capsys.readouterr().out.split()]
    got = combine(shares)
    assert said == pytest.approx([got.estimate, got.low, got.high])
    for phrase in ("qt(0.975, m - 1)", "(1 + 1 / m) * var(q)", "never stack"):
        assert phrase in module.R


def test_a_notebook_finds_it_by_its_name():
    from espalier.core import combine as found

    assert found([1.0, 2.0, 3.0]).copies == 3
