"""Quality and cost of the decoder: `python -m benchmarks.decoder WHAT …`, with one or more of the words below.

    --seeds N      runs per figure (default 3)
    --epsilon E …  (default 1 3; wide: 1 5.62)

- **choose**: settings (steps and their rate, clip, the constant input of heads, strength of arrows, share of the
  counts, weight of the target) on the tables used to choose them: COMPAS, draws of public networks, a network with a
  weak target, PRISM's SCM and small noisy-OR networks. Two other results were known before the settings were final:
  Adult's TV when the share of the counts was chosen, and Adult and diabetes at ε = 1 when the rule for the target's
  weight was chosen.
- **adult**, **diabetes**, **compas**, **insurance**: AUC of one-hot logistic regression on held-out real rows, two- and
  one-way total variation, CPU seconds of a release. Public bins, replace-one, δ = 1e-9, an 80/20 split per seed; the
  drawings are in `decoder_tables`. `--families additive` gives the figures without tables.
- **wide**: 222 binary columns, n = 5,000, a noisy-OR network. The table is simulated from the drawing that the decoder
  is given, so the benchmark also compares half, double and random drawings, a shared latent with a single arrow (a
  DP-VAE), mst, privbayes, and prism with the ten targets given. `--neighbors add-remove` halves the sensitivity.
- **families**: interacting causes, with ``families`` set to "auto" and to "additive". Goals: XOR 0.87 at ε = 3;
  family TV 0.010 at ε = 10 and 8,000 rows or more on child, alarm and tables like sachs; slope 0.75 of arrows of 222
  columns with 3,000 rows at ε = 5.62. The last lines show a family that is too large for a table and has two
  interacting causes, with and without a drawn interaction.
- **small**: small generated tables (500 to 3,000 rows, a target with two to six causes, categories or binned numbers,
  with and without interactions), with additive causes, and for several values of a table's largest noise.
- **clipping**: a target with five causes, in addition to six columns that are measured as tables, with 1,000 rows.
- **noise**: the largest noise of a table (`MOST_NOISE`) on the tables used to choose it: XOR with 2 to 5 levels,
  networks with a weak target, noisy-OR networks, and Adult on splits that **adult** does not use.
- **scm**: PRISM's spurious shift: with the target's outgoing arrows cut, with the full drawing, and with a shared
  latent.

Every figure comes from a release through the curator.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import auc, fit_auc
from benchmarks.decoder_tables import (
    ADULT,
    COMPAS,
    DIABETES,
    INSURANCE,
    SMALL_KINDS,
    SMALL_ROWS,
    arrows,
    chain,
    diabetes,
    drawings,
    noisy_or,
    sachs,
    small,
    weak_target,
)
from benchmarks.tables import CHOSEN, FOLDER, REPORTED, by_codes, drawn, judge, network_arrows
from espalier.core.errors import EspalierError
from espalier.core.graph.dag import Dag, Interaction
from espalier.core.methods import decoder as method
from espalier.core.methods import decoder_families
from espalier.core.models import decoder as decoder_model
from espalier.core.models import decoder_steps, decoder_training
from espalier.core.privacy import clipped
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release.artefact import Release
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

DELTA = 1e-9
Codes = Mapping[str, NDArray[Any]]
Arrows = Sequence[tuple[str, str]]


def released(
    real: Codes, sizes: Mapping[str, int], drawn: Arrows, said: tuple[Interaction, ...] = (), **plan: Any
) -> Codes:
    """Return rows of a release of ``real``, by the decoder on ``drawn`` with the interactions ``said`` unless ``plan``
    names another method.
    """
    return _release(real, sizes, drawn, said, **plan).codes


def _release(
    real: Codes, sizes: Mapping[str, int], drawn: Arrows, said: tuple[Interaction, ...] = (), **plan: Any
) -> Release:
    table = by_codes(real, sizes)
    settings = {"method": "decoder", "epsilon": 1.0, "delta": DELTA, **plan}
    return release(
        Project("benchmark", table.schema, Plan.from_json(settings), Dag(tuple(drawn), interactions=said)), table
    )


def show(name: str, rows: Iterable[Sequence[float]], heading: str) -> None:
    """Print the mean ± standard deviation over seeds."""
    table = np.array(list(rows))
    cells = [f"{m:.4f} ± {s:.4f}" for m, s in zip(table.mean(axis=0), table.std(axis=0), strict=True)]
    print(f"{name:<34} {heading}: {'  '.join(cells)}", flush=True)


# --- tables for choosing settings ---------------------------------------------------------------------------

Constants = tuple[tuple[Any, str, float], ...]


def _constant(value: float) -> Constants:
    """Return the constant input of heads, for every module that reads it. An intercept's prior stays unchanged."""
    readers = (clipped, decoder_model, decoder_steps, decoder_training)
    return (*((module, "CONSTANT", value) for module in readers), (decoder_steps, "INTERCEPT", 2.0 / value))


SETTINGS: dict[str, tuple[dict[str, Any], Constants]] = {
    "as it is": ({}, ()),
    "12 steps": ({"steps": 12}, ()),
    "clip 2": ({"clip": 2.0}, ()),
    "a constant of 1": ({}, _constant(1.0)),
    "a constant of 1/2": ({}, _constant(0.5)),
    "three tenths of each step": ({}, ((decoder_steps, "RATE", 0.3), (decoder_steps, "LEFT_OUT", 0.2))),
    "half of each step": ({}, ((decoder_steps, "RATE", 0.5),)),
    "arrows of strength 1.5": ({}, ((decoder_steps, "STRENGTH", 1.5),)),
    "arrows of strength 2.5": ({}, ((decoder_steps, "STRENGTH", 2.5),)),
    "15 % for the counts": ({}, ((decoder_training, "COUNTS_SHARE", 0.15),)),
    "45 % for the counts": ({}, ((decoder_training, "COUNTS_SHARE", 0.45),)),
    "8 columns to a unit of weight": ({}, ((method, "COLUMNS_PER_IMPORTANCE", 8.0),)),
    "no weight": ({}, ((method, "LARGEST_IMPORTANCE", 1.0),)),
}
"""Plan keys, and values that replace module constants."""


def choose(seeds: int) -> None:
    """Print AUC and two-way TV (noisy-OR: AUC and slope) by setting at ε = 1."""
    cases = [c for c in CHOSEN if c.name.startswith(("compas", "asia 3k", "child 20k", "alarm 8k"))]
    for name, (changed, constants) in SETTINGS.items():
        plan = {"families": "additive", **changed}  # every head is trained
        with ExitStack() as patched:
            for module, constant, value in constants:
                patched.enter_context(mock.patch.object(module, constant, value))
            print(f"# {name}")
            for case in cases:
                known = COMPAS if case.name == "compas" else None
                drawn = arrows(known) if known else network_arrows(case.name.split()[0])
                rows = [_judged(*case.split(seed), drawn, case.target, **plan) for seed in range(seeds)]
                show(case.name, rows, "AUC, two-way TV")
            show("weak target", [_weak_target(seed, **plan) for seed in range(seeds)], "AUC, two-way TV")
            show("scm, arrows out of Y cut", ([_shifted(s, **plan)] for s in range(seeds)), "AUC")
            for shape in (((8, 16, 40), 160), ((15, 30, 75), 420)):
                rows = [_noisy_or(seed, *shape, **plan) for seed in range(seeds)]
                show(f"noisy-OR {sum(shape[0])}", rows, "AUC, slope")


def _judged(train: Table, test: Table, drawn: Arrows, target: str, **plan: Any) -> list[float]:
    codes = released(train.codes, train.schema.sizes, drawn, target=target, **plan)
    found = judge(codes, train, test, target)
    return [found["auc"], found["two_way_tv"]]


def _weak_target(seed: int, **plan: Any) -> list[float]:
    codes, sizes, drawn = weak_target(100 + seed, 21_000)
    train, test = (by_codes({n: c[p] for n, c in codes.items()}, sizes) for p in (slice(12_000), slice(12_000, None)))
    return _judged(train, test, drawn, "y", **plan)


def _noisy_or(seed: int, layers: Sequence[int], count: int, **plan: Any) -> list[float]:
    codes, drawn = noisy_or(seed + 50, 5000, layers, count)
    real, held = ({n: c[part] for n, c in codes.items()} for part in (slice(3500), slice(3500, None)))
    sizes = dict.fromkeys(codes, 2)
    rows = released(real, sizes, drawn, **plan)
    return [_mean_auc(rows, held, sizes, _symptoms(real, 8, np.random.default_rng(seed))), slope(real, rows, drawn)]


# --- Adult and diabetes -------------------------------------------------------------------------------------------


def quality(name: str, seeds: int, epsilons: Sequence[float], first: int = 0, **plan: Any) -> None:
    """Print the figures of a table with its drawing. Seeds start at ``first``."""
    codes, sizes, target, drawing = _real(name)
    splits = [split(codes, target, seed) for seed in range(first, first + seeds)]
    show(f"{name}, real rows", ([fit_auc(a, b, sizes, target)] for a, b in splits), "AUC")
    for epsilon in epsilons:
        rows = []
        for real, held in splits:
            start = time.process_time()
            codes = released(real, sizes, arrows(drawing), target=target, epsilon=epsilon, **plan)
            seconds = time.process_time() - start
            fidelity = [total_variation(real, codes, sizes, width) for width in (2, 1)]
            rows.append([fit_auc(codes, held, sizes, target), *fidelity, seconds])
        show(f"{name}, decoder, ε = {epsilon:g}", rows, "AUC, two-way TV, one-way TV, CPU s")


def _real(name: str) -> tuple[Codes, dict[str, int], str, dict[str, str]]:
    """Return codes, sizes, target and drawing of a real table."""
    if name == "adult":
        from benchmarks.prism import adult_public_bins

        table = adult_public_bins()
        return table.codes, dict(table.schema.sizes), "income", ADULT
    if name == "diabetes":
        return *diabetes(FOLDER / "diabetes_readmission_20k.csv.gz"), "readmitted", DIABETES
    (case,) = [c for c in (*CHOSEN, *REPORTED) if c.name == name]
    table = case.load()
    return table.codes, dict(table.schema.sizes), case.target, COMPAS if name == "compas" else INSURANCE


def split(codes: Codes, target: str, seed: int) -> tuple[Codes, Codes]:
    """Return a stratified 80/20 split."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(codes[target]))
    parts = train_test_split(rows, test_size=0.2, stratify=codes[target], random_state=seed)
    return {n: c[parts[0]] for n, c in codes.items()}, {n: c[parts[1]] for n, c in codes.items()}


def total_variation(a: Codes, b: Codes, sizes: Mapping[str, int], width: int) -> float:
    """Return the mean over all sets of ``width`` columns."""
    found = []
    for names in itertools.combinations(sizes, width):
        shape = [sizes[n] for n in names]
        cells = [np.ravel_multi_index([t[n] for n in names], shape) for t in (a, b)]
        p, q = (np.bincount(c, minlength=int(np.prod(shape))) / len(c) for c in cells)
        found.append(0.5 * float(np.abs(p - q).sum()))
    return float(np.mean(found))


# --- a wide table -------------------------------------------------------------------------------------------------


def wide(seeds: int, epsilons: Sequence[float], neighbors: str, only: str, way: str) -> None:
    """Print the mean AUC over 10 symptoms, the slope of arrow correlations and CPU seconds, or a refusal."""
    rows: dict[tuple[str, float], list[list[float]]] = {}
    for seed in range(seeds):
        codes, drawn = noisy_or(seed, 7000)
        real, held = ({n: c[part] for n, c in codes.items()} for part in (slice(5000), slice(5000, None)))
        sizes, rng = dict.fromkeys(codes, 2), np.random.default_rng(seed)
        targets = _symptoms(real, 10, rng)
        rows.setdefault(("real rows", 0.0), []).append([_mean_auc(real, held, sizes, targets), 1.0, 0.0])
        ways: dict[str, tuple[Arrows, dict[str, Any]]] = {
            f"decoder, {name}": (edges, {"families": way}) for name, edges in drawings(drawn, list(codes), rng).items()
        }
        ways["latent VAE (4, one arrow)"] = (drawn[:1], {"latent": 4})  # without arrows, the schema's order is used
        ways["mst"] = (drawn, {"method": "mst"})
        ways["privbayes, drawn"] = (drawn, {"method": "privbayes"})
        ways["privbayes, learned"] = ((), {"method": "privbayes"})
        ten = {"target": targets[0], "targets": dict.fromkeys(targets[1:], 1.0)}
        ways["prism causal, targets given"] = (drawn, {"method": "prism", "regime": "causal", **ten})
        chosen = [(name, way) for name, way in ways.items() if only in name]
        for (name, (edges, plan)), epsilon in itertools.product(chosen, epsilons):
            start = time.process_time()
            try:
                made = released(real, sizes, edges, epsilon=epsilon, neighbors=neighbors, **plan)
            except EspalierError as error:
                if not seed:
                    print(f"wide, {name}, ε = {epsilon:g}: refused: {str(error)[:120]} …", flush=True)
                continue
            seconds = time.process_time() - start
            figures = [_mean_auc(made, held, sizes, targets), slope(real, made, drawn), seconds]
            rows.setdefault((name, epsilon), []).append(figures)
    for (name, epsilon), runs in rows.items():
        show(f"wide, {name}, ε = {epsilon:g}" if epsilon else "wide, real rows", runs, "AUC, slope, CPU s")


def slope(real: Codes, made: Codes, drawn: Arrows) -> float:
    """Return the least-squares slope, through 0, of the synthetic correlations along the true arrows on the real
    correlations."""
    x, y = (np.array([_correlation(t[a], t[b]) for a, b in drawn]) for t in (real, made))
    return float(x @ y / (x @ x))


def _correlation(a: NDArray[Any], b: NDArray[Any]) -> float:
    return 0.0 if a.std() * b.std() == 0 else float(np.corrcoef(a, b)[0, 1])


def _symptoms(real: Codes, count: int, rng: np.random.Generator) -> list[str]:
    """Return ``count`` columns of the last layer in which both values are common."""
    common = [n for n in real if n[0] == "s" and 0.1 < real[n].mean() < 0.9]
    return [str(t) for t in rng.choice(common, count, replace=False)]


def _mean_auc(train: Codes, held: Codes, sizes: Mapping[str, int], targets: Sequence[str]) -> float:
    from sklearn.linear_model import LogisticRegression

    found = []
    for target in targets:
        names = [n for n in sizes if n != target]
        x, z = (np.column_stack([t[n] for n in names]).astype(float) for t in (train, held))
        if len(np.unique(train[target])) < 2:
            found.append(0.5)
            continue
        model = LogisticRegression(solver="newton-cholesky").fit(x, train[target])
        found.append(auc(held[target], model.decision_function(z)))
    return float(np.mean(found))


# --- shift --------------------------------------------------------------------------------------------------------

SPURIOUS_TEST_FLIP = 0.5


def shift(seeds: int, epsilons: Sequence[float], causes: str) -> None:
    """Print figures under PRISM's spurious shift: the children of Y copy it in training, and are coin flips in the
    test.
    """
    ways: dict[str, Callable[[int, float], float]] = {
        "causal regime": lambda seed, epsilon: _shifted(seed, epsilon=epsilon, families=causes),
        "causes + latent 4": lambda seed, epsilon: _shifted(seed, "cut", epsilon=epsilon, latent=4),
        "full drawing": lambda seed, epsilon: _shifted(seed, "full", epsilon=epsilon, families=causes),
    }
    for (name, way), epsilon in itertools.product(ways.items(), epsilons):
        show(f"scm, decoder, {name}, ε = {epsilon:g}", ([way(seed, epsilon)] for seed in range(seeds)), "AUC")


def _shifted(seed: int, drawn: str = "causal", **plan: Any) -> float:
    """Return the AUC on 20,000 shifted rows; ``drawn`` is the causal regime's drawing with arrows already cut, or the
    full drawing."""
    from benchmarks.prism import scm

    rng = np.random.default_rng(seed)
    real = scm(rng, 5000, 0.10, False, 0.5**0.5, 10)
    held = scm(rng, 20_000, SPURIOUS_TEST_FLIP, False, 0.5**0.5, 10)
    sizes = {n: 3 if n in "AB" else 4 if n[0] == "N" else 2 for n in real}
    edges = [("A", "Y"), ("B", "Y"), *((("Y", f"S{i}") for i in range(1, 11)) if drawn != "cut" else ())]
    if drawn == "causal":
        plan["regime"] = "causal"
    return fit_auc(released(real, sizes, edges, target="Y", **plan), held, sizes, "Y")


def families(seeds: int) -> None:
    """Print figures for interacting causes: XOR, family TV on draws from networks, arrows of a wide table, and one
    large family.
    """
    for way in ("auto", "additive"):
        plan: dict[str, Any] = {"families": way}
        for rows, levels in ((5_000, 2), (5_000, 4), (2_000, 4)):
            show(
                f"XOR, {rows:,} rows, {levels} levels, {way}, ε = 3",
                (_xor(s, rows, levels, plan) for s in range(seeds)),
                "y = xor",
            )
        for network, rows in (("child", 10_000), ("child", 8_000), ("alarm", 20_000), ("alarm", 8_000)):
            table, edges = drawn(network, rows, 21), network_arrows(network)
            made = (released(table.codes, table.schema.sizes, edges, epsilon=10.0, **plan) for _ in range(seeds))
            show(f"{network}, {rows:,} rows, {way}, ε = 10", ([_family_tv(table, m, edges)] for m in made), "family TV")
        like = []
        for seed in range(seeds):
            codes, sizes, edges = sachs(seed, 8_000)
            made_like = released(codes, sizes, edges, epsilon=10.0, **plan)
            like.append([_family_tv(by_codes(codes, sizes), made_like, edges)])
        show(f"like sachs, 8,000 rows, {way}, ε = 10", like, "family TV")
        wide_rows = []
        for seed in range(seeds):
            codes, edges = noisy_or(seed, 3_000)
            made_wide = released(codes, dict.fromkeys(codes, 2), edges, epsilon=5.62, **plan)
            wide_rows.append([slope(codes, made_wide, edges)])
        show(f"222 columns, 3,000 rows, {way}, ε = 5.62", wide_rows, "slope of arrows")
        show(f"XOR of 2 of 5 causes, {way}, ε = 3", (_xor(s, 5_000, 5, plan, 3) for s in range(seeds)), "y = xor")
    said = (_xor(s, 5_000, 5, {}, 3, ((("x0", "x1"), "y"),)) for s in range(seeds))
    show("XOR of 2 of 5 causes, drawn, ε = 3", said, "y = xor")


SMALL_NOISES = (0.2, 0.4)


def small_tables(seeds: int, epsilons: Sequence[float]) -> None:
    """Print figures of small generated tables with additive causes, and the changes for each value of `MOST_NOISE`."""
    for epsilon, both in itertools.product(epsilons, (False, True)):
        kinds = [kind for kind in SMALL_KINDS if kind.endswith("interacting") == both]
        cases = list(itertools.product(range(seeds), kinds, SMALL_ROWS))
        name = f"{'interacting' if both else 'additive'} effects, ε = {epsilon:g}"
        found: dict[float, NDArray[Any]] = {}
        for most in (0.0, *SMALL_NOISES):
            way = {} if most else {"families": "additive"}
            with mock.patch.object(decoder_families, "MOST_NOISE", most):
                rows = [_small(300 + seed, n, kind, epsilon=epsilon, **way) for seed, kind, n in cases]
            found[most] = np.array(rows) - found.get(0.0, 0.0)
            error = found[most].std(axis=0) / len(cases) ** 0.5
            cells = [f"{m:+.4f} ± {s:.4f}" for m, s in zip(found[most].mean(axis=0), error, strict=True)]
            what = f"{name}, {f'auto ({most:g}) less additive' if most else 'additive'}"
            print(f"{what:<60} AUC, error of y, of the others, two-way TV: {'  '.join(cells)}", flush=True)


def _small(seed: int, rows: int, kind: str, **plan: Any) -> list[float]:
    """Return the AUC of p(y | causes), the errors of p(column | causes) on 6,000 further rows, and the two-way TV."""
    return _on_further_rows(*small(seed, rows + 6_000, kind), **plan)


def _on_further_rows(codes: Codes, sizes: Mapping[str, int], drawn: Arrows, **plan: Any) -> list[float]:
    """Return the figures on further rows. An error is the sum of squared errors over categories, minus the same sum for
    the column's own distribution.
    """
    real, held = ({n: c[part] for n, c in codes.items()} for part in (slice(-6_000), slice(-6_000, None)))
    made = _release(real, sizes, drawn, target="y", **plan)
    model = made.model
    assert isinstance(model, decoder_model.Decoder)
    blocks, _ = model.heads.blocks(model.parameters)
    errors, score = {}, held["y"]
    for name in dict.fromkeys(effect for _, effect in drawn):
        hot = np.eye(sizes[name])[held[name]]
        p = decoder_model.probabilities(model.odds(blocks[name], name, held, np.zeros((0, 6_000)))).T
        errors[name] = float(((p - hot) ** 2).sum(axis=1).mean() - ((hot.mean(axis=0) - hot) ** 2).sum(axis=1).mean())
        score = p[:, -1]  # y is the last
    others = float(np.mean([errors[name] for name in errors if name != "y"] or [0.0]))
    return [auc(held["y"], score), errors["y"], others, total_variation(real, made.codes, sizes, 2)]


def clipping(seeds: int, epsilons: Sequence[float]) -> None:
    """Print the target's error in the presence of six measured columns, with additive causes and two clipping norms:
    the norm for all columns, and a smaller norm.
    """
    for epsilon in epsilons:
        tables = [chain(seed, 7_000) for seed in range(seeds)]
        ways: dict[str, dict[str, Any]] = {
            "additive": {"families": "additive"},
            "auto, norm of all columns": {},
            "auto": {},
        }
        for name, plan in ways.items():
            norm = (lambda *_: 1.0) if "norm" in name else decoder_families.gradient_norm
            with mock.patch.object(method, "gradient_norm", norm):
                rows = [_on_further_rows(*some, epsilon=epsilon, **plan)[:2] for some in tables]
            show(f"{name}, ε = {epsilon:g}", rows, "AUC, error of y")


NOISES = (0.1, 0.2, 0.4)


def noise(seeds: int) -> None:
    """Print figures of the tables used to choose `MOST_NOISE`, for each value; 0 is the plan with additive causes."""
    for most in (0.0, *NOISES):
        with mock.patch.object(decoder_families, "MOST_NOISE", most):
            plan: dict[str, Any] = {} if most else {"families": "additive"}
            print(f"# {most:g}")
            for rows, levels in ((2_000, 2), (2_000, 5), (5_000, 3), (20_000, 5)):
                found = (_xor(100 + s, rows, levels, plan) for s in range(seeds))
                show(f"XOR, {rows:,} rows, {levels} levels", found, "y = xor")
            for epsilon in (1.0, 3.0):
                weak = [_weak_target(200 + s, epsilon=epsilon, **plan) for s in range(seeds)]
                show(f"weak target, ε = {epsilon:g}", weak, "AUC, two-way TV")
                wide_ = [_noisy_or(200 + s, (15, 30, 75), 420, epsilon=epsilon, **plan) for s in range(seeds)]
                show(f"noisy-OR 120, ε = {epsilon:g}", wide_, "AUC, slope")
            quality("adult", seeds, [1.0, 3.0], 100, **plan)


def _xor(
    seed: int, rows: int, levels: int, plan: Mapping[str, Any], further: int = 0, said: tuple[Interaction, ...] = ()
) -> list[float]:
    """Return how often y is the XOR of two causes in a release of twelve columns.

    In the table, y is the XOR of two causes being high in 90 % of the rows. It has ``further`` drawn causes without an
    effect. The other columns form a chain. ``said`` are the drawn interactions.
    """
    rng = np.random.default_rng(seed)
    codes: dict[str, NDArray[Any]] = {f"x{i}": rng.integers(0, levels, rows) for i in range(11)}

    def rule(held: Codes) -> NDArray[np.bool_]:
        return np.asarray((held["x0"] >= levels // 2) ^ (held["x1"] >= levels // 2))

    codes["y"] = (rule(codes) ^ (rng.random(rows) < 0.1)).astype(np.int64)
    edges = [(f"x{i}", "y") for i in range(2 + further)] + [(f"x{i}", f"x{i + 1}") for i in range(2, 10)]
    sizes = {**{f"x{i}": levels for i in range(11)}, "y": 2}
    made = released(codes, sizes, edges, said, epsilon=3.0, **plan)
    return [float(np.mean(rule(made) == made["y"]))]


def _family_tv(table: Table, made: Codes, edges: Arrows) -> float:
    """Return the mean total variation of the joint tables of a column and its causes."""
    out = []
    for name in table.schema.names:
        causes = [a for a, b in edges if b == name]
        if causes:
            shape = [table.schema.sizes[n] for n in (*causes, name)]
            both = [np.ravel_multi_index([t[n] for n in (*causes, name)], shape) for t in (table.codes, made)]
            one, other = (np.bincount(cells, minlength=int(np.prod(shape))) / len(cells) for cells in both)
            out.append(0.5 * float(np.abs(one - other).sum()))
    return float(np.mean(out))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoder", description=__doc__)
    parser.add_argument("what", nargs="*", default=["adult", "diabetes", "wide", "scm"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+")
    parser.add_argument("--neighbors", default="replace-one", choices=("replace-one", "add-remove"), help="for wide")
    parser.add_argument("--families", default="auto", choices=("auto", "tables", "additive"))
    parser.add_argument("--only", default="", metavar="WORD", help="for wide: variants whose names contain this")
    opt = parser.parse_args()
    epsilons = opt.epsilon or [1.0, 3.0]
    for what in opt.what:
        if what == "choose":
            choose(opt.seeds)
        elif what == "small":
            small_tables(opt.seeds, epsilons)
        elif what == "clipping":
            clipping(opt.seeds, epsilons)
        elif what == "noise":
            noise(opt.seeds)
        elif what in ("adult", "diabetes", "compas", "insurance"):
            quality(what, opt.seeds, epsilons, families=opt.families)
        elif what == "wide":
            wide(opt.seeds, opt.epsilon or [1.0, 5.62], opt.neighbors, opt.only, opt.families)
        elif what == "families":
            families(opt.seeds)
        elif what == "scm":
            shift(opt.seeds, epsilons, opt.families)
        else:
            parser.error(f"there is no benchmark {what!r}")


if __name__ == "__main__":
    main()
