"""Checks 6 and 7: report, label, registry entry and Croissant card repeat the statement; the ledger holds the release."""

from __future__ import annotations

import hashlib
import html
import json
import math
from fractions import Fraction
from typing import Any

from .budget import epsilon_of
from .folder import SIGNATURE, STATEMENT, Folder, parsed


def shown(x: float, figures: int = 4) -> str:
    """A figure as the report shows it: so many figures, rounded up."""
    from decimal import ROUND_CEILING, Decimal

    if x <= 0:
        return "0"
    exact = Decimal(repr(float(x)))
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - figures + 1), ROUND_CEILING)):.{figures}g}"


def check_texts(folder: Folder) -> None:
    """The numbers of the claims stand in every text for people, and in every file for catalogues."""
    made, facts = folder.statement, folder.facts
    wrong = list[str]()
    asked, spent = facts["asked"], facts["spent"]
    numbers = [f"ε = {shown(asked['epsilon'])}", f"δ = {shown(asked['delta'])}", f"ρ = {shown(spent['rho'])}"]
    rows, name = f"{facts['rows']:,}", html.escape(facts["project"]["name"])
    for file in ("report.html", "label.html"):
        if not folder.has(file):
            continue
        text = folder.read(file).decode()
        wrong += [f"{file} does not say {what}" for what in (*numbers, rows, name) if what not in text]
        if made is not None:
            wrong += _sentences(file, text, made)
    if made is not None:
        odds = math.exp(-asked["epsilon"])
        right = min(1.0, (1 + asked["delta"] * odds) / (1 + odds))
        if not math.isclose(made["guarantee"]["guess_right"], right, rel_tol=1e-9):
            wrong.append("the chance to guess right does not follow from (ε, δ)")
        wrong += _registry(folder, made) + _croissant(folder, made)
    folder.add(6, not wrong, "; ".join(wrong[:5]) or "report, label, registry entry and Croissant card say the same")


def _sentences(file: str, text: str, made: dict[str, Any]) -> list[str]:
    """What the label must repeat word for word; the report holds the same label."""
    said = [made["unit"]["sentence"], made["unit"]["stated"], *made["not_protected"], *made["assumed"]]
    if made["signer"]:
        said.append(made["signer"]["fingerprint"])
    label = text[text.find('<section class="label">') :]
    return [f"{file} does not say “{s[:60]}…”" for s in said if html.escape(s) not in label][:2]


def _registry(folder: Folder, made: dict[str, Any]) -> list[str]:
    entry = parsed(folder.read("registry.yaml"), "registry.yaml")["deployment"]
    said, loss = entry["privacy_loss"]["privacy_parameters"], entry["privacy_loss"]
    wanted = {**{k: made["guarantee"][k] for k in ("epsilon", "delta")}, "rho": made["spent"]["rho"]}
    pairs = [
        (said, wanted, "privacy parameters"),
        (loss["privacy_unit"], made["unit"]["sentence"], "privacy unit"),
        (loss["privacy_unit_details"], f"{made['unit']['adjacent']} {made['unit']['stated']}", "adjacent tables"),
        (loss["privacy_parameters_details"], made["guarantee"]["sentence"], "guarantee"),
        (entry["dp_variant"]["unprotected_quantities"], " ".join(made["not_protected"]), "unprotected quantities"),
        (entry["deployment_model"]["actors"], " ".join(made["assumed"]), "assumptions"),
        (entry["basic"]["publication_date"], made["release"]["date"], "date"),
        (entry["basic"]["name"], made["release"]["name"], "name"),
        (f"{made['release']['rows']:,} synthetic rows" in entry["basic"]["description"], True, "rows"),
    ]
    return [f"registry.yaml says another {what}" for a, b, what in pairs if a != b]


def _croissant(folder: Folder, made: dict[str, Any]) -> list[str]:
    card, facts = parsed(folder.read("croissant.json"), "croissant.json"), folder.facts
    out = []
    if card["distribution"][0]["sha256"] != hashlib.sha256(folder.read("synthetic.csv")).hexdigest():
        out.append("croissant.json has another digest of the table")
    if [f["name"] for f in card["recordSet"][0]["field"]] != [
        c["name"] for c in facts["project"]["schema"] if c["kind"] != "identifier" or c.get("invented")
    ]:
        out.append("croissant.json lists other columns")
    asked, spent = facts["asked"], facts["spent"]
    promise = f"ε = {asked['epsilon']:g}, δ = {asked['delta']:g}, {spent['neighbors']}, at most {spent['rows_per_person']} rows"
    if promise not in card["description"]:
        out.append("croissant.json promises something else")
    said = card.get("rai:personalSensitiveInformation", [])
    wanted = [
        made["guarantee"]["sentence"],
        f"{made['unit']['sentence']} {made['unit']['adjacent']}",
        *made["not_protected"],
    ]
    if said != wanted or card.get("rai:dataLimitations") != made["assumed"]:
        out.append("croissant.json says something else about the people")
    return out


def check_ledger(folder: Folder, export: bytes | None) -> None:
    """The exported ledger: its chain holds, the release is in it once, and its population stays within its total."""
    said = folder.facts.get("ledger")
    if folder.statement is not None and folder.statement.get("ledger") != said:
        folder.add(7, False, "statement and release.json name different ledger entries")
    if export is None:
        text = "not recorded in a ledger" if said is None else "recorded in a ledger; give its export to check"
        folder.add(7, None, text)
        return
    made, wrong = parsed(export, "the export"), list[str]()
    events = made["events"]
    previous = "0" * 64
    for i, event in enumerate(events, 1):
        fields = {k: v for k, v in event.items() if k != "hash"}
        found = hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        if event["seq"] != i or event["previous"] != previous or event["hash"] != found:
            wrong.append(f"the chain breaks at event {i}")
            break
        previous = found
    if said is None:
        folder.add(7, False, "; ".join([*wrong, "the release names no entry of a ledger"]))
        return
    folder.add(
        7, not (wrong := wrong + _entry(folder, said, events)), "; ".join(wrong[:5]) or f"entry {said['entry']} holds"
    )


def _entry(folder: Folder, said: dict[str, Any], events: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the entry of this release and with its population."""
    mine = [e for e in events if e["entry"] == said["entry"]]
    reserved, ended = ([e for e in mine if e["kind"] in kinds] for kinds in (("reserve",), ("spend", "return")))
    opened = [e for e in events if e["kind"] == "open" and e["population"] == said["population"]]
    if len(reserved) != 1 or len(ended) != 1 or ended[0]["kind"] != "spend" or len(opened) != 1:
        return [f"the ledger holds {len(reserved)} reservations and {len(ended)} ends of entry {said['entry']}"]
    start, end, total, spent = reserved[0], ended[0], opened[0], folder.facts["spent"]
    out = []
    digests = [e["released"] for e in events if e["kind"] == "spend"]
    found = _digest(folder)
    if end["released"] != found or digests.count(found) != 1:
        out.append("the ledger's digest is not that of these files, or it is there twice")
    pairs = [
        (start["hash"], said["chain"], "chain"),
        (start["table_name"], said["table"], "table"),
        (start["population"], said["population"], "population"),
        (end["rho"], spent["rho"], "ρ"),
        (start["neighbors"], spent["neighbors"], "unit"),
        (start["rows_per_person"], spent["rows_per_person"], "rows per person"),
        (total["neighbors"], spent["neighbors"], "unit of the population"),
        (total["rows_per_person"], spent["rows_per_person"], "rows per person of the population"),
        (start["delta"], folder.facts["asked"]["delta"], "δ"),
        (start["rho_before"], said["before"]["rho"], "ρ before"),
        (
            (total["epsilon"], total["delta"], total["rho"]),
            tuple(said["total"][k] for k in ("epsilon", "delta", "rho")),
            "total",
        ),
        (json.loads(start["plan"])["plan"].get("person"), spent.get("person"), "person column"),
    ]
    out += [f"ledger and release name another {what}" for a, b, what in pairs if a != b]
    counted, before = Fraction(0), None
    for event in events:
        if event["population"] != said["population"]:
            continue
        if event["kind"] == "reserve":
            before = counted if event is start else before
            counted += Fraction(event["rho"])
        elif event["kind"] in ("spend", "return"):
            own = next(e for e in events if e["kind"] == "reserve" and e["entry"] == event["entry"])
            counted += Fraction(event["rho"]) - Fraction(own["rho"])
        if counted > Fraction(total["rho"]):
            return [*out, f"the total of {said['population']} is exceeded at event {event['seq']}"]
    if before is None or not before <= Fraction(start["rho_before"]) <= before * (1 + Fraction(1, 10**12)):
        out.append("what was spent before does not add up")
    least = epsilon_of(said["before"]["rho"], total["delta"])
    if not least * (1 - 1e-9) <= said["before"]["epsilon"]:
        out.append("ε before does not follow from ρ before")
    if end["rho"] > start["rho"]:
        out.append("more was spent than reserved")
    return out


def _digest(folder: Folder) -> str:
    """The ledger's hash of a release: that of what ``sha256sum`` prints for its files, sorted by name."""
    names = sorted(p.relative_to(folder.path).as_posix() for p in folder.path.rglob("*") if p.is_file())
    further = (STATEMENT, SIGNATURE, "synthetic.parquet", "synthetic-whole.csv")
    lines = [f"{hashlib.sha256(folder.read(n)).hexdigest()}  {n}\n" for n in names if n not in further]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
