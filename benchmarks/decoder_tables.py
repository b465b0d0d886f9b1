"""Tables and drawings of the decoder's benchmarks.

The drawings of Adult, diabetes and COMPAS follow from the columns' meaning: birth, then schooling, then work, then
income; and illness and admission, then treatment, then discharge. If two columns describe one fact (marital status and
relationship), the arrow goes from the general to the specific. Networks and noisy-OR tables have the drawing that
generated their rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from espalier.core.models.decoder import draw

Codes = dict[str, NDArray[Any]]

ADULT = {
    "workclass": "age race sex education",
    "education": "age race sex",
    "marital-status": "age race sex education",
    "occupation": "age race sex education marital-status workclass",
    "relationship": "age race sex education marital-status occupation",
    "hours-per-week": "age sex education marital-status workclass occupation relationship",
    "capital-gain": "age education marital-status occupation",
    "capital-loss": "age education marital-status",
    "income": "age workclass education marital-status occupation relationship race sex capital-gain capital-loss "
    "hours-per-week",
}

COMPAS = {
    "juv_fel_count": "age sex race",
    "juv_misd_count": "age sex race",
    "juv_other_count": "age sex race",
    "priors_count": "age sex race juv_fel_count juv_misd_count juv_other_count",
    "c_charge_degree": "age sex priors_count",
    "decile_score": "age priors_count juv_fel_count juv_misd_count juv_other_count c_charge_degree",
    "is_recid": "age sex race priors_count juv_fel_count juv_misd_count juv_other_count c_charge_degree decile_score",
}

INSURANCE = {
    "bmi": "age sex region",
    "children": "age",
    "smoker": "age sex",
    "charges": "age sex bmi children smoker region",
}

LUCAS = {
    "Smoking": "Anxiety Peer_Pressure",
    "Yellow_Fingers": "Smoking",
    "Lung_cancer": "Smoking Genetics",
    "Attention_Disorder": "Genetics",
    "Coughing": "Allergy Lung_cancer",
    "Fatigue": "Lung_cancer Coughing",
    "Car_Accident": "Attention_Disorder Fatigue",
}
"""The network from which LUCAS was generated (Causality Workbench)."""

SACHS = {
    "PKA": "PKC",
    "Raf": "PKC PKA",
    "Mek": "PKC PKA Raf",
    "Erk": "PKA Mek",
    "Akt": "PKA Erk",
    "P38": "PKC PKA",
    "Jnk": "PKC PKA",
    "PIP3": "Plcg",
    "PIP2": "Plcg PIP3",
}
"""The consensus protein-signalling network (Sachs et al. 2005)."""

DRUGS = ("metformin", "glimepiride", "glipizide", "glyburide", "pioglitazone", "rosiglitazone", "insulin")

DIABETES = {
    "age": "race gender",
    "payer_code": "age race",
    "admission_type_id": "age",
    "admission_source_id": "admission_type_id",
    "medical_specialty": "age admission_source_id",
    "diag_1": "age medical_specialty",
    "diag_2": "age diag_1",
    "diag_3": "diag_1 diag_2",
    "number_diagnoses": "age medical_specialty",
    "number_inpatient": "age number_diagnoses",
    "number_emergency": "age number_inpatient",
    "number_outpatient": "age number_inpatient",
    "max_glu_serum": "admission_type_id payer_code",
    "A1Cresult": "age diag_1",
    "time_in_hospital": "age diag_1",
    "num_procedures": "diag_1 time_in_hospital medical_specialty",
    "num_lab_procedures": "time_in_hospital A1Cresult",
    "num_medications": "time_in_hospital num_procedures number_diagnoses",
    "insulin": "age diag_1",
    **{drug: "A1Cresult insulin" for drug in DRUGS if drug != "insulin"},
    "diabetesMed": "insulin metformin glipizide glyburide",
    "change": "diabetesMed insulin metformin",
    "discharge_disposition_id": "age time_in_hospital",
    "readmitted": "number_inpatient number_emergency number_outpatient number_diagnoses discharge_disposition_id "
    "diabetesMed payer_code medical_specialty admission_source_id diag_1 age time_in_hospital",
}


def arrows(drawing: dict[str, str]) -> list[tuple[str, str]]:
    """Return (cause, effect) for every listed cause."""
    return [(cause, effect) for effect, causes in drawing.items() for cause in causes.split()]


CHAPTERS = (
    "circulatory",
    "respiratory",
    "digestive",
    "diabetes",
    "injury",
    "musculoskeletal",
    "genitourinary",
    "neoplasms",
    "other",
    "unknown",
)
CATEGORIES = {
    "race": "Caucasian AfricanAmerican Hispanic Asian other",
    "gender": "Female Male unknown",
    "age": " ".join(f"[{a}-{a + 10})" for a in range(0, 100, 10)),
    "payer_code": "MC HM SP BC MD CP UN CM ? other",
    "admission_type_id": "1 2 3 other",
    "discharge_disposition_id": "1 2 3 5 6 11 18 22 other",
    "admission_source_id": "1 2 4 5 6 7 17 other",
    "medical_specialty": "InternalMedicine Family/GeneralPractice Emergency/Trauma Cardiology Surgery-General "
    "Nephrology Orthopedics ? other",
    **dict.fromkeys(("diag_1", "diag_2", "diag_3"), " ".join(CHAPTERS)),
    "max_glu_serum": "None Norm >200 >300",
    "A1Cresult": "None Norm >7 >8",
    **dict.fromkeys(DRUGS, "No Steady Up Down"),
    "change": "No Ch",
    "diabetesMed": "No Yes",
}
EDGES = {
    "time_in_hospital": (2, 3, 4, 5, 7, 9),
    "num_lab_procedures": (20, 30, 40, 50, 60, 70),
    "num_procedures": (1, 2, 3),
    "num_medications": (5, 10, 15, 20, 25),
    "number_outpatient": (1, 2, 4),
    "number_emergency": (1, 2, 4),
    "number_inpatient": (1, 2, 3, 5),
    "number_diagnoses": (4, 6, 8, 9),
}
"""Inner bin edges. Categories missing from this file become the last category. Nothing is derived from the rows."""


def diabetes(path: Path) -> tuple[Codes, dict[str, int]]:
    """Return codes and sizes of 31 columns; the target ``readmitted`` states whether the patient ever was."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    codes: Codes = {}
    sizes: dict[str, int] = {}
    for name, text in CATEGORIES.items():
        categories = text.split()
        values = frame[name].map(chapter) if name.startswith("diag_") else frame[name]
        place = {category: code for code, category in enumerate(categories)}
        codes[name] = values.map(lambda v, place=place: place.get(v, len(place) - 1)).to_numpy().astype(np.uint8)
        sizes[name] = len(categories)
    for name, edges in EDGES.items():
        codes[name] = np.searchsorted(edges, frame[name].astype(int), side="right").astype(np.uint8)
        sizes[name] = len(edges) + 1
    codes["readmitted"], sizes["readmitted"] = (frame["readmitted"] != "NO").to_numpy().astype(np.uint8), 2
    return codes, sizes


def chapter(code: str) -> str:
    """Return the group of an ICD-9 code according to Strack et al. (2014), table 2."""
    if not code[:1].isdigit():
        return "unknown" if code in ("?", "") else "other"
    number = float(code)
    if 250 <= number < 251:
        return "diabetes"
    groups = (
        ("circulatory", (390, 460), (785, 786)),
        ("respiratory", (460, 520), (786, 787)),
        ("digestive", (520, 580), (787, 788)),
        ("genitourinary", (580, 630), (788, 789)),
        ("injury", (800, 1000), (0, 0)),
        ("musculoskeletal", (710, 740), (0, 0)),
        ("neoplasms", (140, 240), (0, 0)),
    )
    return next((name for name, *spans in groups if any(a <= number < b for a, b in spans)), "other")


def noisy_or(
    seed: int, rows: int, layers: Sequence[int] = (27, 52, 143), count: int = 770
) -> tuple[Codes, list[tuple[str, str]]]:
    """Return rows of a noisy-OR network of binary columns in three layers, and its ``count`` arrows.

    The default is the published shape of the neuropathic-pain simulator (Tu et al. 2019): 27 causes, 52 conditions, 143
    symptoms, 770 arrows. Only the shape is the simulator's; the arrows and their strengths are random.
    """
    rng = np.random.default_rng(seed)
    names = [[f"{kind}{i}" for i in range(many)] for kind, many in zip("dcs", layers, strict=True)]
    pairs = [(a, b) for above, below in itertools.pairwise(names) for b in below for a in above]
    first = [(str(rng.choice(above)), b) for above, below in itertools.pairwise(names) for b in below]
    rest = [pair for pair in pairs if pair not in set(first)]
    drawn = first + [rest[i] for i in rng.choice(len(rest), count - len(first), replace=False)]
    drawn.sort()
    out = {name: rng.random(rows) < rng.uniform(0.05, 0.3) for name in names[0]}
    for name in (*names[1], *names[2]):
        off = np.full(rows, 0.98)
        for cause, effect in drawn:
            if effect == name:
                off *= np.where(out[cause], 1 - rng.uniform(0.2, 0.8), 1.0)
        out[name] = rng.random(rows) >= off
    return {name: values.astype(np.uint8) for name, values in out.items()}, drawn


def weak_target(seed: int, rows: int) -> tuple[Codes, dict[str, int], list[tuple[str, str]]]:
    """Return rows of a network of 30 columns and a weakly dependent target ``y``, with sizes and arrows.

    Columns have two to ten categories, some of which are rare. Every column has up to four causes, and y has twelve.
    The first two causes of y interact, which additive causes cannot represent. y is about as predictable as
    readmission.
    """
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(30)]
    sizes = {n: int(rng.choice([2, 3, 4, 4, 5, 6, 8, 10])) for n in names} | {"y": 2}
    codes: Codes = {}
    drawn = []
    for i, name in enumerate(sizes):
        causes = rng.choice(names[:i], min(i, 12 if name == "y" else int(rng.integers(1, 5))), replace=False).tolist()
        start = np.array([0.54, 0.46]) if name == "y" else rng.dirichlet(np.full(sizes[name], 0.8)) + 0.003
        strength = 0.18 if name == "y" else 0.5
        odds = np.repeat(np.log(start)[:, None], rows, axis=1)
        for cause in causes:
            odds += rng.normal(0, strength, (sizes[name], sizes[cause]))[:, codes[cause]]
        if len(causes) > 1:
            one, two = causes[:2]
            both = rng.normal(0, strength / 1.5, (sizes[name], sizes[one], sizes[two]))
            odds += both[:, codes[one], codes[two]]
        codes[name] = draw(odds, rng.random(rows)).astype(np.uint8)
        drawn += [(cause, name) for cause in causes]
    return codes, sizes, drawn


def sachs(seed: int, rows: int) -> tuple[Codes, dict[str, int], list[tuple[str, str]]]:
    """Return rows of eleven columns with three categories along `SACHS`, with random family tables; also sizes and
    arrows.
    """
    rng, codes = np.random.default_rng(seed), Codes()
    for name in ("PKC", "Plcg", *SACHS):
        causes = SACHS.get(name, "").split()
        table = np.log(rng.dirichlet(np.full(3, 0.8), [3] * len(causes)))
        odds = np.broadcast_to(table[tuple(codes[c] for c in causes)], (rows, 3))
        codes[name] = draw(odds.T, rng.random(rows))
    return codes, dict.fromkeys(codes, 3), arrows(SACHS)


def drawings(
    drawn: Sequence[tuple[str, str]], names: Sequence[str], rng: np.random.Generator
) -> dict[str, list[tuple[str, str]]]:
    """Return the true drawing, half of its arrows, the drawing with as many random arrows added, and random arrows
    alone.
    """
    order, right = list(names), set(drawn)
    every = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if (a, b) not in right]
    wrong = [every[i] for i in rng.choice(len(every), len(drawn), replace=False)]
    half = [drawn[i] for i in rng.choice(len(drawn), len(drawn) // 2, replace=False)]
    return {"drawn": list(drawn), "half": half, "double": [*drawn, *wrong], "random": wrong}


SMALL_KINDS = ("additive", "interacting", "binned", "binned, interacting")
SMALL_ROWS = (500, 1_000, 2_000, 3_000)


def small(seed: int, rows: int, kind: str) -> tuple[Codes, dict[str, int], list[tuple[str, str]]]:
    """Return rows of a network of eight columns, sizes and arrows. The last column is the target ``y`` with two to six
    causes.

    Causes are categories or, with ``binned``, numbers in four to ten bins with a monotone effect. Effects add up. With
    ``interacting``, y also depends on whether both or neither of its first two causes are high. Every other column has
    up to three causes.
    """
    rng, codes = np.random.default_rng(seed), Codes()
    binned, both = kind.startswith("binned"), kind.endswith("interacting")
    names = [f"x{i}" for i in range(7)]
    sizes = {n: int(rng.integers(4, 11) if binned and rng.random() < 0.7 else rng.integers(2, 6)) for n in names}
    sizes["y"], drawn = 2, []
    for i, name in enumerate(sizes):
        many = int(rng.integers(2, 7)) if name == "y" else min(i, int(rng.integers(0, 4)))
        causes = sorted(rng.choice(names[:i], many, replace=False).tolist())
        places = {n: np.linspace(-1.7, 1.7, sizes[n]) for n in (*causes, name)}
        odds = np.repeat(np.log(rng.dirichlet(np.full(sizes[name], 3.0)))[:, None], rows, axis=1)
        for cause in causes:
            effect = rng.normal(0, 0.7, (sizes[name], sizes[cause]))
            if binned:
                effect = rng.normal(0, 0.7) * np.outer(places[name], places[cause])
            odds += effect[:, codes[cause]]
        if name == "y" and both:
            one, other = (codes[n] >= sizes[n] / 2 for n in causes[:2])
            odds[1] += np.where(one == other, 1.5, -1.5)
        codes[name] = draw(odds, rng.random(rows)).astype(np.uint8)
        drawn += [(cause, name) for cause in causes]
    return codes, sizes, drawn


def chain(seed: int, rows: int) -> tuple[Codes, dict[str, int], list[tuple[str, str]]]:
    """Return rows, sizes and arrows of a chain of seven numbers in five bins and of ``y``, a monotone effect of five of
    them.
    """
    rng, codes = np.random.default_rng(seed), Codes()
    sizes, drawn = {**{f"x{i}": 5 for i in range(7)}, "y": 2}, []
    for i, (name, size) in enumerate(sizes.items()):
        odds = np.zeros((size, rows))
        for cause in [f"x{j}" for j in (range(1, 6) if name == "y" else range(max(0, i - 1), i))]:
            effect = rng.normal(0, 0.7) * np.outer(np.linspace(-1.7, 1.7, size), np.linspace(-1.7, 1.7, 5))
            odds += effect[:, codes[cause]]
            drawn.append((cause, name))
        codes[name] = draw(odds, rng.random(rows)).astype(np.uint8)
    return codes, sizes, drawn
