"""Copies of a part of the model, compared with copies of the whole model: ``python -m benchmarks.nearby_answers
[--releases 8]``.

Each release is made from 20,000 rows drawn with replacement from Adult, which is the population. The questions are a
proportion and a difference for every measured pair of columns with a promised interval, and logistic regressions of
income on two columns. For each method, the benchmark prints coverage, the median ratio of widths (part to whole) and
CPU seconds of an answer.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adult import DATA, adult_project
from espalier.core.analysis import figure_from_text as ask
from espalier.core.analysis.estimands import Figure
from espalier.core.analysis.study import Study
from espalier.core.analysis.tally import Tally
from espalier.core.release import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

ROWS = 20_000
METHODS = ("workload", "prism", "mst")
MOST = 12
"""Number of pairs in the questions for one release."""


def figures(study: Study, rng: np.random.Generator) -> list[Figure]:
    """Return the questions for one release: questions about random measured pairs, and two regressions."""
    schema = study.project.schema
    pairs = [p for p in {m.clique for m in study.counted.measurements} if len(p) == 2]
    out: list[Figure] = []
    for i in rng.permutation(len(pairs))[:MOST]:
        one, other = (schema[name] for name in pairs[i])
        group = ":".join(one.labels[c] for c in rng.choice(one.values, 2, replace=False))
        event = f"{other.name}={other.labels[rng.integers(other.values)]}"
        out.append(ask.proportion(schema, event, f"{one.name}={group.partition(':')[0]}"))
        out.append(ask.difference(schema, event, f"{one.name}={group}"))
    event = f"income={schema['income'].labels[1]}"
    return [*out, *(ask.regression(schema, event, [a, b]) for a, b in (("education", "sex"), ("age", "sex")))]


def main(releases: int) -> None:
    """Print the table."""
    population = Table.encode(read_table(Path(DATA)), adult_project("mst").schema)
    sizes = population.schema.sizes
    print(f"{'method':<10}{'copies':<7}{'n':>6}{'covered':>9}{'width':>8}{'CPU s':>8}")
    for method in METHODS:
        covered: dict[str, list[bool]] = defaultdict(list)
        seconds: dict[str, list[float]] = defaultdict(list)
        ratios: list[float] = []
        for seed in range(releases):
            rng = np.random.default_rng(seed)
            drawn = rng.integers(0, population.rows, ROWS)
            rows: dict[str, Any] = {name: codes[drawn] for name, codes in population.codes.items()}
            made = release(adult_project(method, epsilon=1.0), Table(population.schema, rows, ROWS))
            study = Study.of(made)
            start = time.process_time()
            whole = study.with_copies()
            seconds["whole"].append(time.process_time() - start)
            for figure in figures(study, rng):
                truth = figure.estimate(Tally.of_rows(population.codes, sizes, figure.columns))[0]
                start = time.process_time()
                part = study.about(figure.columns).with_copies()
                mine = part.ask(figure)
                seconds["part"].append(time.process_time() - start)
                for a, b, true in zip(mine, whole.ask(figure), truth, strict=True):
                    if a.low is None or a.high is None or b.low is None or b.high is None:
                        continue
                    real = np.exp(true) if a.ratio else true
                    covered["part"].append(a.low <= real <= a.high)
                    covered["whole"].append(b.low <= real <= b.high)
                    width = (
                        (np.log(a.high / a.low), np.log(b.high / b.low))
                        if a.ratio
                        else (a.high - a.low, b.high - b.low)
                    )
                    ratios.append(float(width[0] / width[1]))
        for which in ("part", "whole"):
            share = f"{np.mean(covered[which]):.3f}" if covered[which] else "none"
            ratio = f"{np.median(ratios):.2f}" if which == "part" and ratios else ""
            cpu = f"{np.mean(seconds[which]):.2f}"
            print(f"{method:<10}{which:<7}{len(covered[which]):>6}{share:>9}{ratio:>8}{cpu:>8}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--releases", type=int, default=8)
    main(parser.parse_args().releases)
