"""Forged releases against the checker: `python -m benchmarks.forgeries [forge] [alarms] [adult] [--seeds 3]`.

``forge``: each kind of forgery, on three methods and some seeds. The forger has the program, the private table, the
ledger and the signer's key: all exports and digests are made again, and the release is signed as its own signer.
Kinds of the group ``files`` skip that, so that catches by digest or signature count apart.

``alarms``: honest releases over all methods, units and options; no check may fail.

``adult``: time and memory of the checker on releases of Adult.
"""

from __future__ import annotations

import argparse
import base64
import collections
import hashlib
import io
import itertools
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Clique
from espalier.core.ledger.archive import ADDED
from espalier.core.ledger.ledger import Ledger
from espalier.core.methods.marginals import Marginals
from espalier.core.models.graphical import GraphicalModel
from espalier.core.privacy.draws import Draw, Measurement
from espalier.core.privacy.spending import Spending
from espalier.core.project.constraint_kinds import Impossible
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Column, Schema, to_buy
from espalier.core.release import Release, release
from espalier.core.statement import claims as statement
from espalier.core.statement.keys import Signer
from espalier.core.tables.table import Table
from espalier.verifier.check import verify

METHODS = ("privci", "prism", "privbayes")
ROWS = 3000
Files = dict[str, bytes]


def table(seed: int, rows: int = ROWS) -> Table:
    """Eight columns with associations, a numeric one and one that may be missing."""
    rng = np.random.default_rng(seed)
    a = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    b = (a + (rng.random(rows) < 0.3)) % 4
    c = (b + (rng.random(rows) < 0.25)) % 2
    d = rng.binomial(5, 0.3 + 0.3 * c)
    e = (d + rng.integers(0, 2, rows)) % 3
    f = np.where(rng.random(rows) < 0.1, 2, (rng.random(rows) < 0.2 + 0.5 * (a == 1)).astype(int))
    g = rng.choice(6, rows, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01])
    h = (g + e) % 3
    columns = (
        Column("a", "categorical", ("x", "y", "z")),
        Column("b", "categorical", ("p", "q", "r", "s")),
        Column("c", "categorical", ("no", "yes")),
        Column("d", "numeric", edges=(0, 1, 2, 3, 4, 5, 10), integer=True),
        Column("e", "ordinal", ("low", "mid", "high")),
        Column("f", "categorical", ("u", "v"), missing=True),
        Column("g", "categorical", tuple("123456")),
        Column("h", "ordinal", ("first", "second", "third")),
    )
    codes = dict(zip("abcdefgh", (a, b, c, d, e, f, g, h), strict=True))
    numbers = {"d": d.astype(float)}
    return Table(Schema(columns), {n: v.astype(np.uint8) for n, v in codes.items()}, rows, values=numbers)


def frame(rows: Table) -> Any:
    """The table as a data frame, with a column that names a person for every two rows."""
    import pandas as pd

    rng = np.random.default_rng(0)
    cells = {c.name: c.decode(rows.codes[c.name], rng) for c in rows.schema.columns}
    return pd.DataFrame(
        {**cells, "d": rows.values["d"].astype(int), "person": [f"P{i // 2}" for i in range(rows.rows)]}
    )


def signer() -> Signer:
    """A fresh key, in memory."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    return Signer(private, private.public_key().public_bytes_raw())


def public_pem(key: Signer) -> bytes:
    """The public key as a PEM file."""
    from cryptography.hazmat.primitives import serialization

    made: bytes = key.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return made


@dataclass
class Case:
    """An honest release of ``rows`` for a forger to change; ``other`` is another one by the same method."""

    method: str
    seed: int
    key: Signer
    ledger: Ledger

    @cached_property
    def rows(self) -> Table:
        """The private table."""
        return table(self.seed)

    def project(self, **changes: Any) -> Project:
        """The project: the target is ``c``, and the roles name an outcome that privci keeps from a protected column."""
        plan = Plan(self.method, **{"epsilon": 1.0, "delta": 1e-6, "target": "c", **changes})
        roles = Roles(outcome=("c",), protected=("g",), admissible=("b", "d"))
        return Project("clinic", self.rows.schema, plan, roles=roles, one_row_per_person=True)

    @cached_property
    def honest(self) -> Release:
        """The release, recorded in the ledger and signed."""
        name = f"{self.method}-{self.seed}"
        self.ledger.open_table(name, who="steward", epsilon=3.0, delta=1e-6)
        return release(
            self.project(), self.rows, ledger=self.ledger.account(name, "steward", again=True), signer=self.key
        )

    @cached_property
    def other(self) -> Release:
        """Another release of another table, not recorded."""
        project = replace(self.project(epsilon=2.0), name="other clinic")
        return release(project, table(self.seed + 100), signer=self.key)

    @property
    def fitted(self) -> Marginals:
        """The noisy counts."""
        assert isinstance(self.honest.fitted, Marginals)
        return self.honest.fitted

    def exact(self, clique: Clique) -> Any:
        """The private table's counts."""
        return self.rows.count(clique).astype(float)

    def made(self, **changes: Any) -> Release:
        """The honest release with other records: exports, report, digests and signature follow from them."""
        return replace(self.honest, **changes)

    def drawn(self, change: Callable[[int, Draw], Draw | None], **changes: Any) -> Release:
        """The release with changed draws; the counts follow their scales, and ρ adds up."""
        draws = [change(i, d) for i, d in enumerate(self.honest.spending.draws)]
        kept = [d for d in draws if d is not None]
        return self.made(spending=Spending(self.honest.budget.rho, kept), **changes)

    def counted(self, values: Callable[[Measurement], Any], refit: bool = True, **changes: Any) -> Release:
        """The release with other counts, its model fitted to them, and rows drawn from that."""
        fitted = replace(
            self.fitted, measurements=tuple(replace(m, values=values(m)) for m in self.fitted.measurements)
        )
        if not refit:
            return self.made(fitted=fitted, **changes)
        return self.refitted(fitted.model(), fitted=fitted, **changes)

    def refitted(self, model: Any, **changes: Any) -> Release:
        """The release with another model, and rows drawn from it."""
        rng = np.random.default_rng()
        return self.with_codes(model.sample(self.honest.rows, rng, even=True), model=model, **changes)

    def with_codes(self, codes: Mapping[str, Any], **changes: Any) -> Release:
        """The release with other rows."""
        rng, schema = np.random.default_rng(), self.honest.project.schema
        text = {c.name: c.decode(codes[c.name], rng) for c in schema.columns}
        return self.made(codes=codes, table=text, **changes)

    def resealed(self, files: Files, change: Callable[[dict[str, Any]], None] | None = None) -> Files:
        """``files`` with a statement of their digests, ``change``\\ d before it is signed."""
        made = json.loads(files[statement.STATEMENT])
        if change is not None:
            change(made)
        made = statement.sealed(made, {n: d for n, d in files.items() if n not in ADDED})
        return {**files, statement.STATEMENT: statement.text(made), statement.SIGNATURE: self.key.sign(made)}

    def replanned(self, **changes: Any) -> Project:
        """The project with another plan."""
        return replace(self.honest.project, plan=self.honest.project.plan.changed(**changes))


@dataclass(frozen=True)
class Kind:
    """A kind of forgery: ``make`` returns the files, and perhaps an export; None where a method has no such thing."""

    name: str
    group: str
    make: Callable[[Case], Files | tuple[Files, dict[str, Any]] | None]
    detectable: bool = True
    why: str = ""


KINDS: list[Kind] = []


def kind(group: str, *, detectable: bool = True, why: str = "") -> Callable[[Any], Any]:
    """Register a forgery under its function's name."""

    def add(make: Any) -> Any:
        KINDS.append(Kind(make.__name__.replace("_", " "), group, make, detectable, why))
        return make

    return add


def first(case: Case, kinds: str) -> int:
    """The place of the first draw of a kind; −1 if there is none."""
    return next((i for i, d in enumerate(case.honest.spending.draws) if d.kind == kinds), -1)


def one(case: Case, at: int, **changes: Any) -> Release | None:
    """The release with one changed draw, whose measurement follows it."""
    if at < 0:
        return None
    old = case.honest.spending.draws[at]
    new = replace(old, **changes)
    found = [m for m in case.fitted.measurements if (m.clique, m.sigma) == (old.columns, old.scale)]
    counts = tuple(
        replace(m, sigma=new.scale, rho=new.rho) if any(m is f for f in found[:1]) else m
        for m in case.fitted.measurements
    )
    fitted = replace(case.fitted, measurements=counts)
    return case.drawn(lambda i, d: new if i == at else d, fitted=fitted)


# --- budget ---------------------------------------------------------------------------------------------------------


@kind("budget")
def sigma_stated_too_small(case: Case) -> Files | None:
    at = first(case, "count")
    made = one(case, at, scale=case.honest.spending.draws[at].scale / 2)
    return made.files if made else None


@kind("budget")
def sigma_stated_too_large(case: Case) -> Files | None:
    at = first(case, "count")
    made = one(case, at, scale=case.honest.spending.draws[at].scale * 2)
    return made.files if made else None


@kind("budget")
def scale_of_a_choice_halved(case: Case) -> Files | None:
    at = first(case, "choice")
    made = one(case, at, scale=case.honest.spending.draws[at].scale / 2) if at >= 0 else None
    return made.files if made else None


@kind("budget")
def rho_of_a_draw_understated(case: Case) -> Files | None:
    at = first(case, "count")
    made = one(case, at, rho=case.honest.spending.draws[at].rho / 10)
    return made.files if made else None


@kind("budget")
def sensitivity_too_small(case: Case) -> Files | None:
    def change(_: int, d: Draw) -> Draw:
        return replace(d, sensitivity=1.0, rho=d.rho / 2) if d.kind == "count" else d

    return case.drawn(change).files


@kind("budget")
def sensitivity_of_one_draw_too_small(case: Case) -> Files | None:
    d = case.honest.spending.draws[at := first(case, "count")]
    made = one(case, at, sensitivity=d.sensitivity / 2, rho=d.rho / 4)
    return made.files if made else None


@kind("budget")
def recipe_of_a_smaller_sensitivity(case: Case) -> Files | None:
    at = first(case, "choice")
    if at < 0:
        return None
    d = case.honest.spending.draws[at]
    made = one(case, at, recipe="worst-question", given=(), sensitivity=1.0, rho=0.5 / d.scale**2)
    return made.files if made else None


@kind("budget")
def feature_score_called_edge_score(case: Case) -> Files | None:
    at = next((i for i, d in enumerate(case.honest.spending.draws) if d.recipe == "feature-score"), -1)
    if at < 0:
        return None
    d = case.honest.spending.draws[at]
    made = one(case, at, recipe="edge-score", given=(), sensitivity=2.0, rho=2 / d.scale**2)
    return made.files if made else None


@kind("budget")
def epsilon_promised_too_small(case: Case) -> Files:
    budget = replace(case.honest.budget, epsilon=0.5)
    return case.made(budget=budget, project=case.replanned(epsilon=0.5)).files


@kind("budget")
def delta_promised_too_small(case: Case) -> Files:
    budget = replace(case.honest.budget, delta=1e-12)
    return case.made(budget=budget, project=case.replanned(delta=1e-12)).files


@kind("budget")
def delta_too_large(case: Case) -> Files:
    budget = replace(case.honest.budget, delta=0.1)
    return case.made(budget=budget, project=case.replanned(delta=0.1)).files


@kind("budget")
def epsilon_spent_altered(case: Case) -> Files:
    made = case.honest.to_json()
    made["spent"] = {**made["spent"], "epsilon": made["spent"]["epsilon"] / 2}
    forged = case.made()
    forged.__dict__["_facts"] = made
    return forged.files


@kind("budget")
def rho_spent_altered(case: Case) -> Files:
    made = case.honest.to_json()
    made["spent"] = {**made["spent"], "rho": made["spent"]["rho"] / 2}
    forged = case.made()
    forged.__dict__["_facts"] = made
    return forged.files


@kind("budget")
def unit_called_add_remove(case: Case) -> Files:
    return case.made(project=case.replanned(neighbors="add-remove", rows=ROWS), counted=None).files


@kind("budget")
def five_rows_per_person_called_protected(case: Case) -> Files:
    project = replace(case.honest.project, one_row_per_person="unasked")
    return case.made(project=replace(project, plan=project.plan.changed(rows_per_person=5))).files


@kind("budget")
def number_of_rows_inflated(case: Case) -> Files:
    def change(_: int, d: Draw) -> Draw:
        if d.recipe != "feature-score":
            return d
        less = (3 + 2 / 1e6) / (3 + 2 / ROWS)
        return replace(d, given=(("rows", 10**6),), sensitivity=d.sensitivity * less, rho=d.rho * less**2)

    return case.drawn(change, counted=10**6, fitted=replace(case.fitted, rows=10**6)).files


@kind("budget")
def a_count_removed_from_the_draws(case: Case) -> Files:
    at = first(case, "count")
    return case.drawn(lambda i, d: None if i == at else d).files


@kind("budget")
def a_choice_removed(case: Case) -> Files | None:
    at = first(case, "choice")
    return None if at < 0 else case.drawn(lambda i, d: None if i == at else d).files


def all_choices_removed(case: Case) -> Release | None:
    """The release without its choices, and with the ε that the other draws cost."""
    from espalier.core.privacy.accounting import epsilon_of

    if first(case, "choice") < 0:
        return None
    forged = case.drawn(lambda _, d: None if d.kind == "choice" else d)
    epsilon = epsilon_of(forged.spending.rho, 1e-6) * (1 + 1e-6)
    budget = replace(case.honest.budget, epsilon=epsilon, rho=forged.spending.rho)
    return replace(forged, budget=budget, project=case.replanned(epsilon=epsilon))


@kind("budget")
def all_choices_removed_and_epsilon_lowered(case: Case) -> Files | None:
    made = all_choices_removed(case)
    return made.files if made else None


@kind("budget")
def two_draws_called_parallel(case: Case) -> Files:
    from espalier.core.evaluation.private.evaluation import PrivateEvaluation

    draws = [d for d in case.honest.spending.draws if d.kind == "count"][:2]
    found = [next(m for m in case.fitted.measurements if m.clique == d.columns) for d in draws]
    held = tuple(replace(d, held_out=True) for d in draws)
    judged = PrivateEvaluation(0.1, "row", None, 300, math.fsum(d.rho for d in held), tuple(found), (), held)
    forged = case.drawn(lambda _, d: None if any(d is x for x in draws) else d, private_evaluation=judged)
    return replace(forged, project=case.replanned(private_evaluation=0.1)).files


@kind("budget")
def a_choice_called_parallel(case: Case) -> Files | None:
    from espalier.core.evaluation.private.evaluation import PrivateEvaluation

    at = first(case, "choice")
    if at < 0:
        return None
    held = (replace(case.honest.spending.draws[at], held_out=True),)
    judged = PrivateEvaluation(0.1, "row", None, 300, held[0].rho, (), (), held)
    forged = case.drawn(lambda i, d: None if i == at else d, private_evaluation=judged)
    return replace(forged, project=case.replanned(private_evaluation=0.1)).files


@kind("budget")
def a_free_threshold_added(case: Case) -> Files:
    d = case.honest.spending.draws[0]
    slip = replace(d, kind="schema", what="categories", recipe="threshold", given=(("threshold", 2),), delta=1e-9)
    draws = [*case.honest.spending.draws, replace(slip, rho=1e-9)]
    return case.made(spending=Spending(1.0, draws)).files


# --- noise ----------------------------------------------------------------------------------------------------------


@kind("noise")
def noise_left_out(case: Case) -> Files:
    return case.counted(lambda m: case.exact(m.clique)).files


@kind("noise")
def a_tenth_of_the_noise(case: Case) -> Files:
    return case.counted(lambda m: np.rint(0.9 * case.exact(m.clique) + 0.1 * m.values)).files


@kind("noise")
def a_third_of_the_noise(case: Case) -> Files:
    return case.counted(lambda m: np.rint(case.exact(m.clique) + (m.values - case.exact(m.clique)) / 3)).files


@kind("noise")
def three_times_the_noise(case: Case) -> Files:
    return case.counted(lambda m: case.exact(m.clique) + 3 * (m.values - case.exact(m.clique))).files


@kind("noise")
def noise_left_out_of_the_one_way_counts(case: Case) -> Files | None:
    if not any(len(m.clique) == 1 for m in case.fitted.measurements):
        return None
    return case.counted(lambda m: case.exact(m.clique) if len(m.clique) == 1 else m.values).files


@kind("noise", detectable=False, why="its margins are compared with counts that are noisier than they are")
def noise_left_out_of_one_pair(case: Case) -> Files:
    pair = max((m for m in case.fitted.measurements), key=lambda m: len(m.clique))
    return case.counted(lambda m: case.exact(m.clique) if m.clique == pair.clique else m.values).files


@kind("noise", detectable=False, why="directions without overlap")
def noise_left_out_where_nothing_overlaps(case: Case) -> Files:
    """Only the interaction of each table, which no other count holds, is exact."""

    def values(m: Measurement) -> Any:
        if len(m.clique) < 2:
            return m.values
        exact, noise = case.exact(m.clique), m.values - case.exact(m.clique)
        margins = sum(
            noise.mean(axis=tuple(j for j in range(noise.ndim) if j != i), keepdims=True) for i in range(noise.ndim)
        )
        return np.rint(exact + margins - (noise.ndim - 1) * noise.mean())

    return case.counted(values).files


@kind("noise")
def counts_that_are_no_whole_numbers(case: Case) -> Files:
    return case.counted(lambda m: m.values + 0.25).files


@kind("noise")
def one_count_edited(case: Case) -> Files:
    def values(m: Measurement) -> Any:
        out = m.values.copy()
        if m is case.fitted.measurements[0]:
            out.flat[0] += round(30 * m.sigma)
        return out

    return case.counted(values).files


@kind("noise")
def counts_without_negative_cells(case: Case) -> Files | None:
    if not any((m.values < -1.5 * m.sigma).any() for m in case.fitted.measurements):
        return None
    return case.counted(lambda m: np.maximum(m.values, 0) * ROWS / np.maximum(m.values, 0).sum()).files


@kind("noise")
def counts_of_another_release(case: Case) -> Files | None:
    fitted: Any = case.other.fitted
    theirs = {m.clique: m.values for m in fitted.measurements}
    if not theirs.keys() & {m.clique for m in case.fitted.measurements}:
        return None  # the two networks share no table
    return case.counted(lambda m: theirs.get(m.clique, m.values), refit=False).files


@kind("noise", detectable=False, why="no folder proves that noise was fresh")
def reused_answers(case: Case) -> Files:
    return case.made(rows=case.honest.rows).files


@kind("noise", detectable=False, why="no folder proves that the counts were this table's")
def counts_of_another_table(case: Case) -> Files:
    theirs = table(case.seed + 7)
    shift = {m.clique: theirs.count(m.clique) - case.exact(m.clique) for m in case.fitted.measurements}
    return case.counted(lambda m: m.values + shift[m.clique]).files


# --- model ----------------------------------------------------------------------------------------------------------


def exact_model(case: Case) -> Any:
    """The method's fit to exact counts."""
    counts = tuple(replace(m, values=case.exact(m.clique)) for m in case.fitted.measurements)
    return replace(case.fitted, measurements=counts).model()


@kind("model")
def a_model_refitted_to_exact_counts(case: Case) -> Files:
    return case.refitted(exact_model(case)).files


@kind("model")
def a_model_halfway_to_exact_counts(case: Case) -> Files:
    counts = tuple(replace(m, values=(m.values + case.exact(m.clique)) / 2) for m in case.fitted.measurements)
    return case.refitted(replace(case.fitted, measurements=counts).model()).files


@kind("model")
def a_model_with_less_noise_believed(case: Case) -> Files:
    counts = tuple(replace(m, sigma=m.sigma / 2) for m in case.fitted.measurements)
    return case.refitted(replace(case.fitted, measurements=counts).model()).files


@kind("model")
def the_model_of_another_release(case: Case) -> Files:
    return case.refitted(case.other.model).files


def bent(model: GraphicalModel, clique: Clique, by: float) -> GraphicalModel:
    """The model with one potential changed in one cell, or a new one."""
    tables = dict(model.potentials)
    old = tables.get(clique)
    new = np.zeros([model.sizes[n] for n in clique]) if old is None else old.copy()
    new.flat[0] += by
    cliques = model.cliques if clique in model.cliques else (*model.cliques, clique)
    return replace(model, potentials={**tables, clique: new}, cliques=cliques)


@kind("model")
def a_potential_changed_in_one_cell(case: Case) -> Files:
    model: Any = case.honest.model
    return case.refitted(bent(model, max(model.potentials, key=len), 0.5)).files


@kind("model")
def an_edge_across_the_fence(case: Case) -> Files:
    model: Any = case.honest.model
    made = case.refitted(bent(model, ("c", "g"), 0.3))
    if not case.honest.plan_frame.separations:
        return made.files
    facts = {**made.to_json(), "separations": case.honest.to_json()["separations"]}
    made.__dict__["_facts"] = facts
    return made.files


@kind("model")
def an_edge_that_was_not_counted(case: Case) -> Files | None:
    model: Any = case.honest.model
    held = {frozenset(q) for q in model.potentials}
    free = [q for q in itertools.combinations("abdefh", 2) if not any(set(q) <= h for h in held)]
    return case.refitted(bent(model, free[0], 0.5)).files if free else None


@kind("model")
def a_model_of_more_rows(case: Case) -> Files:
    model: Any = case.honest.model
    return case.made(model=replace(model, total=2.0 * model.total)).files


@kind("model")
def a_separation_that_is_not_kept(case: Case) -> Files:
    made = case.made()
    facts = made.to_json()
    linked = facts["edges"][0]
    facts["separations"] = [
        *facts["separations"],
        {"left": [linked[0]], "right": [linked[1]], "given": [], "holds": True, "how": "exact", "why": "stated"},
    ]
    made.__dict__["_facts"] = facts
    return made.files


# --- rows -----------------------------------------------------------------------------------------------------------


@kind("rows")
def the_rows_of_the_real_table(case: Case) -> Files:
    return case.with_codes(dict(case.rows.codes)).files


def mixed(case: Case, share: float) -> Files:
    """The released rows with a share of real ones."""
    count = int(share * ROWS)
    return case.with_codes(
        {n: np.concatenate([case.rows.codes[n][:count], v[count:]]) for n, v in case.honest.codes.items()}
    ).files


@kind("rows")
def half_of_the_rows_are_real(case: Case) -> Files:
    return mixed(case, 0.5)


@kind("rows")
def a_tenth_of_the_rows_is_real(case: Case) -> Files:
    return mixed(case, 0.1)


@kind("rows")
def thirty_rows_are_real(case: Case) -> Files:
    return mixed(case, 0.01)


@kind("rows")
def rows_of_another_release(case: Case) -> Files:
    return case.with_codes(dict(case.other.codes)).files


@kind("rows")
def rows_of_a_model_of_exact_counts(case: Case) -> Files:
    return case.with_codes(exact_model(case).sample(ROWS, np.random.default_rng(), even=True)).files


@kind("rows")
def a_column_shuffled(case: Case) -> Files:
    rng = np.random.default_rng()
    return case.with_codes({**case.honest.codes, "c": rng.permutation(case.honest.codes["c"])}).files


@kind("rows")
def cells_swapped_in_fifty_rows(case: Case) -> Files:
    column = case.honest.codes["b"].copy()
    column[:50] = np.roll(column[:50], 7)
    return case.with_codes({**case.honest.codes, "b": column}).files


@kind("rows")
def a_twentieth_of_a_column_edited(case: Case) -> Files:
    column = case.honest.codes["a"].copy()
    column[: ROWS // 20] = 2
    return case.with_codes({**case.honest.codes, "a": column}).files


@kind("rows")
def independent_rows_called_even(case: Case) -> Files:
    return case.with_codes(case.honest.model.sample(ROWS, np.random.default_rng(), even=False)).files


@kind("rows")
def half_of_the_rows_twice(case: Case) -> Files:
    return case.with_codes(
        {n: np.concatenate([v[: ROWS // 2], v[: ROWS // 2]]) for n, v in case.honest.codes.items()}
    ).files


@kind("rows")
def fewer_rows_than_stated(case: Case) -> Files:
    files = dict(case.honest.files)
    files["synthetic.csv"] = b"\n".join(files["synthetic.csv"].split(b"\n")[:-101]) + b"\n"
    return retabled(case, files)


def retabled(case: Case, files: Files) -> Files:
    """The files with a Croissant card that has the digest of their table."""
    card = json.loads(files["croissant.json"])
    card["distribution"][0]["sha256"] = hashlib.sha256(files["synthetic.csv"]).hexdigest()
    files["croissant.json"] = json.dumps(card).encode()
    return case.resealed(files)


@kind("rows")
def a_cell_outside_its_domain(case: Case) -> Files:
    files = dict(case.honest.files)
    lines = files["synthetic.csv"].split(b"\n")
    lines[1] = b"new" + lines[1][1:]
    files["synthetic.csv"] = b"\n".join(lines)
    return retabled(case, files)


@kind("rows", detectable=False, why="an order of rows carries no claim")
def rows_in_another_order(case: Case) -> Files:
    order = np.random.default_rng().permutation(ROWS)
    return case.with_codes({n: v[order] for n, v in case.honest.codes.items()}).files


# --- texts ----------------------------------------------------------------------------------------------------------


@kind("texts")
def the_report_of_another_project(case: Case) -> Files:
    return case.resealed({**case.honest.files, "report.html": case.other.files["report.html"]})


@kind("texts")
def the_label_of_another_project(case: Case) -> Files:
    return case.resealed({**case.honest.files, "label.html": case.other.files["label.html"]})


def swapped(case: Case, name: str, old: str, new: str) -> Files:
    """The files with a changed text in the file ``name``."""
    data = case.honest.files[name].decode()
    assert old in data, (name, old)
    return case.resealed({**case.honest.files, name: data.replace(old, new).encode()})


@kind("texts")
def a_smaller_epsilon_in_the_report(case: Case) -> Files:
    return swapped(case, "report.html", "ε = 1", "ε = 0.1")


@kind("texts")
def a_smaller_epsilon_in_the_label(case: Case) -> Files:
    return swapped(case, "label.html", "ε = 1,", "ε = 0.1,")


@kind("texts")
def a_smaller_epsilon_once_in_the_report(case: Case) -> Files:
    data = case.honest.files["report.html"].decode()
    at = data.rindex("ε = 1 ")
    return case.resealed({**case.honest.files, "report.html": (data[:at] + "ε = 0.1 " + data[at + 6 :]).encode()})


@kind("texts")
def a_limit_left_out_of_the_label(case: Case) -> Files:
    return swapped(case, "label.html", "<li>That the table has at least one row.</li>", "")


@kind("texts")
def a_smaller_epsilon_in_the_registry_entry(case: Case) -> Files:
    entry = json.loads(case.honest.files["registry.yaml"])
    entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] = 0.1
    return case.resealed({**case.honest.files, "registry.yaml": json.dumps(entry).encode()})


@kind("texts")
def another_unit_in_the_registry_entry(case: Case) -> Files:
    entry = json.loads(case.honest.files["registry.yaml"])
    entry["deployment"]["privacy_loss"]["privacy_unit"] = "Protected: one household."
    return case.resealed({**case.honest.files, "registry.yaml": json.dumps(entry).encode()})


@kind("texts")
def another_promise_in_the_croissant_card(case: Case) -> Files:
    return swapped(case, "croissant.json", "ε = 1, δ", "ε = 0.1, δ")


@kind("texts")
def a_smaller_chance_to_guess_right(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["guarantee"]["guess_right"] = 0.51

    return case.resealed(dict(case.honest.files), change)


@kind("texts")
def a_statement_with_another_number_of_rows(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["release"]["rows"] = 10 * ROWS

    return case.resealed(dict(case.honest.files), change)


@kind("texts")
def an_assumption_left_out_of_the_statement(case: Case) -> Files:
    def change(made: dict[str, Any]) -> None:
        made["assumed"] = made["assumed"][1:]

    return case.resealed(dict(case.honest.files), change)


def reclaimed(case: Case, change: Callable[[dict[str, Any]], None]) -> Files:
    """The release whose statement was changed before label, report, registry entry and card were made from it."""
    made = case.made()
    claims = made._claims
    change(claims)
    return made.files


@kind("texts")
def another_unit_in_every_text(case: Case) -> Files:
    def change(claims: dict[str, Any]) -> None:
        claims["unit"]["sentence"] = "Protected: one household with all its rows."

    return reclaimed(case, change)


@kind("texts")
def a_limit_left_out_of_every_text(case: Case) -> Files:
    def change(claims: dict[str, Any]) -> None:
        claims["not_protected"] = claims["not_protected"][1:]

    return reclaimed(case, change)


@kind("texts")
def other_adjacent_tables_in_every_text(case: Case) -> Files:
    def change(claims: dict[str, Any]) -> None:
        claims["unit"]["adjacent"] = "Two tables are adjacent if they differ in all rows."

    return reclaimed(case, change)


def rearranged(case: Case, name: str, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Files:
    """The files with another head, or other arrays, in one of the ``.npz`` files."""
    with np.load(io.BytesIO(case.honest.files[name]), allow_pickle=False) as file:
        found = dict(file)
    head = json.loads(found.pop("head").tobytes())
    change(head, found)
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **found)
    return case.resealed({**case.honest.files, name: out.getvalue()})


@kind("model")
def exact_counts_hidden_in_the_model(case: Case) -> Files:
    def change(_: dict[str, Any], found: dict[str, Any]) -> None:
        found["more"] = case.exact(("a",))

    return rearranged(case, "model.npz", change)


@kind("noise")
def exact_counts_hidden_in_the_answers(case: Case) -> Files:
    def change(_: dict[str, Any], found: dict[str, Any]) -> None:
        found["counts_999"] = case.exact(("a",))

    return rearranged(case, "answers.npz", change)


@kind("rows")
def rows_that_are_not_even_without_an_order(case: Case) -> Files:
    def change(head: dict[str, Any], _: dict[str, Any]) -> None:
        del head["order"]

    return rearranged(case, "model.npz", change)


@kind("model")
def a_fit_that_claims_to_rest_on_questions(case: Case) -> Files:
    def change(head: dict[str, Any], found: dict[str, Any]) -> None:
        head["direct"], found["direct"] = {"sigma": 1.0}, np.zeros(1)

    return rearranged(case, "answers.npz", change)


@kind("model")
def no_model_and_no_counts(case: Case) -> Files:
    made = case.made()
    made.__dict__["_facts"] = {**made.to_json(), "model": None, "noisy_counts": None}
    made.__dict__["_dumped"] = made.__dict__["_counted"] = None
    return made.files


@kind("rows")
def a_private_file_among_the_released_ones(case: Case) -> Files:
    return case.resealed({**case.honest.files, "private.csv": b"a,b\nx,p\n"})


@kind("budget", detectable=False, why="under basic accounting the checker does not know each draw's share")
def choices_removed_under_basic_accounting(case: Case) -> Files | None:
    made = all_choices_removed(case)
    return None if made is None else replace(made, project=made.project.with_plan(accounting="basic")).files


# --- ledger ---------------------------------------------------------------------------------------------------------


def chained(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with their numbers and hashes made again."""
    previous, out = "0" * 64, []
    for i, event in enumerate(events, 1):
        fields = {**{k: v for k, v in event.items() if k != "hash"}, "seq": i, "previous": previous}
        previous = hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        out.append({**fields, "hash": previous})
    return out


def with_events(case: Case, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> tuple[Files, Any]:
    """The honest files with an export of changed events."""
    events = [dict(e.row()) for e in case.ledger.events()]
    return dict(case.honest.files), {"format": "espalier-ledger/1", "populations": [], "events": change(events)}


def mine(case: Case, event: Mapping[str, Any]) -> bool:
    """Return whether an event belongs to this release."""
    reservation = case.honest.reservation
    return reservation is not None and event["entry"] == reservation.entry.id


@kind("ledger")
def the_entry_is_missing(case: Case) -> Any:
    return with_events(case, lambda events: chained([e for e in events if not mine(case, e)]))


@kind("ledger")
def the_entry_is_there_twice(case: Case) -> Any:
    return with_events(case, lambda events: chained([*events, *(e for e in events if mine(case, e))]))


@kind("ledger")
def the_entry_is_of_another_table(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return chained([{**e, "table_name": "another"} if mine(case, e) else e for e in events])

    return with_events(case, change)


@kind("ledger")
def the_entry_counts_less(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return chained([{**e, "rho": e["rho"] / 2} if mine(case, e) and e["kind"] == "spend" else e for e in events])

    return with_events(case, change)


@kind("ledger")
def the_total_is_exceeded(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        more = [{**e, "entry": "x" * 16, "rho": 10.0} for e in events if mine(case, e) and e["kind"] == "reserve"]
        return chained([*events, *more])

    return with_events(case, change)


@kind("ledger")
def the_chain_is_broken(case: Case) -> Any:
    return with_events(case, lambda events: [{**events[0], "note": "changed"}, *events[1:]])


@kind("ledger")
def the_unit_of_the_entry_is_another(case: Case) -> Any:
    def change(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return chained([{**e, "rows_per_person": 5} if e["kind"] in ("open", "reserve") else e for e in events])

    return with_events(case, change)


@kind("ledger")
def the_release_names_no_entry(case: Case) -> Any:
    _, export = with_events(case, lambda events: events)
    return case.made(reservation=None).files, export


# --- files: not sealed again ----------------------------------------------------------------------------------------


@kind("files")
def a_truncated_table(case: Case) -> Files:
    return {**case.honest.files, "synthetic.csv": case.honest.files["synthetic.csv"][:-200]}


@kind("files")
def a_missing_file(case: Case) -> Files:
    return {n: d for n, d in case.honest.files.items() if n != "answers.npz"}


@kind("files")
def an_extra_file(case: Case) -> Files:
    return {**case.honest.files, "questions.csv": b"a,b\n"}


@kind("files")
def the_signature_of_another_key(case: Case) -> Files:
    made = json.loads(case.honest.files[statement.STATEMENT])
    return {**case.honest.files, statement.SIGNATURE: signer().sign(made)}


@kind("files")
def a_signature_with_the_public_key_of_the_signer(case: Case) -> Files:
    made = json.loads(signer().sign(json.loads(case.honest.files[statement.STATEMENT])))
    made["public_key"] = base64.b64encode(case.key.public).decode()
    return {**case.honest.files, statement.SIGNATURE: json.dumps(made).encode()}


@kind("files")
def no_signature(case: Case) -> Files:
    return {n: d for n, d in case.honest.files.items() if n != statement.SIGNATURE}


@kind("files")
def an_edited_statement(case: Case) -> Files:
    data = case.honest.files[statement.STATEMENT]
    return {**case.honest.files, statement.STATEMENT: data.replace(b"clinic", b"office")}


@kind("files")
def no_statement(case: Case) -> Files:
    return {n: d for n, d in case.honest.files.items() if n not in ADDED}


def written(files: Mapping[str, bytes], folder: Path) -> Path:
    """The files in a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def checked(files: Files, key: Signer, export: Any) -> list[int]:
    """The numbers of the checks that fail."""
    with tempfile.TemporaryDirectory() as place:
        folder = written(files, Path(place) / "release")
        data = None if export is None else json.dumps(export).encode()
        return sorted({f.check for f in verify(folder, public_pem(key), data) if f.holds is False})


def forge(seeds: int, only: str = "") -> bool:
    """Print for each kind how many were caught, and by which checks; returns whether 95 % of the kinds are."""
    caught: dict[str, list[list[int] | None]] = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as place:
        ledger = Ledger(Path(place) / "ledger.db", create=True)
        for method, seed in itertools.product(METHODS, range(seeds)):
            case = Case(method, seed, signer(), ledger)
            honest = checked(case.honest.files, case.key, ledger.to_json())
            print(f"{method} {seed}: honest release {'holds' if not honest else f'FAILS {honest}'}", flush=True)
            for one_kind in KINDS:
                if only and only not in one_kind.name:
                    continue
                try:
                    made = one_kind.make(case)
                except Exception as error:  # the other kinds still run
                    print(f"ERROR {method} {seed} {one_kind.name}: {type(error).__name__}: {error}", flush=True)
                    continue
                if made is None:
                    caught[one_kind.name].append(None)
                    continue
                files, export = made if isinstance(made, tuple) else (made, None)
                caught[one_kind.name].append(checked(files, case.key, export))
    full = missed = 0
    for one_kind in KINDS:
        runs = [r for r in caught[one_kind.name] if r is not None]
        good = sum(bool(r) for r in runs)
        by = ", ".join(map(str, sorted({c for r in runs for c in r}))) or "none"
        whole = bool(runs) and good == len(runs)
        full += one_kind.detectable and whole
        missed += one_kind.detectable and bool(runs) and not whole
        mark = "" if one_kind.detectable else f"  (not detectable: {one_kind.why})"
        print(f"{one_kind.group:7} {one_kind.name:50} {good:2} of {len(runs):2}  checks {by}{mark}")
    print(f"{len(KINDS)} kinds; of {full + missed} detectable ones {full} are caught in every run")
    return full >= 0.95 * (full + missed)


# --- honest releases ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """One way to release: plan keys, and what the project adds."""

    plan: Mapping[str, Any]
    project: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 1200


ARROWS = Dag((("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("g", "h"), ("e", "h"), ("a", "f")))
ASKED = QuestionList(
    ({"name": "both", "where": {"a": ["x"], "c": ["yes"]}}, {"name": "one", "where": {"b": ["q"]}}),
    ({"name": "n", "of": {"a": ["x"], "c": ["yes"]}},),
)
TO_BUY = Schema(
    (
        *(c for c in table(0, 10).schema.columns if c.name not in "dgh"),
        to_buy("d", "numeric", bins=4, integer=True),
        to_buy("g", "categorical", 6),
        to_buy("h", "categorical", 4),
    )
)
RULED_OUT = Constraints((Impossible({"a": ("z",), "b": ("p",)}, "confirmed"),))


def settings() -> Iterator[Setting]:
    """Every method under every unit, and the options that change what is bought or drawn."""
    units: tuple[Mapping[str, Any], ...] = (
        {},
        {"rows_per_person": 3},
        {"neighbors": "add-remove"},
        {"neighbors": "add-remove", "rows_per_person": 2},
    )
    for method, unit in itertools.product(("independent", "mst", "prism", "privbayes", "workload"), units):
        yield Setting({"method": method, **unit})
    more: tuple[Mapping[str, Any], ...] = (
        {"accounting": "basic", "epsilon": 0.5},
        {"rows_drawn": "independent"},
        {"private_evaluation": 0.2},
        {"rows": 500},
        {"epsilon": 0.1},
        {"epsilon": 20.0},
        {"epsilon": 100.0},
        {"copies": 2},
    )
    for method, options in itertools.product(("mst", "prism", "privbayes", "workload", "independent"), more):
        yield Setting({"method": method, **options})
    yield Setting({"method": "mst", "compress": True, "epsilon": 0.2})
    yield Setting({"method": "mst", "compress": True, "epsilon": 0.5, "neighbors": "add-remove"})
    yield Setting({"method": "mst", "width": 2})
    yield Setting({"method": "privci", "fair": True, "explain": 0.1})
    yield Setting({"method": "privci", "fair": True})
    yield Setting({"method": "prism", "regime": "graphical"}, {"dag": ARROWS})
    yield Setting({"method": "privbayes"}, {"dag": ARROWS})
    yield Setting({"method": "decoder"}, {"dag": ARROWS})
    yield Setting({"method": "decoder", "rows_drawn": "independent", "neighbors": "add-remove"}, {"dag": ARROWS})
    yield Setting({"method": "copula", "target": "d"})
    yield Setting({"method": "copula", "target": "d", "neighbors": "add-remove"})
    asked: tuple[Mapping[str, Any], ...] = (
        {"method": "mst", "question_share": 0.3},
        {"method": "prism", "question_share": 0.3, "neighbors": "add-remove"},
        {"method": "fpt-lp"},
        {"method": "fpt-mw"},
    )
    for plan in asked:
        yield Setting(plan, {"question_list": ASKED})
    for method in ("mst", "privbayes", "independent"):
        yield Setting({"method": method}, {"constraints": RULED_OUT})
        yield Setting({"method": method, "person": "person", "rows_per_person": 2, "neighbors": "add-remove"})
        yield Setting({"method": method, "person": "person", "rows_per_person": 1, "rows": 900})
        yield Setting({"method": method, "schema_share": 0.1}, {"schema": TO_BUY})
        yield Setting({"method": method, "schema_share": 0.1, "neighbors": "add-remove"}, {"schema": TO_BUY})
    yield Setting({"method": "mst", "test_drawing": 0.1}, {"dag": ARROWS})


def alarms(times: int) -> bool:
    """Release honestly ``times`` times in each setting; print every failed check and return whether there is none."""
    key, wrong, runs, slowest = signer(), 0, 0, 0.0
    for number, setting in enumerate(settings()):
        for again in range(times):
            rows = table(1000 * number + again, setting.rows)
            plan = Plan(**{"epsilon": 1.0, "delta": 1e-6, "target": "c", **_split(setting.plan)})
            roles = Roles(outcome=("c",), protected=("g",), admissible=("b", "d"))
            one_row = "unasked" if plan.rows_per_person > 1 or plan.person else True
            given = {"schema": rows.schema, "roles": roles, "one_row_per_person": one_row, **setting.project}
            project = Project("honest", plan=plan, **given)
            data = frame(rows) if plan.person or plan.schema_share else rows
            try:
                files = release(project, data, signer=key).files
            except Exception as error:  # a setting that this version refuses is shown, not counted
                print(f"refused: {dict(setting.plan)}: {error}")
                break
            with tempfile.TemporaryDirectory() as place:
                start = time.perf_counter()
                found = verify(written(files, Path(place) / "r"), public_pem(key))
                slowest = max(slowest, time.perf_counter() - start)
            runs += 1
            for f in found:
                if f.holds is False:
                    wrong += 1
                    print(f"ALARM {dict(setting.plan)}: check {f.check}: {f.text}", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{runs} honest releases, {wrong} alarms; slowest check {slowest:.2f} s; {memory:.0f} MiB with the releases")
    return wrong == 0


MEASURED = """
import re, sys, time
from pathlib import Path
from verifier.check import main
status = main(sys.argv[1:])
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(time.process_time(), peak * 1024 / 1e6, file=sys.stderr)
sys.exit(status)
"""
"""A check that prints its own CPU seconds and peak memory in MB. Linux counts a parent's memory in ``ru_maxrss``."""


def adult() -> bool:
    """Time and memory of the checker on releases of Adult; returns whether 2 s and 300 MiB suffice."""
    from benchmarks.tables import _adult

    rows, good = _adult(), True
    for method in METHODS:
        plan = Plan(method, 1.0, 1e-9, target="income")
        roles = Roles(outcome=("income",), protected=("sex",), admissible=("occupation",))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "r"
            release(Project("adult", rows.schema, plan, roles=roles, one_row_per_person=True), rows).save(folder)
            done = subprocess.run([sys.executable, "-c", MEASURED, str(folder)], capture_output=True, text=True)
        cpu, memory = map(float, done.stderr.split()[-2:])
        print(f"adult, {method}: exit {done.returncode}, {cpu:.2f} CPU s, {memory:.0f} MB", flush=True)
        good &= done.returncode == 0 and cpu <= 2 and memory < 300
    return good


def _split(plan: Mapping[str, Any]) -> dict[str, Any]:
    own = set(Plan.__dataclass_fields__)
    options = {k: v for k, v in plan.items() if k not in own}
    return {**{k: v for k, v in plan.items() if k in own}, "options": options}


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["forge", "alarms"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--only", default="")
    opt = parser.parse_args()
    good = True
    if "forge" in opt.parts:
        good &= forge(opt.seeds, opt.only)
    if "adult" in opt.parts:
        good &= adult()
    if "alarms" in opt.parts:
        good &= alarms(opt.times)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
