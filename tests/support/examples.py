"""The code blocks of the documents, and the files that their commands expect."""

from __future__ import annotations

import csv
import random
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(
    [ROOT / "README.md", ROOT / "verifier" / "README.md", *(p for p in (ROOT / "docs").rglob("*.md"))],
)
SYNOPSIS = re.compile(r"\[|…|\b(TABLE|COMMAND|PROJECT\.json|FILE|VERSION)\b")
"""A line with an optional part or a placeholder shows a form, not a command."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?: {4}.*\n(?:\n(?= {4}))?)+)")


@dataclass(frozen=True)
class Block:
    """One code block: ``kind`` is `sh`, `python`, `json` or empty for anything else."""

    kind: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Commands of `espalier` in it, without comments and synopses."""
        if self.kind != "sh":
            return []
        lines = [shlex.join(shlex.split(line, comments=True)) for line in self.text.splitlines() if line.strip()]
        return [line for line in lines if line.startswith("espalier ") and not SYNOPSIS.search(line)]


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page in their order, fenced and indented."""
    text = page.read_text("utf-8")
    found = [(m.start(), Block(m[1], m[2])) for m in _FENCE.finditer(text)]
    unfenced = _FENCE.sub(lambda m: "\n" * m[0].count("\n") + "-" * (len(m[0]) - m[0].count("\n")), text)
    for match in _INDENTED.finditer(unfenced):
        if not match[1].strip():
            continue
        body = "\n".join(line[4:] for line in match[1].splitlines()) + "\n"
        found.append((match.start(), Block("sh" if body.startswith("espalier ") else "", body)))
    return [block for _, block in sorted(found, key=lambda one: one[0])]


def people(n: int, seed: int = 1) -> list[dict[str, str]]:
    """Return rows with the columns that the documents name."""
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        ward, age = draw.choice("ABC"), draw.randrange(20, 90)
        sick = draw.random() < 0.2 + 0.3 * (age > 60)
        rows.append(
            {
                "patient_id": f"P{i // 2:05}",
                "age": str(age),
                "sex": draw.choice("fm"),
                "diag_1": draw.choice(("250.43", "428", "786", "V58")),
                "state": draw.choice(("AL", "CA", "NY")),
                "brand": draw.choice(("one", "two")),
                "price": (price := f"{draw.uniform(1, 5):.2f}"),
                "units": str(max(0, round(400 / float(price) + draw.gauss(0, 20)))),
                "ward": "?" if i == 3 else "-9" if i == 4 else ward,
                "smoker": draw.choice(("yes", "no")),
                "sick": "yes" if sick else "no",
                "readmitted": "yes" if draw.random() < 0.2 + 0.3 * sick else "no",
            }
        )
    return rows


def write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    """Write rows with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def panel(n: int) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return patients and their visits."""
    draw = random.Random(2)
    patients, visits = [], []
    for i in range(n):
        age, sex = draw.choice(("young", "old")), draw.choice(("f", "m"))
        patients.append({"patient_nbr": f"{i:05}", "age": age, "sex": sex})
        diag = draw.choice("AB")
        for t in range(draw.randrange(1, 6)):
            diag = diag if draw.random() < 0.7 else draw.choice("ABC")
            visits.append(
                {
                    "encounter_id": f"{i:05}-{t}",
                    "patient_nbr": f"{i:05}",
                    "admitted": f"2024-{t + 1:02}-{draw.randrange(1, 28):02}",
                    "diag": diag,
                    "insulin": draw.choice(("yes", "no")),
                    "readmitted": "yes" if draw.random() < 0.3 + 0.3 * (diag == "B") else "no",
                }
            )
    return patients, visits
