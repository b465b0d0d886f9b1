"""The privacy audit of buying a schema: quantiles, ranges, bins, categories, hierarchies; and their broken copies.

    python -m tests.audits.audit_schema                every case and every broken copy
    python -m tests.audits.audit_schema --only range   the cases whose names contain this
    python -m tests.audits.audit_schema --runs 500     fewer runs on each table: faster, weaker

As in `tests.audits.audit`: an attacker who knows both tables sees every answer and computes the log-likelihood ratio. A
case that is δ₀-approximate zCDP is compared with the curve of its ρ with δ₀ added to it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from scipy.stats import norm

from espalier.core.privacy import bought_schema, mechanisms, partitions, quantiles
from espalier.core.privacy.accounting import epsilon_of, rho_of
from espalier.core.privacy.journal import Journal
from espalier.core.privacy.quantiles import Choose
from espalier.core.privacy.unit import Unit
from espalier.core.project.public_grid import counts_on
from espalier.core.project.schema import HierarchyToBuy, Schema, to_buy
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable
from tests.audits.audit import CONFIDENCE, DELTA, EPSILON, RELATIONS, Case, breaking, telling_seed
from tests.audits.distinguish import Verdict, audit

TEXTS = {"a text of many": (60, 0.05), "a new text": (0, 0.2)}
"""Cases of categories: number of other rows with the text, and δ₀ of the threshold. For a new text, δ₀ is so large that
any excess shows in a few thousand runs: at ρ = 0.125 a count exactly at the threshold has probability 0.12."""
CERTAIN = 60.0
"""The evidence of an answer that only one table can give."""

Values = NDArray[np.float64]
Buy = Callable[[Values, Choose], object]


@dataclass(frozen=True)
class SlippingCase(Case):
    """A case of δ₀-approximate zCDP."""

    slip: float = 0.0
    """δ₀."""


def quantile_cases(broken: bool) -> Iterator[Case]:
    """Yield edges of two and of eight bins."""
    rho = rho_of(EPSILON, DELTA) * (1 - 1e-9)
    for relation, k in itertools.product(RELATIONS, (1,) if broken else (1, 3)):
        unit = Unit(relation, k)
        for bins in (2, 8):
            one = rho / quantiles.calls_of_edges(bins, unit)
            # one crowd in the middle: no point divides it, so the person decides which side of it is chosen
            grid = np.arange(0.0, max(2 * bins, 10) + 1)
            crowd = np.full(48 * k, grid[len(grid) // 2] - 0.5)
            pair = _pair(unit, crowd, grid[0], grid[-1])
            buy = _buy_edges(grid, bins, unit)
            ways = ["half the noise", "seeded"] if bins == 2 else []
            # under add-remove, one row moves one side by only 1, which is the sensitivity
            ways += ["no sensitivity"] * (bins == 2 and relation == "replace-one")
            for way in ways if broken else [""]:
                yield _case(f"edges of {bins} bins", unit, rho, _choices(pair, buy, one), way)


def category_cases(broken: bool) -> Iterator[Case]:
    """Yield a text that other rows contain too, and one that no other row contains."""
    texts = [(what, *given) for what, given in TEXTS.items()]
    for relation, k, (what, others, slip) in itertools.product(RELATIONS, (1,) if broken else (1, 3), texts):
        # δ₀ is visible if ρ allows little; a count exactly at the threshold is visible if noise is small
        unit, rho = Unit(relation, k), rho_of(EPSILON, DELTA) * (1 - 1e-9) if others else 0.125
        one = {"crowd": 60, "b": others} | ({"a": others + k} if relation == "replace-one" else {"a": others})
        other = {"crowd": 60, "a": others, "b": others + k}
        recipe = partitions.threshold_for(unit, rho, slip)
        run = _texts((one, other), unit, rho, slip)
        if not broken:
            ways = [""]
        elif others:
            ways = ["half the noise"]
        else:
            ways = ["no threshold", *["the threshold counted out"] * (relation == "add-remove")]
        for way in ways:
            made = _case(what, unit, rho, run, way)
            yield SlippingCase(**{**vars(made), "times": 4 if others else 12}, slip=recipe.delta)


def histogram_cases(broken: bool) -> Iterator[Case]:
    """Yield counts of the groups of a hierarchy, level by level; counts between the cuts of a column of numbers; and a
    range.
    """
    rho = rho_of(EPSILON, DELTA) * (1 - 1e-9)
    for relation, k in itertools.product(RELATIONS, (1,) if broken else (1, 3)):
        unit = Unit(relation, k)
        ways = (
            ("a hierarchy", _buy_levels(unit, rho)),
            ("bins of a number", _buy_bins(unit, rho)),
            (
                "a range",
                lambda values, unit=unit: bought_schema._bought_range(
                    counts_on(values, quantiles.range_grid()), unit, rho
                ),
            ),
        )
        for name, buy in ways:
            pair = _pair(unit, np.repeat([1.0, 2.0, 6.0], 20 * k), 0.0, 7.0)
            for way in ("half the noise",) if broken else ("",):
                yield _case(name, unit, rho, _counted(pair, buy), way)


HIERARCHY = {str(i): f"group {i // 2}" for i in range(8)} | {f"group {i}": f"chapter {i // 2}" for i in range(4)}


def _buy_levels(unit: Unit, rho: float) -> Callable[[Values], object]:
    """Every code of the column is distinguished; each level gets a third of ``rho``."""
    column = HierarchyToBuy.of("code", HIERARCHY, 8)

    def buy(values: Values) -> object:
        read = TextColumn(tuple(column.tree.texts), values.astype(np.int64))
        table = Table.encode(TextTable({"code": read}, len(values), "audit"), Schema((column,)))
        return bought_schema._expanded(table, column, unit, [rho / 3] * 3, Journal())

    return buy


def _buy_bins(unit: Unit, rho: float) -> Callable[[Values], object]:
    """Return bins over whole numbers from 0 to 7; the cuts are given, so that all of ``rho`` is for the counts."""
    column = to_buy("number", "numeric", bins=3, range=(0.0, 7.0), integer=True)

    def buy(values: Values) -> object:
        table = Table(Schema((column,)), {"number": np.zeros(len(values))}, len(values), values={"number": values})
        with mock.patch.object(bought_schema, "choose_edges", return_value=(0.0, 2.0, 4.0, 7.0)):
            return bought_schema._bought_bins(table, column, unit, [rho, rho], Journal())

    return buy


def _counted(pair: tuple[Values, Values], buy: Callable[[Values], object]) -> Callable[[int], float]:
    """Buy from one of two columns; the evidence comes from every noisy count."""

    def run(side: int) -> float:
        noisy: list[Values] = []

        def draw(rows: NDArray[np.int64], sigma: float) -> Values:
            noisy.append(mechanisms.add_gaussian(rows, sigma))
            return noisy[-1]

        with mock.patch.object(bought_schema, "add_gaussian", draw):
            buy(pair[side])
        one, other = (_density(values, buy, noisy) for values in pair)
        return one - other

    return run


def _density(values: Values, buy: Callable[[Values], object], noisy: Sequence[Values]) -> float:
    """log density of the noisy counts given ``values``, by repeating the requests with the same answers."""
    answers, found = iter(noisy), 0.0

    def replay(rows: NDArray[np.int64], sigma: float) -> Values:
        nonlocal found
        answer = next(answers)
        found -= float(((answer - rows) ** 2).sum()) / (2 * sigma**2)
        return answer

    with mock.patch.object(bought_schema, "add_gaussian", replay):
        buy(values)
    return found


def schema(broken: bool) -> Iterator[Case]:
    """Yield all cases of this file, for `tests.audits.audit` to list."""
    yield from quantile_cases(broken)
    yield from category_cases(broken)
    yield from histogram_cases(broken)


def _case(name: str, unit: Unit, rho: float, run: Callable[[int], float], way: str) -> Case:
    named = name if unit.rows_per_person == 1 else f"{name}, {unit.rows_per_person} rows a person"
    return Case(named, unit.neighbors, rho, run, way, 8 if way == "half the noise" else 3)


def _pair(unit: Unit, crowd: Values, before: float, after: float) -> tuple[Values, Values]:
    """Return two neighbouring columns: the person's rows are ``before`` (absent under add-remove) or ``after``."""
    k = unit.rows_per_person
    one = np.concatenate([crowd, np.full(k, before)]) if unit.neighbors == "replace-one" else crowd
    return one, np.concatenate([crowd, np.full(k, after)])


def _buy_edges(grid: Values, bins: int, unit: Unit) -> Buy:
    return lambda values, choose: quantiles.choose_edges(counts_on(values, grid), grid, bins, unit, choose, math.inf)


def _choices(pair: tuple[Values, Values], buy: Buy, rho: float) -> Callable[[int], float]:
    """Buy from one of two columns; the evidence comes from every choice, with the scale that its price implies."""

    def run(side: int) -> float:
        chosen: list[int] = []

        def choose(scores: Sequence[int], sensitivity: int) -> int:
            chosen.append(mechanisms.noisy_max(scores, mechanisms.gumbel_scale(sensitivity, rho)))
            return chosen[-1]

        buy(pair[side], choose)
        one, other = (_likelihood(values, buy, chosen, rho) for values in pair)
        return one - other

    return run


def _likelihood(values: Values, buy: Buy, chosen: Sequence[int], rho: float) -> float:
    """Return log P(the choices | values), by repeating the requests with the same answers."""
    answers, found = iter(chosen), 0.0

    def choose(scores: Sequence[int], sensitivity: int) -> int:
        nonlocal found
        answer = next(answers)
        scale = sensitivity / math.sqrt(2 * rho)
        found += float(log_softmax(np.array(scores) / scale)[answer])
        return answer

    buy(values, choose)
    return found


def _texts(
    pair: tuple[Mapping[str, int], Mapping[str, int]], unit: Unit, rho: float, slip: float
) -> Callable[[int], float]:
    """Buy categories from one of two histograms; the evidence comes from every text that passes the threshold or does
    not.
    """

    def run(side: int) -> float:
        recipe = partitions.threshold_for(unit, rho, slip)
        shown = partitions.find_categories(pair[side], recipe, 10).counts
        found = 0.0
        for text in set(pair[0]) | set(pair[1]):
            one, other = (counts.get(text, 0) for counts in pair)
            if one == other:
                continue
            if text in shown:
                if not one or not other:
                    found += CERTAIN if one else -CERTAIN
                else:
                    found += ((shown[text] - other) ** 2 - (shown[text] - one) ** 2) / (2 * recipe.sigma**2)
            else:
                gone = [norm.logcdf((recipe.threshold - n) / recipe.sigma) if n else 0.0 for n in (one, other)]
                found += float(gone[0] - gone[1])
        return found

    return run


@contextmanager
def breaking_schema(way: str, seed: int = 0) -> Iterator[None]:
    """The code with one thing broken on purpose, in the ways of `tests.audits.audit` and of this file."""
    threshold_for = partitions.threshold_for

    def halved(unit: Unit, rho: float, delta: float) -> partitions.Threshold:
        recipe = threshold_for(unit, rho, delta)
        return replace(recipe, sigma=recipe.sigma / 2)

    def open_door(unit: Unit, rho: float, delta: float) -> partitions.Threshold:
        return replace(threshold_for(unit, rho, delta), threshold=1)

    def counted_out(unit: Unit, rho: float, delta: float) -> partitions.Threshold:
        """Return the threshold that OpenDP's own map implies, which leaves out a count exactly at the threshold."""
        recipe = threshold_for(unit, rho, delta)
        return replace(recipe, threshold=recipe.threshold - 1)

    with ExitStack() as stack:
        if way == "half the noise":
            scale = mechanisms.gaussian_scale
            stack.enter_context(mock.patch.object(bought_schema, "gaussian_scale", lambda s, r: scale(s, r) / 2))
            stack.enter_context(mock.patch.object(partitions, "threshold_for", halved))
        if way == "no sensitivity":
            stack.enter_context(mock.patch.object(quantiles, "score_sensitivity", return_value=1))
        elif way == "no threshold":
            stack.enter_context(mock.patch.object(partitions, "threshold_for", open_door))
        elif way == "the threshold counted out":
            stack.enter_context(mock.patch.object(partitions, "threshold_for", counted_out))
        else:
            stack.enter_context(breaking(way, seed))
        yield


def judge(case: Case, runs: int, alpha: float) -> Verdict:
    """Run one case ``runs`` times on each table and test its claim; δ₀ is added to what the claim allows."""
    with breaking_schema(case.broken, telling_seed(case) if case.broken == "seeded" else 0):
        sides = [[case.run(side) for _ in range(runs * case.times)] for side in (0, 1)]
    verdict = audit(sides[0], sides[1], case.rho, alpha)
    slip = case.slip if isinstance(case, SlippingCase) else 0.0
    return replace(verdict, bounds=tuple(replace(b, claimed=min(1.0, b.claimed + slip)) for b in verdict.bounds))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", default="", metavar="NAME", help="cases whose names contain this")
    parser.add_argument("--runs", type=int, default=600, help="runs on each table (each case takes a multiple)")
    opt = parser.parse_args()
    return audited(opt.only, opt.runs)


def audited(only: str, runs: int) -> int:
    """Run the audit and print a line for each case; returns the exit status."""
    cases = [c for broken in (False, True) for c in schema(broken)]
    wrong = 0
    print(f"{'what':<52} {'relation':<12} {'runs':>6} {'ε claimed':>9}  worst: δ(ε′) ≥ low, claimed")
    for case in [c for c in cases if only in c.what]:
        verdict = judge(case, runs, CONFIDENCE / len(cases))
        fine = verdict.refuted == bool(case.broken)
        wrong += not fine
        w, word = verdict.worst, "caught" if verdict.refuted else "holds"
        print(
            f"{case.what:<52} {case.relation:<12} {runs * case.times:>6} {epsilon_of(case.rho, DELTA):>9.3f}  "
            f"δ({w.epsilon:.2f}) ≥ {w.low:.3f}, {w.claimed:.3f}: {word}{'' if fine else '  <-- WRONG'}",
            flush=True,
        )
    print(f"\n{'as expected' if not wrong else f'{wrong} wrong'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
