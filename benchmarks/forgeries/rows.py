"""Forged rows."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from benchmarks.forgeries.case import (
    ROWS,
    Case,
    Files,
    kind,
)
from benchmarks.forgeries.model import exact_model


@kind("rows")
def the_rows_of_the_real_table(case: Case) -> Files:
    return case.with_codes(dict(case.rows.codes)).files


def mixed(case: Case, share: float) -> Files:
    """Return the released rows with a share of real ones."""
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
    """Return the files with a Croissant card that has the digest of their table."""
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
