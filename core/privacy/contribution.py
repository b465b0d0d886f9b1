"""Row limits per person and hold-outs, both applied before anything is measured.

Each source carries out both steps (`Source.limited`, `to_total` and `split`); the proofs are here.

Both are randomised transformations that preserve the guarantee, by the same argument:

**Coupling.** Let r be all lots (random numbers) drawn here, one for each row or person (and for each filler row),
independent of one another and of the content of every row. Let T_r be the resulting table. Take two neighbouring tables
D and D′ and pair the runs in which everyone else, the shared part of the two tables, has the same lots. If, for each r,
the outputs of a mechanism M on T_r(D) and T_r(D′) have Rényi divergence of order α at most αρ, then so do M∘T(D) and
M∘T(D′), which are mixtures of these runs, because Rényi divergence is jointly quasi-convex (van Erven & Harremoës 2014,
Theorem 13). So T may be followed by any mechanism that is ρ-zCDP for its output tables. It is enough to bound, for each
fixed r, the difference between those tables.

**Secrecy.** The bound holds for every r, so even someone who knew all the lots would learn no more than ρ allows: the
lots need not stay secret. They must, however, be independent. If a seeded stream were assigned by row number, removing
one row would shift the lots of all later rows, and with a known seed the two tables would differ in many rows. So every
lot is 64 fresh bits from the operating system's generator, or from SHAKE-256 with 256 secret bits: HMAC-SHA256 of a
nonce, under the key of the ledger's fingerprints. Without that key, the output of SHAKE-256 is indistinguishable from
fresh bits, and the key is never stored with a release.

**A resumed release** reads the rows again. Without a hold-out it draws fresh lots for row limits and totals. They are
independent of the earlier ones, so the total cost of the answers on T_r(D) and on T_s(D) is the sum of their ρ. Reusing
the lots would not suffice, because they belong to positions and the rows may be in another order by then. If one
person's row has moved, everyone between its two positions has a new lot. In the table without that person, no lot
changes. A hold-out does reuse its lots. Otherwise a person could be in the rest of one run and in the held part of the
other, and both costs would apply to that person. Before a row is counted, `same_parts` compares keyed fingerprints of
both parts, and refuses parts that differ.

**In a database** the server's cryptographic generator draws the lots, and they are stored in the snapshot before they
are used (`espalier.core.tables.postgres_snapshot`). A lot is drawn for each distinct person or row of the snapshot, in
any order: independent lots with one distribution stay independent in any order, so the coupling may pair them with the
people (rows) that both tables share. When rows are sorted by their lots, ties are broken by position (`split`), which a
replaced row keeps, or by content (`bounded`), so all others keep their relative order.

People are compared by the text of the person column as written: a person whose identifier is written in two ways counts
as two people.
"""

from __future__ import annotations

from typing import TypeVar

from espalier.core.errors import ProjectError, TableError
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.tables.source import Source

S = TypeVar("S", bound=Source)


def public_rows(plan: Plan, rows_in_table: int | None) -> int | None:
    """Return the number of rows of the private table if it is public under ``plan``, else None. It is n for replace-one
    without a person column; the declared total for replace-one with a person column (the table is filled or cut to that
    total, see :func:`bounded`); None under add-remove. This function is the only path by which a private table's number
    of rows enters a plan, a budget, a file or a ledger.
    """
    if plan.neighbors == "add-remove":
        return None
    return plan.rows if plan.person is not None else rows_in_table


def check_fits(project: Project, table: Source, what: str = "the table", *, figures: bool = False) -> None:
    """Raise :class:`TableError` unless ``table`` was made for ``project``.

    The two must agree on the schema, on whether there is a person column, and on its name, because a row limit for one
    person column does not limit another. The curator checks that at most k rows of a person are counted
    (:func:`known_rows`). With ``figures``, the table is used only for figures that are never released, and may have
    been read without its person column.
    """
    if not table.encodes(project.schema):
        differs = next((c.name for c in project.schema.columns if c not in table.schema.columns), None)
        raise TableError(
            f"{what} was read with a schema other than the project's"
            + ("" if differs is None else f" ({differs!r} is missing or differs)")
            + "; read it again with the project's",
            column=differs,
        )
    if figures:
        return
    named, said = project.plan.person, table.person_column
    if named != said:
        by = "without a person column" if said is None else f"with the person column {said!r}"
        wants = "names none" if named is None else f"names {named!r}"
        raise TableError(
            f"{what} was read {by}, but the plan {wants}, so the guarantee would protect the wrong people; read the "
            "table again with the plan's person column",
            column=named,
        )


def known_rows(source: Source, unit: Unit) -> int | None:
    """Return the number of rows of ``source`` that is public under ``unit``: n under replace-one, else None.

    With a person column, n is public only after the table was filled or cut to a declared total. Raises
    :class:`TableError` if a person may have more rows than ``unit`` allows, or if the total was declared for
    replace-one and ``unit`` is add-remove, because the unit's sensitivities would not hold.
    """
    if source.person_column is not None:
        if source.row_limit is None or source.row_limit > unit.rows_per_person:
            left = "any number" if source.row_limit is None else str(source.row_limit)
            raise TableError(
                f"the table has the person column {source.person_column!r} and keeps {left} of each person's rows, but "
                f"the unit of privacy allows at most {unit.rows_per_person}. Release the table with a plan that names "
                "this column and this limit.",
                column=source.person_column,
            )
        if source.names_people:
            return None
        if unit.neighbors == "add-remove":
            raise TableError(
                "the table was filled or cut to a declared total, which protects people under replace-one only. "
                "Use replace-one",
                column=source.person_column,
            )
    return source.rows if unit.neighbors == "replace-one" else None


def held_rows(plan: Plan, total: int | None) -> int:
    """Return the number of ``total`` rows that are held out for private evaluation; 0 if there are none, or if
    ``total`` is None.
    """
    if not plan.private_evaluation or total is None:
        return 0
    if total < 2:
        raise ProjectError("holding out rows for private evaluation needs at least two rows", key="private_evaluation")
    return min(max(round(plan.private_evaluation * total), 1), total - 1)


def bounded(table: S, most: int, total: int | None = None) -> S:
    """Return at most ``most`` = k rows of each person, chosen at random; with a ``total`` R, exactly R rows.

    With R, surplus rows are left out at random, and missing rows are filled with invented ones, each cell
    uniform over its column's values. The numbers of dropped and of invented rows are private.

    Unit, without R: one person's rows are added or removed, and with them at most k kept rows. Proof: which rows of a
    person are kept depends only on that person's own rows and lots. So, for fixed lots, everyone else's kept rows are
    the same, and the two tables differ by at most k kept rows of one person: they are neighbours under add-remove with
    k rows per person. The total is private, because it changes.

    Unit, with R: if one person's rows are replaced by any number of other rows, or removed, at most k of the R rows
    change in place. Proof: the kept rows are ordered by fresh lots and followed by all filler rows, and the first R are
    taken. Let L be that order for everyone else and the filler rows; it is the same in both tables. If a of the
    person's rows are among the first R (a ≤ k, since no more were kept), the table consists of those a rows and the
    first R − a rows of L. The other table consists of b ≤ k rows and the first R − b rows of L. If a ≥ b, the two
    differ in that a rows became b others and the next a − b of L: a ≤ k rows changed in place; if b > a, the same holds
    with the roles reversed. So they are neighbours under replace-one with n = R public and k rows per person, and every
    sensitivity proved for that unit holds.

    A table without person codes is refused with :class:`TableError`: its rows are bounded by promise, or were already
    filled or cut to a total. A snapshot was cut to k rows of a person when it was made
    (:mod:`espalier.core.tables.row_limits` has the proof), so only the total remains to be applied.
    """
    limited = table.limited(most)
    return limited if total is None else limited.to_total(total)


def split(table: S, share: float, size: int | None = None) -> tuple[S, S]:
    """Return (rest, held). The held part is chosen at random, independently of the content, by person if people are
    named.

    Each person (each row) is held out with probability ``share``; with ``size``, exactly that many rows are held out,
    which needs a public number of rows and no person column: :class:`TableError` if people are named.

    Guarantee: if everything computed from the rest is ρ₁-zCDP, and everything computed from the held part is ρ₂-zCDP
    for any outcome of the rest (which it may use), then both together are max(ρ₁, ρ₂)-zCDP for the table.

    Proof by person. For fixed lots (see the module's coupling; a replaced person keeps the lot), the one person by whom
    the tables differ falls into one part, the same in both, and the other part is identical. If that part is the rest:
    given the rest's outcome, the held part's answers have the same distribution, so the divergence is that of the rest,
    at most αρ₁. If that part is the held part: the outcome of the rest has the same distribution, and for each such
    outcome the divergence is at most αρ₂. The divergence of both together is then also at most αρ₂ (adaptive
    composition, Bun & Steinke 2016, Lemma 2.3, with 0 for the rest). The two costs do not add up: the bound is max(ρ₁,
    ρ₂), and the mixture over lots preserves it.

    Proof by row. With k = 1 the same proof applies, with "row" for "person" (under replace-one a row is identified by
    its position in the table and keeps its lot). With up to k rows of a person, j may fall into the rest and k − j into
    the held part. Every sensitivity Δ(j) in this project is at most (j/k)·Δ(k): counts √2·j and j; edge score 2j and j;
    feature score 3j + 2j²/n and 2j; conditional score 4j and 2j; several scores together √count times that; a logistic
    fit's gradient 2j and j times a constant; sums of features by class, of regressions and of questions, and the score
    of column sets, j times a constant. A mechanism calibrated to Δ(k) at price ρ costs (Δ(j)/Δ(k))²·ρ ≤ (j/k)²·ρ for j
    rows (the Gaussian's Δ²/2σ², the exponential mechanism's ε²/8 with ε ∝ Δ). Together at most (j/k)²ρ₁ + ((k −
    j)/k)²ρ₂ ≤ max(ρ₁, ρ₂), since s² + (1 − s)² ≤ 1.
    """
    if table.names_people and size is not None:
        raise TableError("people are held out with all their rows, so the number of held-out rows cannot be set")
    return table.split(share, size)
