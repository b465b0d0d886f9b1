"""What the decoder gives and costs: `python -m benchmarks.decoder [adult diabetes wide scm attack leak]`.

    --seeds N      runs per figure (default 3)
    --epsilon E …  (default 1 3)

- **adult**, **diabetes**: AUC of one-hot logistic regression on held-out real rows, two- and one-way total variation,
  CPU seconds. Public bins, replace-one, δ = 1e-9, an 80/20 split per seed; the drawings are in `decoder_graphs`.
- **wide**: 222 binary columns, n = 5,000, a noisy-OR network in the published shape of the neuropathic-pain simulator
  (Tu et al. 2019: 27 causes, 52 conditions, 143 symptoms, 770 arrows). The table is simulated from the very drawing
  the decoder is given, so half, double and random drawings stand beside it.
- **scm**: PRISM's spurious shift: the target's outgoing arrows cut, the full drawing, and with a shared latent.
- **attack**: the membership game on 1,000 rows of Adult, with its positive control and the ceiling of the budget.
- **leak**: releases of one private model per table, split at random and by model, as in the causal-VAE paper.

Every figure draws its noise through the curator's own functions.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import auc, fit_auc
from benchmarks.decoder_graphs import ADULT, DIABETES, arrows, diabetes
from core.evaluation.membership.attack import ceiling, run, split_at_random
from core.evaluation.membership.game import Game, choose_targets, publish, shadow_releases
from core.models.decoder import Decoder, parents_of
from core.models.decoder_training import Training, distributions, rake, shares, train
from core.privacy.accounting import rho_of
from core.privacy.clipped import UNITS, clipped_sensitivity, clipped_sums
from core.privacy.heads import FloatArray, Heads
from core.privacy.mechanisms import add_gaussian, gaussian_scale
from core.privacy.unit import Unit

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
DELTA = 1e-9
UNIT = Unit("replace-one")
IMPORTANCE = {"income": 1.5, "readmitted": 6.0, "Y": 1.5}
"""Weights of the targets' residuals before clipping. A table of 31 columns leaves the target a smaller part of a row's
norm than one of 12 does, so it needs more."""
Codes = Mapping[str, NDArray[Any]]
Arrows = Sequence[tuple[str, str]]


def fit(codes: Codes, heads: Heads, rho: float | None, rng: np.random.Generator, training: Training) -> Decoder:
    """A decoder of ``codes`` that costs ``rho`` in zCDP; without noise where ``rho`` is None."""
    counts = {n: np.bincount(codes[n], minlength=k) for n, k in heads.sizes.items()}
    if rho is None:

        def exact(parameters: FloatArray, step: int) -> FloatArray:
            return clipped_sums(codes, heads, parameters, training.clip, step) / UNITS

        plain = {n: c.astype(float) for n, c in counts.items()}
        return rake(train(heads, plain, exact, training, rng), distributions(plain), rng)
    per_count, per_step = shares(rho, len(counts), training.steps)
    sigma = gaussian_scale(UNIT.count_sensitivity, per_count)
    scale = gaussian_scale(float(clipped_sensitivity(UNIT, training.clip)), per_step)

    def noisy_sum(parameters: FloatArray, step: int) -> FloatArray:
        return add_gaussian(clipped_sums(codes, heads, parameters, training.clip, step), scale) / UNITS

    noisy = {n: add_gaussian(c, sigma) for n, c in counts.items()}
    return rake(train(heads, noisy, noisy_sum, training, rng), distributions(noisy), rng)


def total_variation(a: Codes, b: Codes, sizes: Mapping[str, int], width: int) -> float:
    """Mean over all sets of ``width`` columns."""
    found = []
    for names in itertools.combinations(sizes, width):
        shape = [sizes[n] for n in names]
        cells = [np.ravel_multi_index([t[n] for n in names], shape) for t in (a, b)]
        p, q = (np.bincount(c, minlength=int(np.prod(shape))) / len(c) for c in cells)
        found.append(0.5 * float(np.abs(p - q).sum()))
    return float(np.mean(found))


def split(codes: Codes, target: str, seed: int) -> tuple[Codes, Codes]:
    """A stratified 80/20 split."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(codes[target]))
    parts = train_test_split(rows, test_size=0.2, stratify=codes[target], random_state=seed)
    return {n: c[parts[0]] for n, c in codes.items()}, {n: c[parts[1]] for n, c in codes.items()}


def show(name: str, rows: Iterable[Sequence[float]], heading: str) -> None:
    """Mean ± standard deviation over seeds."""
    table = np.array(list(rows))
    cells = [f"{m:.4f} ± {s:.4f}" for m, s in zip(table.mean(axis=0), table.std(axis=0), strict=True)]
    print(f"{name:<34} {heading}: {'  '.join(cells)}", flush=True)


def adult_table() -> tuple[Codes, dict[str, int]]:
    """Adult with the public bins of `benchmarks.adult`."""
    from benchmarks.prism import adult_public_bins

    table = adult_public_bins()
    return table.codes, dict(table.schema.sizes)


def quality(name: str, seeds: int, epsilons: Sequence[float]) -> None:
    """The `adult` and `diabetes` figures."""
    codes, sizes = adult_table() if name == "adult" else diabetes(DATA / "diabetes_readmission_20k.csv.gz")
    target, drawing = ("income", ADULT) if name == "adult" else ("readmitted", DIABETES)
    drawn = parents_of(sizes, arrows(drawing))
    splits = [split(codes, target, seed) for seed in range(seeds)]
    show(f"{name}, real rows", ([fit_auc(a, b, sizes, target)] for a, b in splits), "AUC")
    for epsilon in epsilons:
        heads = Heads(sizes, drawn, {target: IMPORTANCE[target]})
        rows = []
        for seed, (real, held) in enumerate(splits):
            start = time.process_time()
            model = fit(real, heads, rho_of(epsilon, DELTA), np.random.default_rng(seed), Training())
            made = model.sample(len(real[target]), np.random.default_rng(seed))
            seconds = time.process_time() - start
            fidelity = [total_variation(real, made, sizes, width) for width in (2, 1)]
            rows.append([fit_auc(made, held, sizes, target), *fidelity, seconds])
        show(f"{name}, decoder, ε = {epsilon:g}", rows, "AUC, two-way TV, one-way TV, CPU s")


# --- a wide table -------------------------------------------------------------------------------------------------

LAYERS = (27, 52, 143)
ARROWS = 770


def pain(seed: int, rows: int) -> tuple[dict[str, NDArray[Any]], list[tuple[str, str]]]:
    """Rows of a noisy-OR network of 222 columns in three layers, and its arrows."""
    rng = np.random.default_rng(seed)
    names = [[f"{kind}{i}" for i in range(count)] for kind, count in zip("dcs", LAYERS, strict=True)]
    pairs = [(a, b) for above, below in itertools.pairwise(names) for b in below for a in above]
    first = [(str(rng.choice(above)), b) for above, below in itertools.pairwise(names) for b in below]
    rest = [pair for pair in pairs if pair not in set(first)]
    drawn = first + [rest[i] for i in rng.choice(len(rest), ARROWS - len(first), replace=False)]
    drawn.sort()
    out = {name: rng.random(rows) < rng.uniform(0.05, 0.3) for name in names[0]}
    for name in (*names[1], *names[2]):
        off = np.full(rows, 0.98)
        for cause, effect in drawn:
            if effect == name:
                off *= np.where(out[cause], 1 - rng.uniform(0.2, 0.8), 1.0)
        out[name] = rng.random(rows) >= off
    return {name: values.astype(np.uint8) for name, values in out.items()}, drawn


def drawings(drawn: Arrows, names: Sequence[str], rng: np.random.Generator) -> dict[str, list[tuple[str, str]]]:
    """The right drawing, half of it, as many random arrows again, and as many random arrows instead."""
    order = list(names)
    every = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if (a, b) not in set(drawn)]
    wrong = [every[i] for i in rng.choice(len(every), len(drawn), replace=False)]
    half = [drawn[i] for i in rng.choice(len(drawn), len(drawn) // 2, replace=False)]
    return {"drawn": list(drawn), "half": half, "double": [*drawn, *wrong], "random": wrong}


def slope(real: Codes, made: Codes, drawn: Arrows) -> float:
    """Least-squares slope through 0 of the synthetic correlations along the true arrows on the real ones."""
    x, y = (np.array([_correlation(t[a], t[b]) for a, b in drawn]) for t in (real, made))
    return float(x @ y / (x @ x))


def _correlation(a: NDArray[Any], b: NDArray[Any]) -> float:
    return 0.0 if a.std() * b.std() == 0 else float(np.corrcoef(a, b)[0, 1])


def wide(seeds: int, epsilons: Sequence[float]) -> None:
    """The `wide` figures: mean AUC over 10 symptoms, and the slope of arrow correlations."""
    rows: dict[tuple[str, float], list[list[float]]] = {}
    for seed in range(seeds):
        codes, drawn = pain(seed, 7000)
        real, held = ({n: c[part] for n, c in codes.items()} for part in (slice(5000), slice(5000, None)))
        sizes, rng = dict.fromkeys(codes, 2), np.random.default_rng(seed)
        common = [n for n in codes if n[0] == "s" and 0.1 < real[n].mean() < 0.9]
        targets = [str(t) for t in rng.choice(common, 10, replace=False)]
        rows.setdefault(("real rows", 0.0), []).append([_mean_auc(real, held, sizes, targets), 1.0, 0.0])
        kinds: dict[str, tuple[Arrows, int]] = {n: (d, 0) for n, d in drawings(drawn, list(codes), rng).items()}
        kinds["latent 4 only"] = ((), 4)
        for (name, (edges, latent)), epsilon in itertools.product(kinds.items(), epsilons):
            start = time.process_time()
            heads = Heads(sizes, parents_of(sizes, edges), latent=latent)
            model = fit(real, heads, rho_of(epsilon, DELTA), np.random.default_rng(seed), Training())
            seconds = time.process_time() - start
            made = model.sample(5000, np.random.default_rng(seed))
            figures = [_mean_auc(made, held, sizes, targets), slope(real, made, drawn), seconds]
            rows.setdefault((name, epsilon), []).append(figures)
    for (name, epsilon), figures in rows.items():
        show(f"wide, {name}, ε = {epsilon:g}" if epsilon else "wide, real rows", figures, "AUC, slope, CPU s")


def _mean_auc(train_: Codes, held: Codes, sizes: Mapping[str, int], targets: Sequence[str]) -> float:
    from sklearn.linear_model import LogisticRegression

    found = []
    for target in targets:
        names = [n for n in sizes if n != target]
        x, z = (np.column_stack([t[n] for n in names]).astype(float) for t in (train_, held))
        if len(np.unique(train_[target])) < 2:
            found.append(0.5)
            continue
        model = LogisticRegression(solver="newton-cholesky").fit(x, train_[target])
        found.append(auc(held[target], model.decision_function(z)))
    return float(np.mean(found))


# --- shift --------------------------------------------------------------------------------------------------------


def shift(seeds: int, epsilons: Sequence[float]) -> None:
    """PRISM's spurious shift: the children of Y copy it in training and are coin flips (err in half) in the test."""
    from benchmarks.prism import scm

    rows: dict[tuple[str, float], list[list[float]]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        children = [f"S{i}" for i in range(1, 11)]
        real = scm(rng, 5000, 0.10, False, 0.5**0.5, 10)
        held = scm(rng, 20_000, SPURIOUS_TEST_FLIP, False, 0.5**0.5, 10)
        sizes = {n: 3 if n in "AB" else 4 if n[0] == "N" else 2 for n in real}
        causes, full = [("A", "Y"), ("B", "Y")], [("A", "Y"), ("B", "Y"), *(("Y", s) for s in children)]
        for name, edges, latent in (("causal", causes, 0), ("causal + latent 4", causes, 4), ("full", full, 0)):
            for epsilon in epsilons:
                heads = Heads(sizes, parents_of(sizes, edges), {"Y": IMPORTANCE["Y"]}, latent)
                model = fit(real, heads, rho_of(epsilon, DELTA), rng, Training())
                made = model.sample(5000, rng)
                rows.setdefault((name, epsilon), []).append([fit_auc(made, held, sizes, "Y")])
    for (name, epsilon), figures in rows.items():
        show(f"scm, decoder {name}, ε = {epsilon:g}", figures, "AUC under spurious shift")


SPURIOUS_TEST_FLIP = 0.5

# --- attack -------------------------------------------------------------------------------------------------------

ATTACK_DELTA = 1e-5


def _game(models: int) -> tuple[Game, Mapping[str, tuple[str, ...]]]:
    codes, sizes = adult_table()
    pool = np.random.default_rng(0).choice(len(codes["income"]), 1000, replace=False)
    return Game({n: c[pool] for n, c in codes.items()}, sizes, 500, models), parents_of(sizes, arrows(ADULT))


def _releases(heads: Heads, rho: float | None) -> Callable[[Codes, np.random.Generator], Codes]:
    training = Training() if rho is not None else Training(steps=150, clip=60.0)
    return lambda codes, rng: fit(codes, heads, rho, rng, training).sample(len(codes["income"]), rng)


def attack(models: int, epsilons: Sequence[float]) -> None:
    """AUC by attack and method, on random and on outlying targets, beside the control and the ceiling."""
    game, drawn = _game(models)
    rng = np.random.default_rng(1)
    targets = choose_targets(game, 20, rng)
    plain, shared = Heads(game.sizes, drawn), Heads(game.sizes, {}, latent=4)
    methods = {"real rows (control)": publish, "latent only, not private": _releases(shared, None)}
    methods["causal, not private"] = _releases(plain, None)
    for epsilon in epsilons:
        rho = rho_of(epsilon, ATTACK_DELTA)
        top = f"ceiling {ceiling(rho, UNIT):.3f}"
        methods[f"decoder, ε = {epsilon:g}, {top}"] = _releases(plain, rho)
    controls = {}
    for name, synthesise in methods.items():
        start = time.process_time()
        shadows = shadow_releases(game, synthesise, rng)
        for kind in ("density", "histogram"):
            found = run(kind, game, shadows, targets, rng)  # type: ignore[arg-type]
            controls.setdefault(kind, found)
            print(
                f"{name:<38} {kind:<10} random {found.random:.3f} outlying {found.outlying:.3f} advantage "
                f"{found.advantage.value:.3f}; {found.says(controls[kind])}; {time.process_time() - start:.0f} CPU s",
                flush=True,
            )


def leak(models: int, epsilon: float) -> None:
    """Accuracy of the same attack on one target with releases split at random, and split by model."""
    game, drawn = _game(models)
    rng = np.random.default_rng(2)
    target = int(choose_targets(game, 20, rng)[0][-1])
    heads, rho = Heads(game.sizes, drawn), rho_of(epsilon, ATTACK_DELTA)
    inside, releases = np.arange(models) % 2 == 0, []
    others = np.setdiff1d(np.arange(game.pool_rows), [target])
    for there in inside:
        rows = rng.choice(others, game.rows, replace=False)
        rows[0] = target if there else rows[0]
        model = fit({n: c[rows] for n, c in game.pool.items()}, heads, rho, rng, Training())
        releases.append([model.sample(100, rng) for _ in range(100)])
    random, by_model = split_at_random(game, releases, inside, rng)
    print(f"leak, decoder ε = {epsilon:g}: accuracy {random:.3f} split at random, {by_model:.3f} split by model")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoder", description=__doc__)
    parser.add_argument("what", nargs="*", default=["adult", "diabetes", "wide", "scm", "attack", "leak"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--models", type=int, default=96, help="shadow models of the attack")
    opt = parser.parse_args()
    for what in opt.what:
        if what in ("adult", "diabetes"):
            quality(what, opt.seeds, opt.epsilon)
        elif what == "wide":
            wide(opt.seeds, opt.epsilon)
        elif what == "scm":
            shift(opt.seeds, opt.epsilon)
        elif what == "attack":
            attack(opt.models, opt.epsilon)
        elif what == "leak":
            leak(min(opt.models, 50), opt.epsilon[0])
        else:
            parser.error(f"there is no benchmark {what!r}")


if __name__ == "__main__":
    main()
