"""The honest release that a forger changes, and the list of kinds of forgery."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Clique
from espalier.core.ledger.archive import ADDED
from espalier.core.ledger.ledger import Ledger
from espalier.core.methods.marginals import Marginals
from espalier.core.privacy.draws import Draw, Measurement
from espalier.core.privacy.spending import Spending
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import Release, release
from espalier.core.statement import claims as statement
from espalier.core.statement.keys import Signer
from espalier.core.tables.table import Table
from espalier.verifier.check import verify
from espalier.verifier.folder import Unreadable

METHODS = ("privci", "prism", "privbayes")
ROWS = 3000
Files = dict[str, bytes]


def table(seed: int, rows: int = ROWS) -> Table:
    """Return eight columns with associations; one is numeric, and one may be missing."""
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
    """Return the table as a data frame, with a column that assigns each pair of rows to one person."""
    import pandas as pd

    rng = np.random.default_rng(0)
    cells = {c.name: c.decode(rows.codes[c.name], rng) for c in rows.schema.columns}
    return pd.DataFrame(
        {**cells, "d": rows.values["d"].astype(int), "person": [f"P{i // 2}" for i in range(rows.rows)]}
    )


def signer() -> Signer:
    """Return a fresh key, in memory."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    return Signer(private, private.public_key().public_bytes_raw())


def public_pem(key: Signer) -> bytes:
    """Return the public key as a PEM file."""
    from cryptography.hazmat.primitives import serialization

    made: bytes = key.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return made


@dataclass
class Case:
    """An honest release of ``rows`` for a forger to change; ``other`` is another release by the same method."""

    method: str
    seed: int
    key: Signer
    ledger: Ledger

    @cached_property
    def rows(self) -> Table:
        """Private table."""
        return table(self.seed)

    def project(self, **changes: Any) -> Project:
        """Return the project: the target is ``c``, and the roles name an outcome that privci separates from a protected
        column.
        """
        plan = Plan(self.method, **{"epsilon": 1.0, "delta": 1e-6, "target": "c", **changes})
        roles = Roles(outcome=("c",), protected=("g",), admissible=("b", "d"))
        return Project("clinic", self.rows.schema, plan, roles=roles, one_row_per_person=True)

    @cached_property
    def honest(self) -> Release:
        """Release, recorded in the ledger and signed."""
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
        """Noisy counts."""
        assert isinstance(self.honest.fitted, Marginals)
        return self.honest.fitted

    def exact(self, clique: Clique) -> Any:
        """Return the private table's counts."""
        return self.rows.count(clique).astype(float)

    def made(self, **changes: Any) -> Release:
        """Return the honest release with changed records, from which exports, report, digests and signature are made
        again."""
        return replace(self.honest, **changes)

    def drawn(self, change: Callable[[int, Draw], Draw | None], **changes: Any) -> Release:
        """Return the release with changed draws, counts that fit their scales, and a matching total ρ."""
        draws = [change(i, d) for i, d in enumerate(self.honest.spending.draws)]
        kept = [d for d in draws if d is not None]
        return self.made(spending=Spending(self.honest.budget.rho, kept), **changes)

    def counted(self, values: Callable[[Measurement], Any], refit: bool = True, **changes: Any) -> Release:
        """Return the release with other counts, a model fitted to them, and rows drawn from that model."""
        fitted = replace(
            self.fitted, measurements=tuple(replace(m, values=values(m)) for m in self.fitted.measurements)
        )
        if not refit:
            return self.made(fitted=fitted, **changes)
        return self.refitted(fitted.model(), fitted=fitted, **changes)

    def refitted(self, model: Any, **changes: Any) -> Release:
        """Return the release with another model, and rows drawn from it."""
        rng = np.random.default_rng()
        return self.with_codes(model.sample(self.honest.rows, rng, even=True), model=model, **changes)

    def with_codes(self, codes: Mapping[str, Any], **changes: Any) -> Release:
        """Return the release with other rows."""
        rng, schema = np.random.default_rng(), self.honest.project.schema
        text = {c.name: c.decode(codes[c.name], rng) for c in schema.columns}
        return self.made(codes=codes, table=text, **changes)

    def resealed(self, files: Files, change: Callable[[dict[str, Any]], None] | None = None) -> Files:
        """Return ``files`` with a statement of their digests, which ``change`` edits before it is signed."""
        made = json.loads(files[statement.STATEMENT])
        if change is not None:
            change(made)
        made = statement.sealed(made, {n: d for n, d in files.items() if n not in ADDED})
        return {**files, statement.STATEMENT: statement.text(made), statement.SIGNATURE: self.key.sign(made)}

    def replanned(self, **changes: Any) -> Project:
        """Return the project with another plan."""
        return replace(self.honest.project, plan=self.honest.project.plan.changed(**changes))


@dataclass(frozen=True)
class Kind:
    """A kind of forgery: ``make`` returns the files and optionally an export; `None` if a method has none."""

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
    """Return the index of the first draw of a kind; −1 if there is none."""
    return next((i for i, d in enumerate(case.honest.spending.draws) if d.kind == kinds), -1)


def one(case: Case, at: int, **changes: Any) -> Release | None:
    """Return the release with one changed draw and a matching measurement."""
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


def written(files: Mapping[str, bytes], folder: Path) -> Path:
    """Return the files in a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def checked(files: Files, key: Signer, export: Any) -> list[int]:
    """Return the numbers of the checks that fail; 0 if the folder is not a readable release."""
    with tempfile.TemporaryDirectory() as place:
        folder = written(files, Path(place) / "release")
        data = None if export is None else json.dumps(export).encode()
        try:
            return sorted({f.check for f in verify(folder, public_pem(key), data) if f.holds is False})
        except Unreadable:
            return [0]
