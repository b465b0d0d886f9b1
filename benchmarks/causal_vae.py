"""Comparison with the tables of the causal-VAE paper: `python -m benchmarks.causal_vae [utility leak attack]`.

    --seeds N      runs per figure of `utility` (default 3)
    --rows N …     rows of `utility` (default 1000 5000)
    --models N     shadow models of `attack` (default 64)
    --only WORD    of `attack`: the control and the methods whose name contains this; of `utility`: the variants whose
                   name begins with it

None of the paper's data sets is available: EEDI requires registration, and the pain simulator's weights are not
published. A noisy-OR network of the simulator's shape replaces them, with 222 binary columns and 770 arrows
(`decoder_tables`), so figures can be compared only qualitatively.

- **utility**: the paper's table 1, accuracy lost in percentage points (real rows minus synthetic rows) by classifier,
  20 targets, with 1,000 rows at ε = 2.36 and 5,000 at ε = 5.62. Without arrows and noise, the model is a plain VAE.
- **leak**: the paper's attack (algorithm 1: 5 targets, 5 trainings with and 5 without each, 100 samples of 100 rows
  from each model) on one differentially private model. Releases are split at random, as the paper seems to do (every
  accuracy that it prints for the pain tables is a multiple of 1/1650, a third of 5,000 releases), and by model.
- **attack**: the membership game on 1,000 rows and eight columns of Adult for five methods, with a control and the
  ceiling implied by ρ. The main attack is run on 20 rows, and an attack on one of Stadler's summaries on eight of these
  (a forest for each row and fold takes longer than most methods' 64 models). The VAE without privacy is meant to leak:
  it has a hidden layer on either side, 600 passes over 500 rows, and no early stopping.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from benchmarks.common import one_hot
from benchmarks.decoder import Arrows, Codes, released
from benchmarks.decoder_tables import ADULT, arrows, noisy_or
from espalier.core.evaluation.downstream import CLASSIFIERS, Downstream, Tables, downstream
from espalier.core.evaluation.membership.attack import Attack, AttackResult, Classifier, ceiling, learner, run
from espalier.core.evaluation.membership.attack_features import SUMMARIES
from espalier.core.evaluation.membership.game import Game, choose_targets, publish, shadow_releases
from espalier.core.models.decoder import Decoder, draw, parents_of, probabilities
from espalier.core.models.decoder_training import Training, distributions, rake, train
from espalier.core.privacy.accounting import rho_of
from espalier.core.privacy.clipped import UNITS, clipped_sums
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.softmax_heads import FloatArray, Heads
from espalier.core.privacy.unit import Unit

Targets = tuple[NDArray[np.intp], NDArray[np.bool_]]

LATENT = 4
PLAIN = Training(steps=100, clip=60.0)
"""Settings for training without noise, which has no budget to divide: more steps, and hardly any clipping."""


def not_private(codes: Codes, sizes: Mapping[str, int], drawn: Arrows, rng: np.random.Generator) -> Codes:
    """Return the same number of rows from a decoder trained without noise."""
    counts = {n: np.bincount(codes[n], minlength=k).astype(float) for n, k in sizes.items()}
    base = {n: int(c.argmax()) for n, c in counts.items()}
    heads = Heads(sizes, parents_of(sizes, drawn), base=base)

    def exact(parameters: FloatArray, step: int) -> SumMeasurement:
        sums = clipped_sums(codes, heads, parameters, PLAIN.clip, step) / UNITS
        return SumMeasurement("gradient", sums, 0.0, PLAIN.clip, math.inf)

    model: Decoder = rake(train(heads, counts, exact, PLAIN, rng), distributions(counts), rng)
    return model.sample(len(next(iter(codes.values()))), rng)


HIDDEN, CODE, STEP = 64, 8, 0.01
PASSES, OVERFITTED = 150, 600
"""Number of passes. It is large enough for a network with about 8,000 weights to overfit 500 rows, so the game can find
a leak.
"""


def plain_vae(codes: Codes, sizes: Mapping[str, int], passes: int, rng: np.random.Generator) -> Codes:
    """Return the same number of rows from a plain VAE (Kingma & Welling 2014) over all columns, with one hidden layer
    on either side and no noise.
    """
    x = one_hot(codes, sizes, list(sizes))
    ends = list(itertools.pairwise(np.cumsum([0, *sizes.values()]).tolist()))
    shapes = ((x.shape[1], HIDDEN), (HIDDEN, 2 * CODE), (CODE, HIDDEN), (HIDDEN, x.shape[1]))
    layers = [p for a, b in shapes for p in (rng.normal(0, 0.7 * a**-0.5, (a, b)), np.zeros(b))]
    layers[-1] += np.log(x.mean(axis=0) + 1e-3)
    first, second = ([np.zeros_like(p) for p in layers] for _ in range(2))
    for t in range(1, passes + 1):
        for p, g, m, v in zip(layers, _elbo_gradient(x, layers, ends, rng), first, second, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g**2 - v)
            p += STEP * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)  # Adam, Kingma & Ba 2015
    odds = np.tanh(rng.standard_normal((len(x), CODE)) @ layers[4] + layers[5]) @ layers[6] + layers[7]
    return {n: draw(odds[:, a:b].T, rng.random(len(x))) for n, (a, b) in zip(sizes, ends, strict=True)}


def _elbo_gradient(
    x: FloatArray, layers: Sequence[FloatArray], ends: Sequence[tuple[int, int]], rng: np.random.Generator
) -> list[FloatArray]:
    """Return the gradient, with respect to the layers' weights and intercepts, of the mean ELBO of the rows ``x``
    (one-hot, one z each).
    """
    hidden = np.tanh(x @ layers[0] + layers[1])
    mean, log_variance = np.split(hidden @ layers[2] + layers[3], 2, axis=1)
    spread, noise = np.exp(np.clip(log_variance, -12, 4) / 2), rng.standard_normal(mean.shape)
    z = mean + spread * noise
    shown = np.tanh(z @ layers[4] + layers[5])
    odds = shown @ layers[6] + layers[7]
    residual = np.hstack([x[:, a:b] - probabilities(odds[:, a:b].T).T for a, b in ends]) / len(x)
    of_shown = residual @ layers[6].T * (1 - shown**2)
    of_z = of_shown @ layers[4].T
    of_code = np.hstack([of_z - mean / len(x), 0.5 * (of_z * noise * spread - (spread**2 - 1) / len(x))])
    of_hidden = of_code @ layers[2].T * (1 - hidden**2)
    pairs = ((x, of_hidden), (hidden, of_code), (z, of_shown), (shown, residual))
    return [g for read, pull in pairs for g in (read.T @ pull, pull.sum(axis=0))]


# --- utility ------------------------------------------------------------------------------------------------------

EPSILON = {1000: 2.36, 5000: 5.62}
PAPER = {
    (1000, "no arrows, DP"): (9.56, 6.34, 2.48, 5.86, 2.03),
    (1000, "no arrows, not private"): (5.42, 5.5, 1.31, 6.22, -0.924),
    (1000, "arrows, DP"): (-1.84, 4.03, -1.27, 2.22, -4.64),
    (1000, "arrows, not private"): (-1.73, 1.56, -3.16, 2.11, -6.92),
    (5000, "no arrows, DP"): (4.09, 6.89, 6.8, 2.27, 5.22),
    (5000, "no arrows, not private"): (3.53, 5.93, 5.68, 0.48, 4.07),
    (5000, "arrows, DP"): (1.7, 2.11, 4.58, 0.62, -0.82),
    (5000, "arrows, not private"): (-0.64, 0.07, -0.24, -4.62, -5.13),
}
"""Table 1 of paper 003, Pain1000 and Pain5000: kernel, svc, logistic, forest, knn."""


def utility(rows: int, seeds: int, only: str) -> None:
    """Print the percentage points of accuracy lost by classifier and variant, ours and the paper's, and the mean AUC
    and F1."""
    found: dict[str, list[Downstream]] = {}
    epsilon = EPSILON[rows]
    for seed in range(seeds):
        codes, drawn = noisy_or(seed, rows + 2000)
        real, held = ({n: c[part] for n, c in codes.items()} for part in (slice(rows), slice(rows, None)))
        sizes = dict.fromkeys(codes, 2)
        rng = np.random.default_rng(seed)
        targets = rng.choice(list(sizes), 20, replace=False).tolist()
        plan = {"epsilon": epsilon, "neighbors": "add-remove", "rows": rows, "delta": rows**-2.0}
        ways: dict[str, Callable[[], Codes]] = {
            "no arrows, DP": functools.partial(released, real, sizes, drawn[:1], latent=LATENT, **plan),
            "no arrows, not private": functools.partial(plain_vae, real, sizes, PASSES, rng),
            "arrows, DP": functools.partial(released, real, sizes, drawn, **plan),
            "arrows, not private": functools.partial(not_private, real, sizes, drawn, rng),
        }
        for name, made in ways.items():
            if name.startswith(only):
                tables, said = Tables(real, made(), held, sizes), functools.partial(_told, f"{rows} rows, {name}")
                found.setdefault(name, []).append(downstream(tables, np.random.default_rng(seed), targets, said))
    first = next(iter(found.values()))
    levels = [100 * _over(first, "accuracy_real", c) for c in CLASSIFIERS]
    print(f"\r{rows} rows, tables: {seeds}, ε = {epsilon:g} (add-remove, δ = 1/n²)")
    print(f"points of accuracy lost: {' '.join(CLASSIFIERS)}")
    print(f"{'real rows, accuracy in %':<26} {_cells(levels)}")
    for name, runs in found.items():
        lost = [100 * (_over(runs, "accuracy_real", c) - _over(runs, "accuracy_synthetic", c)) for c in CLASSIFIERS]
        figures = {f: _over(runs, f) for f in ("auc_real", "auc_synthetic", "f1_real", "f1_synthetic")}
        print(f"{name:<26} {_cells(lost)}   the paper {_cells(PAPER[rows, name])}")
        print(f"{'':<26} {'  '.join(f'{f} {v:.3f}' for f, v in figures.items())}", flush=True)


def _over(runs: Sequence[Downstream], figure: str, classifier: str | None = None) -> float:
    return float(np.mean([run.macro(classifier)[figure] for run in runs]))


def _cells(values: Sequence[float]) -> str:
    return " ".join(f"{v:6.2f}" for v in values)


# --- the paper's attack, with both kinds of split ---------------------------------------------------------------------

TARGETS, SAMPLES, SAMPLE_ROWS = 5, 100, 100
FOLDS = 3


def leak(trainings: int, rows: int = 1000) -> None:
    """Print the accuracy by features and classifier, with a third of the releases or of the models held out."""
    codes, drawn = noisy_or(0, rows)
    sizes, rng = dict.fromkeys(codes, 2), np.random.default_rng(0)
    epsilon, delta = EPSILON[rows], rows**-2.0
    releases, inside = [], []
    for target in rng.choice(rows, TARGETS, replace=False):
        without = {n: np.delete(c, target) for n, c in codes.items()}
        for training in range(trainings):
            _say(f"row {target}, training {training + 1} of {trainings}")
            for there, table in ((True, codes), (False, without)):
                plan = {"epsilon": epsilon, "delta": delta, "neighbors": "add-remove", "rows": SAMPLES * SAMPLE_ROWS}
                made = released(table, sizes, drawn, **plan)
                releases.append([{n: c[part] for n, c in made.items()} for part in _samples()])
                inside.append(there)
    mu = math.sqrt(2 * rho_of(epsilon, delta))
    top = 0.5 * math.erfc(-mu / 2 / math.sqrt(2))
    print(f"decoder, ε = {epsilon:g}, add-remove, {len(inside)} models × {SAMPLES} releases of {SAMPLE_ROWS} rows")
    print(f"Gaussian noise of this budget allows an accuracy of {top:.3f}, any (ε, 0) mechanism {_pure(epsilon):.3f}")
    print("| features | classifier | split | accuracy | probability of attack | of absence |\n" + "| --- " * 6 + "|")
    for name in SUMMARIES:
        x = np.array([SUMMARIES[name](r, sizes).astype(np.float32) for of_model in releases for r in of_model])
        for classifier in get_args(Classifier):
            for split, figures in both_splits(x, np.array(inside), classifier, rng).items():
                print(f"| {name} | {classifier} | {split} |" + "".join(f" {f:.3f} |" for f in figures), flush=True)


def _samples() -> list[slice]:
    return [slice(i * SAMPLE_ROWS, (i + 1) * SAMPLE_ROWS) for i in range(SAMPLES)]


def _pure(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def split_both_ways(
    x: NDArray[Any], inside: NDArray[np.bool_], classifier: Classifier, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the accuracy of ``classifier`` on a random third of the releases, and on unseen models (three folds)."""
    random, by_model = both_splits(x, inside, classifier, rng).values()
    return random[0], by_model[0]


def both_splits(
    x: NDArray[Any], inside: NDArray[np.bool_], classifier: Classifier, rng: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    """Return the accuracy and the probabilities of attack and of absence, on a random third of the releases and on
    unseen models.

    ``x`` are features of releases, grouped by model, with the same number of releases for each; ``inside`` is by model.
    The probability of attack is the probability of predicting *in* if the target was in, and the probability of absence
    is the probability of predicting *out* if it was not.
    """
    model = np.repeat(np.arange(len(inside)), len(x) // len(inside))
    y = inside[model]
    third = rng.random(len(y)) < 1 / 3
    ins, outs = (rng.permutation(np.flatnonzero(inside == side)) for side in (True, False))
    folds = [np.isin(model, np.concatenate([ins[i::FOLDS], outs[i::FOLDS]])) for i in range(FOLDS)]
    random = _right(x, y, third, classifier)
    by_model = np.concatenate([_right(x, y, fold, classifier) for fold in folds])
    truth = np.concatenate([y[fold] for fold in folds])
    return {"releases": _figures(random, y[third]), "models": _figures(by_model, truth)}


def _figures(right: NDArray[np.bool_], inside: NDArray[np.bool_]) -> tuple[float, float, float]:
    return float(right.mean()), float(right[inside].mean()), float(right[~inside].mean())


def _right(
    x: NDArray[Any], y: NDArray[np.bool_], tested: NDArray[np.bool_], classifier: Classifier
) -> NDArray[np.bool_]:
    """Return which tested releases a classifier judges correctly, if it is trained on at most `TRAINED` of the
    others."""
    rest = np.flatnonzero(~tested)
    some = rest[:: max(1, len(rest) // TRAINED)]
    return np.asarray(predicted(classifier, x[some], y[some], x[tested]) == y[tested])


def predicted(classifier: Classifier, x: NDArray[Any], y: NDArray[np.bool_], new: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the predictions for ``new`` of a classifier fitted to ``x`` and ``y``.

    Support vector machines get their kernel as one matrix product, which takes a tenth of the time with 26,000
    features.
    """
    if classifier not in ("svc", "kernel"):
        return np.asarray(learner(classifier).fit(x, y).predict(new))
    scaler, machine = (step for _, step in learner(classifier).steps)
    x = scaler.fit_transform(x)
    kernel = linear_kernel if classifier == "svc" else functools.partial(rbf_kernel, gamma=1 / (x.shape[1] * x.var()))
    machine.set_params(kernel="precomputed").fit(kernel(x, x), y)
    return np.asarray(machine.predict(kernel(scaler.transform(new), x)))


TRAINED = 1_000
"""Approximate number of releases for training a classifier. The cost of a support vector machine is quadratic."""


# --- the membership game ------------------------------------------------------------------------------------------

ATTACK_DELTA = 1e-5
ATTACKED = ["age", "sex", "education", "marital-status", "occupation", "relationship", "hours-per-week", "income"]
SUMMARISED = 8


def attack(models: int, only: str) -> None:
    """Print AUC by attack and method, on random and on outlying targets, with the control and the ceiling."""
    from benchmarks.prism import adult_public_bins

    table = adult_public_bins()
    rng = np.random.default_rng(1)
    pool = rng.choice(table.rows, 1000, replace=False)
    sizes = {n: table.schema.sizes[n] for n in ATTACKED}
    drawn = [(cause, effect) for cause, effect in arrows(ADULT) if cause in sizes and effect in sizes]
    game = Game({n: table.codes[n][pool] for n in sizes}, sizes, 500, models)
    chosen, outlying = choose_targets(game, 20, rng)
    some = np.linspace(0, len(chosen) - 1, SUMMARISED).astype(int)
    kinds: dict[Attack, Targets] = {"density": (chosen, outlying), "histogram": (chosen[some], outlying[some])}

    def private(**plan: Any) -> Callable[[Codes, np.random.Generator], Codes]:
        return lambda codes, _: released(codes, sizes, drawn, delta=ATTACK_DELTA, **plan)

    methods: dict[str, Callable[[Codes, np.random.Generator], Codes]] = {
        "real rows (control)": publish,
        "VAE, not private": lambda codes, rng: plain_vae(codes, sizes, OVERFITTED, rng),
        "decoder, not private": lambda codes, rng: not_private(codes, sizes, drawn, rng),
        "decoder, ε = 1": private(),
        "prism, ε = 1": private(method="prism", target="income"),
        "mst, ε = 1": private(method="mst"),
    }
    print(f"{models} models of 500 of 1,000 rows; ceiling at ε = 1: {ceiling(rho_of(1.0, ATTACK_DELTA), Unit()):.3f}")
    start = time.process_time()
    controls: dict[Attack, AttackResult] = {}
    for name, synthesise in methods.items():
        if controls and only not in name:
            continue
        shadows = shadow_releases(game, synthesise, rng, functools.partial(_told, name))
        for kind, targets in kinds.items():
            said = functools.partial(_told, f"{name}, {kind}")
            found = run(kind, game, shadows, targets, rng, said)
            controls.setdefault(kind, found)
            print(
                f"\r{name:<24} {kind:<10} random {found.random:.3f} outlying {found.outlying:.3f} advantage "
                f"{found.advantage.value:.3f}; {found.says(controls[kind])}; {time.process_time() - start:.0f} CPU s",
                flush=True,
            )


def _told(what: str, _: float, message: str) -> None:
    _say(f"{what}: {message}")


def _say(message: str) -> None:
    print(f"\r{message:<60}", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.causal_vae", description=__doc__)
    parser.add_argument("what", nargs="*", default=["utility", "leak", "attack"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 5000], choices=list(EPSILON))
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--trainings", type=int, default=5, help="of `leak`, with and without each row")
    opt = parser.parse_args()
    for what in opt.what:
        if what == "utility":
            for rows in opt.rows:
                utility(rows, opt.seeds, opt.only)
        elif what == "leak":
            leak(opt.trainings)
        elif what == "attack":
            attack(opt.models, opt.only)
        else:
            parser.error(f"there is no benchmark {what!r}")


if __name__ == "__main__":
    main()
