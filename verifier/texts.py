"""Checks 6 and 7: the texts repeat the statement, and the ledger holds the release once."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from fractions import Fraction
from typing import Any

from .budget import epsilon_of
from .folder import Folder, parsed

FIXED = {"fa2db12e48a20fc0", "c4e6d66918af6286", "70e5c1f0417edbbf", "42fc1e3860734f01"}
"""Beginnings of the SHA-256 of the sentences that are the same in all releases of a unit."""
NUMBER = re.compile(r"([εδρ]) = ([0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)")


def check_texts(folder: Folder) -> None:
    """Report, label, registry entry and Croissant card repeat the statement, and name no other ε, δ or ρ."""
    made, facts, wrong = folder.statement, folder.facts, list[str]()
    names = [n for n in ("report.html", "label.html", "registry.yaml", "croissant.json") if n in folder.names]
    known = [x for key in ("asked", "spent") for k, x in facts[key].items() if k in ("epsilon", "delta", "rho")]
    known += [x for part in (facts.get("ledger") or {}).values() if isinstance(part, dict) for x in part.values()]
    known += [d["delta"] for d in made.get("draws", [])] + [m["rho"] for m in [facts.get("looking")] if m]
    known = [float(x) for x in known if type(x) in (int, float)]
    for name in names:
        text = _text(folder.read(name), name)
        said = [
            f"{c} = {x}"
            for c, x in NUMBER.findall(text)
            if not any(math.isclose(float(x), y, rel_tol=1e-3) for y in known)
        ]
        needed = [facts["project"]["name"], *([f"{facts['rows']:,}"] if name != "croissant.json" else [])]
        needed += _needed(made, name) if made else []
        wrong += [f"{name} says {s}" for s in said] + [
            f"{name} does not say “{s[:60]}”" for s in needed if s not in text
        ]
        for c, key in zip("εδ", ("epsilon", "delta"), strict=True):
            if not any(
                a == c and math.isclose(float(x), facts["asked"][key], rel_tol=1e-3) for a, x in NUMBER.findall(text)
            ):
                wrong.append(f"{name} does not say {c}")
    if made:
        wrong += _fixed(made)
        e, d = facts["asked"]["epsilon"], facts["asked"]["delta"]
        if not math.isclose(
            made["guarantee"]["guess_right"], min(1.0, (1 + d * math.exp(-e)) / (1 + math.exp(-e))), rel_tol=1e-9
        ):
            wrong.append("the chance to guess right does not follow from (ε, δ)")
        entry, card = folder.json("registry.yaml")["deployment"], folder.json("croissant.json")
        wanted = {"epsilon": e, "delta": d, "rho": facts["spent"]["rho"]}
        schema = [c["name"] for c in facts["project"]["schema"] if c["kind"] != "identifier" or c.get("invented")]
        pairs = [
            (entry["privacy_loss"]["privacy_parameters"], wanted, "registry.yaml: privacy parameters"),
            (entry["basic"]["publication_date"], made["release"]["date"], "registry.yaml: date"),
            (entry["privacy_loss"]["privacy_unit"], made["unit"]["sentence"], "registry.yaml: unit"),
            (
                entry["privacy_loss"]["privacy_parameters_details"],
                made["guarantee"]["sentence"],
                "registry.yaml: guarantee",
            ),
            (
                card["distribution"][0]["sha256"],
                hashlib.sha256(folder.read("synthetic.csv")).hexdigest(),
                "croissant.json: digest",
            ),
            ([f["name"] for f in card["recordSet"][0]["field"]], schema, "croissant.json: columns"),
        ]
        wrong += [f"{what} is another" for a, b, what in pairs if a != b]
    folder.say(6, wrong, f"{', '.join(names)} say the same")


def _fixed(made: dict[str, Any]) -> list[str]:
    """Sentences that the unit fixes: who is protected, which tables are adjacent, what is not protected or assumed."""
    unit, k = made["unit"], made["unit"]["rows_per_person"]
    replace, person = unit["neighbors"] == "replace-one", unit["person"]
    change = ("becoming another, or nobody" if person else "changing in place") if replace else "being there or not"
    rows = "one row" if k == 1 else f"up to {k} rows"
    who = (
        f"one person with all their rows (“{person}”, at most {k} of them kept)" if person else f"{rows} of one person"
    )
    wrong = [] if unit["sentence"] == f"Protected: {who} {change}." else ["the unit is described as another one"]
    lines = [unit["adjacent"].replace(f"“{person}”", "{person}").replace(f" {k} ", " {k} ")]
    fixed = [*made["not_protected"], *made["assumed"][-4:], *lines]
    mark = hashlib.sha256("\n".join(fixed).encode()).hexdigest()
    return wrong + (["the limits of the guarantee are stated otherwise"] if mark[:16] not in FIXED else [])


def _needed(made: dict[str, Any], name: str) -> list[str]:
    """The sentences of the statement that a text repeats word for word."""
    unit, out = made["unit"], [made["unit"]["sentence"], *made["not_protected"], *made["assumed"]]
    if name.endswith(".html"):
        return [
            *out,
            unit["stated"],
            *([made["signer"]["fingerprint"]] if made["signer"] else ["was not signed when it was made"]),
        ]
    return [*out, unit["adjacent"], made["guarantee"]["sentence"]]


def _text(data: bytes, name: str) -> str:
    """The words of a file: HTML without its tags, or all texts of a JSON file."""
    if name.endswith(".html"):
        return html.unescape(re.sub(r"<[^>]*>", "", data.decode()))
    out, queue = list[str](), [parsed(data, name)]
    for value in queue:  # grows
        queue += list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        out += [value] if isinstance(value, str) else []
    return "\n".join(out)


def check_ledger(folder: Folder, export: bytes | None) -> None:
    """The exported ledger: its chain holds, the release is in it once, and its population stays within its total."""
    said = folder.facts.get("ledger")
    if export is None:
        folder.note(
            7, "not recorded in a ledger" if said is None else "recorded in a ledger; give its export to check it"
        )
        return
    events, previous = parsed(export, "the export")["events"], "0" * 64
    for i, event in enumerate(events, 1):
        body = json.dumps({k: v for k, v in event.items() if k != "hash"}, sort_keys=True, separators=(",", ":"))
        if (event["seq"], event["previous"], event["hash"]) != (i, previous, hashlib.sha256(body.encode()).hexdigest()):
            folder.say(7, [f"the chain breaks at event {i}"], "")
            return
        previous = event["hash"]
    wrong = _entry(folder, said, events) if said else ["the release names no entry of a ledger"]
    folder.say(7, wrong, f"the ledger holds this release once, and its total is kept (last hash {previous})")


def _entry(folder: Folder, said: dict[str, Any], events: list[dict[str, Any]]) -> list[str]:
    """Errors of the entry of this release, and of its population."""
    mine, asked, spent = (
        [e for e in events if e["entry"] == said["entry"]],
        folder.facts["asked"],
        folder.facts["spent"],
    )
    kinds = [e["kind"] for e in mine if e["kind"] in ("reserve", "spend", "return")]
    opened = [e for e in events if e["kind"] == "open" and e["population"] == said["population"]]
    if kinds != ["reserve", "spend"] or len(opened) != 1:
        return [f"the ledger holds {' and '.join(kinds) or 'nothing'} of entry {said['entry']}"]
    start, end, total = mine[0], mine[-1], opened[0]
    digest, before, counted = _digest(folder), Fraction(0), Fraction(0)
    reserved = {e["entry"]: Fraction(e["rho"]) for e in events if e["kind"] == "reserve"}
    wrong = []
    for e in [
        e for e in events if e["population"] == said["population"] and e["kind"] in ("reserve", "spend", "return")
    ]:
        before = counted if e is start else before
        counted += Fraction(e["rho"]) - (0 if e["kind"] == "reserve" else reserved[e["entry"]])
        wrong += [f"the total is exceeded at event {e['seq']}"] if counted > Fraction(total["rho"]) else []
    if not before <= Fraction(said["before"]["rho"]) <= before * (1 + Fraction(1, 10**12)):
        wrong.append("what was spent before does not add up")
    if (
        epsilon_of(said["before"]["rho"], total["delta"]) * (1 - 1e-9) > said["before"]["epsilon"]
        or end["rho"] > start["rho"]
    ):
        wrong.append("more was spent than stated")
    pairs: list[tuple[Any, Any, str]] = [
        ([e["kind"] for e in events if e["released"] == digest], ["spend"], "files"),
        (start["hash"], said["chain"], "chain"),
        (end["rho"], spent["rho"], "ρ"),
        (start["delta"], asked["delta"], "δ"),
        (json.loads(start["plan"])["plan"].get("person"), spent.get("person"), "person column"),
        *((e["table_name"], said["table"], "table") for e in mine),
        *((e["population"], said["population"], "population") for e in mine),
        *((e[k], spent[k], "unit") for e in (start, total) for k in ("neighbors", "rows_per_person")),
        *((total[k], said["total"][k], "total") for k in ("epsilon", "delta", "rho")),
        (start["rho_before"], said["before"]["rho"], "ρ before"),
    ]
    return wrong + [f"ledger and release name other {what}" for a, b, what in pairs if a != b]


def _digest(folder: Folder) -> str:
    """The ledger's hash of a release: that of what ``sha256sum`` prints for its files, sorted by name."""
    further = re.compile(r"statement\.(json|sig)|dictionary\..*|synthetic-whole\.csv|synthetic\.(?!csv$).*")
    names = sorted(n for n in folder.names if not further.fullmatch(n))
    lines = [f"{hashlib.sha256(folder.read(n)).hexdigest()}  {n}\n" for n in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
