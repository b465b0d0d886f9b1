"""Tables on which rules are chosen, and other tables on which the chosen rules are reported.

``CHOSEN`` are Adult in two codings, COMPAS, diabetes and draws from three networks. ``BINARY`` are draws from random
networks of binary columns. ``REPORTED`` are insurance, LUCAS and draws from the same networks with other seeds, sizes
and targets. ``CHOSEN`` and ``REPORTED`` contain rare outcomes. A case is loaded when it is requested. Bins of the real
tables are public round numbers or, in tables named "quantile bins", the bins of PRISM's paper.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from benchmarks.adult import DATA
from benchmarks.common import auc
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

FOLDER = DATA.parent


@dataclass(frozen=True)
class Case:
    """A table with its target, a column with two values."""

    name: str
    target: str
    load: Callable[[], Table]

    def split(self, seed: int) -> tuple[Table, Table]:
        """Return four fifths of the rows for a release and a fifth for evaluation, stratified by the target."""
        whole = _loaded(self)
        train, test = train_test_split(
            np.arange(whole.rows), test_size=0.2, stratify=whole.codes[self.target], random_state=seed
        )
        return whole.take(train), whole.take(test)


@cache
def _loaded(case: Case) -> Table:
    return case.load()


def judge(codes: Mapping[str, NDArray[Any]], train: Table, test: Table, target: str) -> dict[str, float]:
    """Return the fidelity of ``codes`` to ``train``, and the AUC on ``test`` of a logistic regression on them."""
    sizes = train.schema.sizes
    rows = len(codes[target])
    made = Table(train.schema, codes, rows)

    def tv(clique: tuple[str, ...]) -> float:
        return 0.5 * float(np.abs(made.count(clique) / rows - train.count(clique) / train.rows).sum())

    pairs = list(itertools.combinations(sizes, 2))
    if len(pairs) > 2000:
        chosen = np.random.default_rng(0).choice(len(pairs), 2000, replace=False)
        pairs = [pairs[i] for i in chosen]
    return {
        "auc": predicted(codes, test, target),
        "two_way_tv": float(np.mean([tv(pair) for pair in pairs])),
        "one_way_l1": 2 * float(np.mean([tv((n,)) for n in sizes])),
    }


def predicted(codes: Mapping[str, NDArray[Any]], test: Table, target: str) -> float:
    """Return the AUC on ``test`` of a logistic regression fitted to ``codes``."""
    if len(np.unique(codes[target])) < 2:
        return 0.5
    sizes = test.schema.sizes
    names = [n for n in sizes if n != target]
    model = LogisticRegression(max_iter=300, tol=1e-3).fit(_sparse(codes, sizes, names), codes[target])
    return auc(test.codes[target], model.decision_function(_sparse(test.codes, sizes, names)))


def _sparse(codes: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], names: list[str]) -> Any:
    """Return one-hot columns."""
    rows = len(codes[names[0]])
    ends = np.cumsum([0, *(sizes[n] for n in names)])
    index = np.stack([codes[n].astype(np.int64) + start for n, start in zip(names, ends, strict=False)], axis=1)
    marks = np.ones(index.size)
    return csr_matrix((marks, index.ravel(), np.arange(0, index.size + 1, len(names))), shape=(rows, int(ends[-1])))


def by_codes(columns: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Table:
    """Return a table of codes, with categories named by number."""
    schema = Schema(tuple(Column(n, "categorical", tuple(map(str, range(k)))) for n, k in sizes.items()))
    return Table(schema, columns, len(next(iter(columns.values()))))


def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / name, keep_default_na=False, low_memory=False)


def _binned(frame: pd.DataFrame, edges: Mapping[str, tuple[float, ...]], kept: list[str]) -> Table:
    """Return categories unchanged and numbers in bins [edge, next edge); the categories are assumed to be public."""
    codes, sizes = {}, {}
    for name in kept:
        if name in edges:
            codes[name] = np.searchsorted(edges[name], pd.to_numeric(frame[name]).to_numpy(), side="right")
            sizes[name] = len(edges[name]) + 1
        else:
            values = np.unique(frame[name].astype(str), return_inverse=True)
            codes[name], sizes[name] = values[1], len(values[0])
    return by_codes(codes, sizes)


def _adult() -> Table:
    from benchmarks.adult import adult_project
    from espalier.core.tables.reading import read_table

    return Table.encode(read_table(DATA), adult_project("mst").schema)


def _adult_quantile() -> Table:
    from benchmarks.prism import adult_quantile_bins

    return adult_quantile_bins()


def _compas() -> Table:
    edges = {
        "age": (21, 25, 30, 35, 40, 45, 50, 60),
        "juv_fel_count": (1, 2),
        "juv_misd_count": (1, 2),
        "juv_other_count": (1, 2),
        "priors_count": (1, 2, 3, 4, 6, 9, 14),
        "decile_score": (2, 3, 4, 5, 6, 7, 8, 9),
    }
    return _binned(_read("compas.csv.gz"), edges, ["sex", *edges, "race", "c_charge_degree", "is_recid"])


def _diabetes(rare: bool, rows: int) -> Callable[[], Table]:
    def load() -> Table:
        frame = _read("diabetes_readmission_20k.csv.gz")[:rows]
        frame["readmitted"] = frame["readmitted"] == "<30" if rare else frame["readmitted"] != "NO"
        frame["diag_1"] = pd.to_numeric(frame["diag_1"], errors="coerce").fillna(-1)
        edges = {
            "time_in_hospital": (2, 3, 4, 5, 6, 8, 10),
            "num_lab_procedures": (20, 30, 40, 50, 60, 70),
            "num_procedures": (1, 2, 3, 4),
            "num_medications": (6, 10, 14, 18, 22, 28),
            "number_outpatient": (1, 2, 4),
            "number_emergency": (1, 2, 4),
            "number_inpatient": (1, 2, 3, 5),
            "number_diagnoses": (4, 6, 8, 9),
            "diag_1": (0, 140, 240, 280, 390, 460, 520, 580, 630, 680, 710, 740, 780, 800),
            "discharge_disposition_id": (2, 3, 6, 7, 11, 12, 18),
            "admission_source_id": (2, 7, 8),
        }
        plain = [
            "race",
            "gender",
            "age",
            "admission_type_id",
            "payer_code",
            "max_glu_serum",
            "A1Cresult",
            "metformin",
            "glipizide",
            "glyburide",
            "insulin",
            "change",
            "diabetesMed",
            "readmitted",
        ]
        return _binned(frame, edges, [*edges, *plain])

    return load


def _insurance() -> Table:
    frame = _read("insurance.csv")
    frame["charges"] = frame["charges"] > 15_000
    edges = {"age": (25, 30, 35, 40, 45, 50, 55, 60), "bmi": (20, 25, 30, 35, 40)}
    return _binned(frame, edges, [*edges, "sex", "children", "smoker", "region", "charges"])


def _lucas() -> Table:
    return _binned(_read("lucas0.csv"), {}, list(_read("lucas0.csv").columns))


_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{[^{]*\{([^}]*)\}")
_TABLE = re.compile(r"probability\s*\(\s*([^)|]+?)\s*(?:\|([^)]*))?\)\s*\{([^}]*)\}")
_ROW = re.compile(r"(?:\(([^)]*)\)|table)\s*([^;]*);")


def drawn(network: str, rows: int, seed: int) -> Table:
    """Return ``rows`` rows of the network in ``network``.bif."""
    text = (FOLDER / f"{network}.bif").read_text("utf-8")
    values = {name: [v.strip() for v in states.split(",")] for name, states in _VARIABLE.findall(text)}
    rng, codes = np.random.default_rng(seed), dict[str, NDArray[Any]]()
    tables = {
        name: ([p.strip() for p in above.split(",") if p.strip()], body) for name, above, body in _TABLE.findall(text)
    }
    while len(codes) < len(values):
        for name, (parents, body) in tables.items():
            if name in codes or not all(p in codes for p in parents):
                continue
            chance = np.zeros([*(len(values[p]) for p in parents), len(values[name])])
            for given, numbers in _ROW.findall(body):
                states = [s.strip() for s in given.split(",")] if parents else []
                spot = tuple(values[p].index(s) for p, s in zip(parents, states, strict=True))
                chance[spot] = [float(x) for x in numbers.split(",")]
            ladder = np.cumsum(chance, axis=-1)[tuple(codes[p] for p in parents)]
            below = rng.random(rows)[:, None] > np.broadcast_to(ladder, (rows, len(values[name])))[:, :-1]
            codes[name] = below.sum(axis=1)
    return by_codes({name: codes[name] for name in values}, {name: len(states) for name, states in values.items()})


def network_arrows(network: str) -> list[tuple[str, str]]:
    """Return (cause, effect) for every arrow of the network in ``network``.bif."""
    text = (FOLDER / f"{network}.bif").read_text("utf-8")
    return [(p.strip(), name) for name, above, _ in _TABLE.findall(text) for p in above.split(",") if p.strip()]


def _binary(seed: int) -> Callable[[], Table]:
    """Return 2,000 rows of a random network of twelve binary columns, each with at most two of the preceding columns as
    parents.
    """
    return lambda: _binary_network(seed)[0]


def binary_arrows(seed: int) -> list[tuple[str, str]]:
    """Return (cause, effect) for every arrow of the binary network ``seed``."""
    return _binary_network(seed)[1]


def _binary_network(seed: int) -> tuple[Table, list[tuple[str, str]]]:
    rng, codes = np.random.default_rng(seed), dict[str, NDArray[Any]]()
    arrows: list[tuple[str, str]] = []
    for i in range(12):
        wanted = min(i, int(rng.integers(0, 3)) if i else 0)
        if i and rng.random() < 0.85:
            wanted = max(wanted, 1)
        parents = [f"x{j}" for j in rng.choice(i, wanted, replace=False)] if wanted else []
        chance = rng.beta(0.7, 0.7, size=[2] * wanted)
        ones = chance[tuple(codes[p] for p in parents)] if parents else chance
        codes[f"x{i}"] = (rng.random(2_000) < ones).astype(np.int64)
        arrows += [(p, f"x{i}") for p in parents]
    return by_codes(codes, dict.fromkeys(codes, 2)), arrows


def _network(network: str, target: str, rows: int, seed: int) -> Case:
    return Case(f"{network} {rows // 1000}k, {target}", target, lambda: drawn(network, rows, seed))


CHOSEN = (
    Case("adult", "income", _adult),
    Case("adult, quantile bins", "income", _adult_quantile),
    Case("compas", "is_recid", _compas),
    Case("diabetes", "readmitted", _diabetes(False, 20_000)),
    Case("diabetes 8k, rare", "readmitted", _diabetes(True, 8_000)),
    _network("asia", "lung", 3_000, 1),
    _network("asia", "bronc", 50_000, 2),
    _network("child", "BirthAsphyxia", 5_000, 3),
    _network("child", "Sick", 20_000, 4),
    _network("alarm", "LVFAILURE", 8_000, 5),
    _network("alarm", "HYPOVOLEMIA", 30_000, 6),
)


def binary_case(seed: int) -> Case:
    """Return a random network of binary columns. The sixth column is the target."""
    return Case(f"binary network {seed}", "x5", _binary(seed))


BINARY = tuple(map(binary_case, range(6)))
"""Tables on which the workload method's settings for few binary columns and rows were chosen."""

REPORTED = (
    Case("insurance", "charges", _insurance),
    Case("lucas", "Lung_cancer", _lucas),
    _network("asia", "dysp", 10_000, 11),
    _network("child", "LVH", 10_000, 12),
    _network("child", "GruntingReport", 3_000, 13),
    _network("alarm", "LVFAILURE", 50_000, 14),
    _network("alarm", "PULMEMBOLUS", 20_000, 15),
)
