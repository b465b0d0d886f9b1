"""Make the bundled samples: ``python -m sample_data.make``.

Every person in these tables is invented, so no one needs protection. The seeds are fixed, and the files are the same
byte for byte each time. Schemas are written from constants, never from the rows: they are public knowledge, as a data
dictionary would be.
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .clinic import CLINIC, clinic
from .parts import (
    SEXES,
    YES_NO,
    Column,
    Table,
    blank,
    categorical,
    coin,
    named,
    numeric,
    ordinal,
    pick,
    project,
    text,
    within,
)
from .stays import STAYS, stays

# --- readmission: causes, and codes that only look like causes ----------------------------------

AGE = (18, 40, 50, 60, 70, 80, 100)
SMOKING = ("never", "former", "current")
STAGES = ("normal", "mild", "moderate", "severe")
BLOOD = ("A", "B", "AB", "O")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Codes that are written into the record once the outcome is known. The first set of each pair means "stayed home", the
# second "came back"; the number is the probability that this hospital follows the rule.
CODES = {
    "billing_code": (("B10", "B12"), ("B27", "B31"), 0.88),
    "ward_of_record": (("East 1", "East 2"), ("West 1",), 0.86),
    "follow_up_call": (("no",), ("yes",), 0.87),
    "bed_tag": (("white", "green"), ("amber", "red"), 0.89),
}

READMISSION = project(
    "readmission",
    schema=[
        numeric("age", AGE),
        categorical("sex", SEXES),
        categorical("smoking", SMOKING, missing=True),
        categorical("diabetes", YES_NO),
        ordinal("heart_failure", STAGES),
        ordinal("kidney_disease", STAGES),
        categorical("lives_alone", YES_NO),
        categorical("blood_group", BLOOD),
        categorical("admission_day", DAYS),
        *(categorical(name, (*home, *back)) for name, (home, back, _) in CODES.items()),
        categorical("readmitted", YES_NO),
    ],
    edges=[
        ["sex", "smoking"],
        ["age", "diabetes"],
        ["age", "heart_failure"],
        ["smoking", "heart_failure"],
        ["diabetes", "heart_failure"],
        ["age", "kidney_disease"],
        ["diabetes", "kidney_disease"],
        ["age", "lives_alone"],
        ["sex", "lives_alone"],
        ["heart_failure", "readmitted"],
        ["kidney_disease", "readmitted"],
        ["lives_alone", "readmitted"],
        *(["readmitted", code] for code in CODES),
    ],
    roles={
        "outcome": ["readmitted"],
        "protected": ["sex"],
        "admissible": ["heart_failure", "kidney_disease", "lives_alone"],
        "inadmissible": [],
    },
    method="prism",
    regime="causal",
    target="readmitted",
)


def hospital(rng: np.random.Generator, rows: int, codes_follow_outcome: bool) -> Table:
    """Return patients of one hospital; only the meaning of the codes differs between hospitals."""
    sex = pick(rng, [0.52, 0.48], rows)
    age = within(np.round(66 + 15 * rng.standard_normal(rows)), AGE)
    old = (age - 66) / 15
    smoking = pick(rng, np.array([[0.58, 0.27, 0.15], [0.42, 0.35, 0.23]])[sex], rows)
    diabetes = coin(rng, -1.2 + 0.6 * old, rows)
    heart = np.digitize(0.5 * old + 0.4 * smoking + 0.3 * diabetes + rng.standard_normal(rows), [0.3, 1.1, 1.9])
    kidney = np.digitize(0.4 * old + 0.9 * diabetes + rng.standard_normal(rows), [0.5, 1.2, 1.9])
    alone = coin(rng, -0.9 + 0.5 * old - 0.4 * sex, rows)
    readmitted = coin(rng, -2.2 + 0.53 * heart + 0.51 * kidney + 0.9 * alone, rows)
    table = {
        "age": text(age),
        "sex": named(SEXES, sex),
        "smoking": blank(rng, named(SMOKING, smoking), 0.07),
        "diabetes": named(YES_NO, diabetes),
        "heart_failure": named(STAGES, heart),
        "kidney_disease": named(STAGES, kidney),
        "lives_alone": named(YES_NO, alone),
        "blood_group": named(BLOOD, pick(rng, [0.43, 0.11, 0.05, 0.41], rows)),
        "admission_day": named(DAYS, pick(rng, [17, 16, 15, 15, 15, 11, 11], rows)),
    }
    for name, (home, back, reliability) in CODES.items():
        follows = np.where(rng.random(rows) < reliability, readmitted, 1 - readmitted)
        marked = follows if codes_follow_outcome else coin(rng, 0.0, rows)
        one_of = np.where(marked, pick(rng, np.ones(len(back)), rows), pick(rng, np.ones(len(home)), rows))
        table[name] = named((*home, *back), one_of + len(home) * marked)
    return {**table, "readmitted": named(YES_NO, readmitted)}


# --- hiring: a gap with a good reason, and a gap without ----------------------------------------

GENDERS = ("woman", "man")
QUALIFICATIONS = ("school", "vocational", "bachelor", "master")
EXPERIENCE = (0, 2, 5, 10, 20, 40)
SCORES = ("1", "2", "3", "4", "5")
POSTCODES = ("1010", "1020", "1030", "1040", "1050", "1060")
CLUBS = ("none", "choir", "book circle", "chess", "rowing", "shooting")
HOBBIES = ("dance", "yoga", "cooking", "cycling", "gaming", "football")
HOURS = (10, 20, 30, 36, 41)
CHANNELS = ("website", "agency", "job fair", "referral")

HIRING = project(
    "hiring",
    schema=[
        categorical("gender", GENDERS),
        ordinal("qualification", QUALIFICATIONS),
        numeric("experience", EXPERIENCE),
        ordinal("interview_score", SCORES),
        categorical("postcode", POSTCODES),
        categorical("club", CLUBS),
        categorical("hobby", HOBBIES),
        numeric("hours_available", HOURS),
        categorical("applied_through", CHANNELS),
        categorical("hired", YES_NO),
    ],
    edges=[
        ["gender", "qualification"],
        ["gender", "experience"],
        ["gender", "postcode"],
        ["gender", "club"],
        ["gender", "hobby"],
        ["gender", "hours_available"],
        ["qualification", "interview_score"],
        ["experience", "interview_score"],
        ["qualification", "hired"],
        ["experience", "hired"],
        ["interview_score", "hired"],
        ["gender", "hired"],
        ["postcode", "hired"],
        ["club", "hired"],
    ],
    roles={
        "outcome": ["hired"],
        "protected": ["gender"],
        "admissible": ["qualification", "experience", "interview_score"],
        "inadmissible": ["postcode", "club", "hobby", "hours_available"],
    },
    method="privci",
    fair=True,
    target="hired",
)


def applicants(rng: np.random.Generator, rows: int) -> Table:
    """Return applicants whose gender has two effects: through their qualifications, and through discrimination."""
    man = pick(rng, [0.49, 0.51], rows)
    qualification = np.digitize(0.4 * man + rng.standard_normal(rows), [-0.6, 0.3, 1.1])
    years = within(np.round(np.exp(1.5 + 0.4 * man + 0.8 * rng.standard_normal(rows))), EXPERIENCE)
    score = np.digitize(0.45 * qualification + 0.05 * years + rng.standard_normal(rows), [-0.1, 0.7, 1.4, 2.2])
    postcode = pick(rng, np.array([[34, 27, 21, 9, 6, 3], [4, 6, 9, 20, 27, 34]])[man], rows)
    club = pick(rng, np.array([[34, 26, 24, 8, 5, 3], [34, 4, 5, 17, 24, 16]])[man], rows)
    hobby = pick(rng, np.array([[26, 26, 20, 14, 8, 6], [5, 7, 12, 22, 25, 29]])[man], rows)
    hours = within(np.round(31 + 4 * man + 6 * rng.standard_normal(rows)), HOURS)
    hired = coin(
        rng,
        -4.2
        + 0.5 * qualification
        + 0.05 * years
        + 0.55 * score
        + 1.0 * man
        + 0.7 * (postcode >= 3)
        + 0.7 * (club >= 4),
        rows,
    )
    return {
        "gender": named(GENDERS, man),
        "qualification": named(QUALIFICATIONS, qualification),
        "experience": text(years),
        "interview_score": named(SCORES, score),
        "postcode": named(POSTCODES, postcode),
        "club": named(CLUBS, club),
        "hobby": named(HOBBIES, hobby),
        "hours_available": text(hours),
        "applied_through": named(CHANNELS, pick(rng, [5, 2, 1, 2], rows)),
        "hired": named(YES_NO, hired),
    }


# --- services: a wide table with everything that makes tables difficult ------------------------------

# The most common comes first: each is about (rank / (rank + 1)) ** 1.6 as common as its predecessor.
OCCUPATIONS = (
    "sales",
    "cleaner",
    "driver",
    "cook",
    "carer",
    "clerk",
    "nurse",
    "mason",
    "waiter",
    "painter",
    "packer",
    "guard",
    "farmer",
    "teacher",
    "baker",
    "welder",
    "tailor",
    "plumber",
    "barber",
    "butcher",
    "roofer",
    "joiner",
    "postman",
    "gardener",
    "porter",
    "cashier",
    "printer",
    "miner",
    "sailor",
    "miller",
    "fitter",
    "glazier",
    "optician",
    "florist",
    "potter",
    "cook, canteen",
    "musician",
    "actor",
    "translator",
    "librarian",
    "midwife",
    "dentist",
    "chemist",
    "surveyor",
    "architect",
    "pilot",
    "notary",
    "judge",
    "brewer",
    "cooper",
    "saddler",
    "furrier",
    "clockmaker",
    "bellfounder",
    "beekeeper",
    "fisher",
    "diver",
    "puppeteer",
    "falconer",
    "lighthouse keeper",
)
# Three streets for each district, in the order of the districts.
STREETS = (
    "Auweg",
    "Bachweg",
    "Erlen",
    "Bergstr.",
    "Steig",
    "Hang",
    "Hofgasse",
    "Markt",
    "Domplatz",
    "Moosweg",
    "Torf",
    "Ried",
    "Seestr.",
    "Ufer",
    "Hafen",
    "Talstr.",
    "Mühle",
    "Brücke",
    "Waldweg",
    "Eichen",
    "Föhren",
    "Zollstr.",
    "Bahnhof",
    "Lände",
)
DISTRICTS = ("Au", "Berg", "Hof", "Moos", "See", "Tal", "Wald", "Zoll")
DISTRICT_CODES = tuple(f"D{number}" for number in range(1, 9))
NATIONS = ("AT", "DE", "TR", "RS", "SY", "UA", "RO", "HU", "AF", "IT", "PL", "NG", "IR", "SO", "NA", "IS")
LANGUAGES = ("de", "tr", "sr", "ar", "uk", "ro", "fa", "en", "so", "is")
SIZES = ("1", "2", "3", "4", "5", "6+")
WORK = ("none", "part", "full", "retired", "student")
MONTHS = tuple(f"{month:02d}" for month in range(1, 13))
YEARS = tuple(str(year) for year in range(2010, 2025))
CASEWORKERS = tuple(f"K{number:02d}" for number in range(1, 16))
PERSON_AGE = (16, 25, 35, 45, 55, 65, 75, 100)
INCOME = (
    0,
    1,
    2_000,
    4_000,
    6_000,
    8_000,
    10_000,
    12_500,
    15_000,
    17_500,
    20_000,
    25_000,
    30_000,
    35_000,
    40_000,
    50_000,
    60_000,
    80_000,
    100_000,
    150_000,
    250_000,
    1_000_000,
)
DEBT = (0, 1, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000)
SAVINGS = (0, 1, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 200_000)
PAID = (0, 1, 500, 1_000, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000)
RENT = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0)
TENURE = (0, 1, 2, 5, 10, 20, 30, 50, 100)
COUNT = (0, 1, 2, 3, 5, 10, 20, 60)

# Columns that are unrelated to all others: declaration, weights, share of empty cells.
ALONE: tuple[tuple[Column, tuple[float, ...], float], ...] = (
    (categorical("marital status", ("single", "married", "divorced", "widowed")), (38, 37, 17, 8), 0.0),
    (categorical("housing", ("rent", "own", "family", "shelter", "street")), (71, 14, 12, 2.5, 0.5), 0.0),
    (categorical("heating", ("gas", "oil", "wood", "grid", "pump"), missing=True), (48, 17, 8, 22, 5), 0.11),
    (ordinal("care level", ("0", "1", "2", "3", "4", "5")), (91, 3, 2.5, 2, 1, 0.5), 0.0),
    (categorical("insurance", ("public", "private", "none")), (93, 5.5, 1.5), 0.0),
    (ordinal("first contact", YEARS), tuple(range(2, 17)), 0.0),
    (ordinal("month, application", MONTHS), (13, 9, 8, 8, 7, 7, 6, 6, 9, 9, 9, 9), 0.0),
    (categorical("channel", ("desk", "phone", "web", "post", "fax")), (44, 21, 28, 6.8, 0.2), 0.0),
    (ordinal("urgency", ("low", "mid", "high")), (63, 30, 7), 0.0),
    (categorical("caseworker", CASEWORKERS), (9, 9, 9, 8, 8, 8, 8, 7, 7, 7, 6, 6, 5, 2, 1), 0.0),
    (categorical("office", ("main",)), (1,), 0.0),
    (categorical("phone verified", YES_NO), (22, 78), 0.0),
    (categorical("e-mail", YES_NO, missing=True), (31, 69), 0.16),
    (ordinal("pets", ("0", "1", "2", "3+")), (68, 22, 8, 2), 0.0),
    (categorical("école", ("primary", "middle", "high", "special"), missing=True), (45, 30, 22, 3), 0.72),
    (categorical("банк", ("Alpha", "Bank24", "Kassa", "Союз", "none")), (41, 28, 22, 6, 3), 0.0),
    (categorical("interpreter", YES_NO, missing=True), (91, 9), 0.04),
    (categorical("appeal", YES_NO), (98.8, 1.2), 0.0),
    (categorical("fraud flag", YES_NO), (99.75, 0.25), 0.0),
)

YES = ["yes"]
# The number of these twelve burdens that a person has is a figure that counts of pairs do not preserve.
BURDENS = {
    "work": ["none"],
    "education": ["none", "basic"],
    "disability, percent": ["20", "40", "60", "80", "100"],
    "収入, yearly": [0, 8000],
    "debt": [5000, 500000],
    "savings": [0, 200],
    "rent, €/m²": [12, 30],
    "housing": ["shelter", "street"],
    "heating": ["(missing)"],
    "care level": ["1", "2", "3", "4", "5"],
    "urgency": ["high"],
    "interpreter": YES,
}

SERVICES = {
    **project(
        "services",
        schema=[
            numeric("age", PERSON_AGE),
            categorical("gender", ("woman", "man", "diverse")),
            categorical("nationality", NATIONS),
            categorical("language", LANGUAGES, missing=True),
            ordinal("household size", SIZES),
            ordinal("children", ("0", "1", "2", "3", "4+")),
            categorical("work", WORK),
            categorical("last occupation", OCCUPATIONS),
            ordinal("education", ("none", "basic", "trade", "upper", "degree"), missing=True),
            ordinal("disability, percent", ("0", "20", "40", "60", "80", "100")),
            categorical("straße", STREETS),
            categorical("district", DISTRICTS),
            categorical("district code", DISTRICT_CODES),
            numeric("収入, yearly", INCOME, missing=True),
            numeric("debt", DEBT),
            numeric("savings", SAVINGS, missing=True),
            numeric("rent, €/m²", RENT, integer=False, missing=True),
            numeric("years in town", TENURE, missing=True),
            *(column for column, _, _ in ALONE),
            numeric("visits", COUNT),
            numeric("paid, last year", PAID),
            categorical("benefit granted", YES_NO),
        ],
        edges=[
            ["work", "収入, yearly"],
            ["収入, yearly", "benefit granted"],
            ["household size", "benefit granted"],
            ["disability, percent", "benefit granted"],
            ["paid, last year", "benefit granted"],
        ],
        roles={
            "outcome": ["benefit granted"],
            "protected": ["gender"],
            "admissible": ["収入, yearly", "household size", "disability, percent"],
            "inadmissible": ["straße"],
        },
        method="prism",
        regime="predictive",
        target="benefit granted",
        question_share=0.2,
    ),
    "questions": [
        {"name": "five burdens or more", "where": {"burdens": [5, 12]}},
        {"name": "many burdens, refused", "where": {"burdens": [4, 12], "benefit granted": ["no"]}},
        {
            "name": "poor, old and granted",
            "where": {"age": [65, 100], "収入, yearly": [0, 8000], "benefit granted": YES},
        },
        {
            "name": "in need twice",
            "any": [
                {"work": ["none"], "disability, percent": ["40", "60", "80", "100"]},
                {"収入, yearly": [0, 2000], "household size": ["4", "5", "6+"]},
            ],
        },
    ],
    "counts": [{"name": "burdens", "of": BURDENS, "up_to": 12}],
}


def register(rng: np.random.Generator, rows: int) -> Table:
    """Return people known to a town's social services; most pairs of columns are unrelated."""

    def amount(typical: Any, spread: float, edges: Sequence[float], zero: Any) -> np.ndarray:
        """Return log-normal whole amounts of at least 1, of which a share ``zero`` is replaced by 0."""
        drawn = np.round(typical * np.exp(spread * rng.standard_normal(rows)))
        return np.where(rng.random(rows) < zero, 0, within(np.maximum(drawn, 1), edges))

    age = within(np.round(46 + 17 * rng.standard_normal(rows)), PERSON_AGE)
    gender = pick(rng, [51, 48.4, 0.6], rows)
    nation = pick(rng, np.arange(1, 17) ** -1.7, rows)
    language = np.where(rng.random(rows) < 0.6, 0, pick(rng, np.arange(1, 11) ** -1.5, rows))
    size = pick(rng, [41, 27, 14, 10, 5, 3], rows)
    children = np.minimum((size * rng.random(rows)).astype(int), 4)
    work = np.where(
        age >= 65, 3, np.where(age < 25, pick(rng, [25, 20, 25, 0, 30], rows), pick(rng, [34, 24, 38, 2, 2], rows))
    )
    education = np.digitize(rng.standard_normal(rows) + 0.2 * (work == 2), [-1.6, -0.5, 0.5, 1.3])
    disability = pick(rng, [84, 5, 4, 3.5, 2.5, 1], rows)
    street = pick(rng, np.arange(1, 25) ** -0.5, rows)
    district = street // 3
    mistyped = pick(rng, np.ones(8), rows)
    income = amount(
        np.array([4_000, 11_000, 24_000, 14_000, 5_000])[work] * np.exp(0.12 * (education - 2)),
        0.7,
        INCOME,
        np.array([0.45, 0.04, 0.01, 0.06, 0.35])[work],
    )
    need = 1.2 - income / 8_000 + 0.5 * size + 0.5 * disability
    paid = amount(2_200, 0.6, PAID, np.where(need + rng.standard_normal(rows) > 0.9, 0.3, 0.9))
    granted = coin(rng, 0.9 * need - 0.9 + 0.8 * (paid > 0), rows)
    table = {
        "age": text(age),
        "gender": named(("woman", "man", "diverse"), gender),
        "nationality": named(NATIONS, nation),
        "language": blank(rng, named(LANGUAGES, language), 0.03),
        "household size": named(SIZES, size),
        "children": named(("0", "1", "2", "3", "4+"), children),
        "work": named(WORK, work),
        "last occupation": named(OCCUPATIONS, pick(rng, np.arange(1, 61) ** -1.6, rows)),
        "education": blank(rng, named(("none", "basic", "trade", "upper", "degree"), education), 0.09),
        "disability, percent": named(("0", "20", "40", "60", "80", "100"), disability),
        "straße": named(STREETS, street),
        "district": named(DISTRICTS, district),
        "district code": named(DISTRICT_CODES, np.where(rng.random(rows) < 0.02, mistyped, district)),
        "収入, yearly": blank(rng, text(income), 0.06),
        "debt": text(amount(3_000, 1.6, DEBT, 0.63)),
        "savings": blank(rng, text(amount(1_200, 1.5, SAVINGS, 0.48)), 0.18),
        "rent, €/m²": blank(rng, text(within(9 * np.exp(0.3 * rng.standard_normal(rows)), RENT), 1), 0.13),
        "years in town": blank(rng, text(within(np.floor(age * rng.random(rows)), TENURE)), 0.12),
    }
    for column, weights, empty in ALONE:
        table[column["name"]] = blank(rng, named(column["categories"], pick(rng, weights, rows)), empty)
    return {
        **table,
        "visits": text(amount(2.5, 0.9, COUNT, 0.35)),
        "paid, last year": text(paid),
        "benefit granted": named(YES_NO, granted),
    }


# --- visits: several rows of each person --------------------------------------------------------

CLINICS = ("eyes", "heart", "skin", "pain", "children")
REMINDERS = ("none", "letter", "text")
WEEK = DAYS[:5]
YEARS_OLD = (0, 18, 30, 45, 60, 75, 100)
DISTANCE = (0, 2, 5, 10, 20, 40, 80)
WAITED = (0, 3, 7, 14, 28, 60, 120)

VISITS = project(
    "visits",
    schema=[
        numeric("age", YEARS_OLD),
        categorical("sex", SEXES),
        numeric("distance_km", DISTANCE),
        categorical("clinic", CLINICS),
        ordinal("weekday", WEEK),
        numeric("days_waited", WAITED),
        categorical("reminder", REMINDERS),
        categorical("missed", YES_NO),
    ],
    edges=[
        ["age", "clinic"],
        ["clinic", "days_waited"],
        ["age", "reminder"],
        ["distance_km", "missed"],
        ["days_waited", "missed"],
        ["reminder", "missed"],
    ],
    roles={
        "outcome": ["missed"],
        "protected": ["sex"],
        "admissible": ["distance_km", "days_waited", "reminder"],
        "inadmissible": [],
    },
    method="prism",
    regime="causal",
    target="missed",
    rows_per_person=2,
    rows=5_000,
    person="patient",
    private_evaluation=0.2,
)


def appointments(rng: np.random.Generator, people: int) -> Table:
    """Return appointments of patients. Most patients have one or two; some have dozens and miss more of them."""
    often = rng.standard_normal(people)
    count = np.clip(np.round(np.exp(0.6 + 0.95 * often)), 1, 40).astype(int)
    age = np.abs(within(np.round(48 + 22 * rng.standard_normal(people)), YEARS_OLD))  # no -0
    sex, far = pick(rng, [0.53, 0.47], people), within(np.round(np.exp(1.8 + rng.standard_normal(people))), DISTANCE)
    whose = rng.permutation(np.repeat(np.arange(people), count))
    rows, age, far = len(whose), age[whose], far[whose]
    old = (age - 48) / 22
    clinic = np.where(age < 18, 4, pick(rng, [3, 4, 3, 2], rows))
    waited = np.round(np.array([21, 12, 16, 9, 5])[clinic] * np.exp(0.7 * rng.standard_normal(rows)))
    waited = within(waited, WAITED)
    reminder = np.where(coin(rng, -0.4 - 0.7 * old, rows), 2, pick(rng, [1, 1], rows))
    missed = coin(rng, -1.3 + 0.03 * far + 0.045 * waited - 0.6 * reminder + 0.35 * np.maximum(often[whose], 0), rows)
    return {
        "patient": np.array([f"P{number:04d}" for number in whose.tolist()], dtype=object),
        "age": text(age),
        "sex": named(SEXES, sex[whose]),
        "distance_km": text(far),
        "clinic": named(CLINICS, clinic),
        "weekday": named(WEEK, pick(rng, [5, 4, 4, 4, 3], rows)),
        "days_waited": text(waited),
        "reminder": named(REMINDERS, reminder),
        "missed": named(YES_NO, missed),
    }


# --- writing ------------------------------------------------------------------------------------


def write(folder: Path) -> list[Path]:
    """Write every table and project file into ``folder``; return the paths of the files."""
    tables = {
        "readmission": hospital(np.random.default_rng(11), 8_000, codes_follow_outcome=True),
        "readmission_other_hospital": hospital(np.random.default_rng(12), 8_000, codes_follow_outcome=False),
        "hiring": applicants(np.random.default_rng(13), 6_000),
        "services": register(np.random.default_rng(14), 6_000),
        "visits": appointments(np.random.default_rng(15), 3_000),
        "stays": stays(np.random.default_rng(16), 6_000),
        **{f"clinic_{name}": table for name, table in clinic(np.random.default_rng(17), 4_000).items()},
    }
    written = []
    for name, table in tables.items():
        written.append(folder / f"{name}.csv")
        with written[-1].open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(table)
            lines.writerows(zip(*table.values(), strict=True))
    for content in (READMISSION, HIRING, SERVICES, VISITS, STAYS, CLINIC):
        written.append(folder / f"{content['name']}.json")
        pretty = json.dumps(content, ensure_ascii=False, indent=1)
        written[-1].write_text(pretty + "\n", encoding="utf-8", newline="\n")
    return written


if __name__ == "__main__":
    for path in write(Path(__file__).parent):
        print(path.name)
