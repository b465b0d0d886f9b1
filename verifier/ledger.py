"""Check 7: an export of the ledger contains the release exactly once, and the population's total is not exceeded."""

import hashlib
import json
import re
from collections import defaultdict
from fractions import Fraction
from typing import Any

from .budget import differing, entry, epsilon_of
from .folder import Folder, parsed

LEDGER = """
reserve.table_name       ledger.table
reserve.population       ledger.population
reserve.neighbors        spent.neighbors
reserve.rows_per_person  spent.rows_per_person
reserve.delta            asked.delta
reserve.hash             ledger.chain
reserve.rho_before       ledger.before.rho
spend.table_name         ledger.table
spend.population         ledger.population
spend.rho                spent.rho
open.neighbors           spent.neighbors
open.rows_per_person     spent.rows_per_person
open.epsilon             ledger.total.epsilon
open.delta               ledger.total.delta
open.rho                 ledger.total.rho
"""
"""Fields of ledger events, each with the entry in ``release.json`` that repeats it."""
FURTHER = re.compile(r"statement\.(json|sig)|dictionary\..*|synthetic-whole\.csv|synthetic\.(?!csv$).*")
"""Files that the ledger's hash of a release excludes."""
KINDS = {"open", "join", "reserve", "select", "measure", "look", "stop", "spend", "return", "diagnose"}


def slip_of(event: dict[str, Any]) -> float:
    """Return the δ that an event reserves for the δ₀ of draws."""
    return float(json.loads(event["plan"] or "{}").get("delta_for_draws", 0))


def totals(said: dict[str, Any], rho: float) -> list[str]:
    """Return errors in the ledger's total in ``release.json``. Its ρ must give its ε, and the release must fit into
    it."""
    total, before = said["total"], said["before"]
    delta = total["delta"] - (said.get("delta_for_draws") or {}).get("total", 0)
    wrong = ["the ledger's total is exceeded"] * (Fraction(before["rho"]) + Fraction(rho) > Fraction(total["rho"]))
    if said["after"]["rho"] < (before["rho"] + rho) * (1 - 1e-12):
        wrong.append("the amount spent after this release is less than the earlier amount plus the release's own")
    for part in (total, before, said["after"]):
        least = epsilon_of(part["rho"], delta)
        if least * (1 - 1e-9) > part["epsilon"]:
            wrong.append("a ρ of the ledger gives a larger ε than is stated")
        if part is not total and part["epsilon"] > least * (1 + 1e-6):
            wrong.append("a ρ of the ledger gives a smaller ε than is stated")
    return wrong


def spending(
    moves: list[dict[str, Any]], total: dict[str, Any], kept: float, start: dict[str, Any]
) -> tuple[Fraction, list[str]]:
    """Return the ρ charged before the event ``start``, and the events that break a rule.

    An open entry is charged at the amount it reserved. A finished entry is charged at the amount it spent, which is at
    least the cost of its draws and at most the amount it reserved. A returned entry has made no draws.
    """
    wrong, before, counted, slips = list[str](), Fraction(0), Fraction(0), Fraction(0)
    reserved, drawn, ended = dict[str, tuple[Fraction, Fraction]](), defaultdict[Any, Fraction](Fraction), set[str]()
    for e in moves:
        before, name, kind = counted if e is start else before, e["entry"], e["kind"]
        rho, slip = Fraction(e["rho"] or 0), Fraction(slip_of(e) if kind == "reserve" else e["delta"] or 0)
        good = min(rho, slip) >= 0 and name not in ended and (name in reserved) is (kind != "reserve")
        if kind == "reserve":
            good = good and all(e[key] == total[key] for key in ("neighbors", "rows_per_person"))
            reserved[name], counted, slips = (rho, slip), counted + rho, slips + slip
        elif kind in ("spend", "return"):
            most = reserved.get(name, (Fraction(0), Fraction(0)))
            good = good and max(drawn[name, False], drawn[name, True]) <= rho * (1 + Fraction(1, 10**9))
            good = good and rho <= most[0] and slip <= most[1] and (kind == "spend" or rho == slip == 0)
            counted, slips = counted + rho - most[0], slips + slip - most[1]
            ended.add(name)
        elif kind != "stop":  # draws from held-out people are parallel to the other draws
            drawn[name, kind == "look"] += rho
        if not good:
            wrong.append(
                f"event {e['seq']} has another unit or no open entry, or is charged too much, or less than was drawn"
            )
        if counted > Fraction(total["rho"]) or slips > Fraction(kept):
            wrong.append(f"the total is exceeded at event {e['seq']}")
    return before, wrong


def check_ledger(folder: Folder, export: bytes | None) -> None:
    """Check the exported ledger: its hash chain is intact, it contains the release once, and the population stays
    within its total.
    """
    facts, said = folder.facts, folder.facts.get("ledger")
    wrong = totals(said, facts["spent"]["rho"]) if said else []
    if export is None or not said:
        if export is not None or wrong:
            folder.say(7, wrong or ["the release names no entry of a ledger"])
        else:
            folder.note(7, "recorded in a ledger; pass its export to check it" if said else "not recorded in a ledger")
        return
    events, previous, tables = parsed(export, "the export")["events"], "0" * 64, dict[str, str]()
    for i, event in enumerate(events, 1):
        body = json.dumps({k: v for k, v in event.items() if k != "hash"}, sort_keys=True, separators=(",", ":"))
        if (event["seq"], event["previous"], event["hash"]) != (i, previous, hashlib.sha256(body.encode()).hexdigest()):
            raise ValueError(f"the chain breaks at event {i}")
        previous = event["hash"]
        of, new = event["population"], event["kind"] in ("open", "join")
        if event["kind"] not in KINDS or tables.get(event["table_name"]) != (None if new else of):
            wrong.append(f"event {i} has an unknown kind, names a table that is not open, or opens one again")
        tables.setdefault(event["table_name"], of)
    moves = [e for e in events if e["population"] == said["population"] and e["kind"] not in ("join", "diagnose")]
    (total, *again), moves = [e for e in moves if e["kind"] == "open"], [e for e in moves if e["kind"] != "open"]
    mine = [e for e in moves if e["entry"] == said["entry"] and e["kind"] in ("reserve", "spend", "return")]
    if [e["kind"] for e in mine] != ["reserve", "spend"] or again:
        folder.say(7, [*wrong, f"the ledger does not contain entry {said['entry']} exactly once"])
        return
    start, end = mine
    wrong += differing(LEDGER, {"open": total, "reserve": start, "spend": end}, facts)
    kept = slip_of(total)
    if kept != (said.get("delta_for_draws") or {}).get("total", 0):
        wrong.append("ledger and release name different δ for draws")
    before, said_wrong = spending(moves, total, kept, start)
    wrong += said_wrong
    stated = Fraction(said["before"]["rho"])
    if not before <= stated <= before * (1 + Fraction(1, 10**12)) or end["rho"] > start["rho"]:
        wrong.append("the spent amounts do not add up")
    if (end["delta"] or 0) < entry(folder.statement, "spent.delta") * (1 - 1e-9):
        wrong.append("the ledger charges less δ than the draws cost")
    if json.loads(start["plan"])["plan"].get("person") != facts["spent"].get("person"):
        wrong.append("ledger and release name different person columns")
    further = {n[:-3] + "parquet" for n in folder.tables}
    names = sorted(n for n in folder.names - further if not FURTHER.fullmatch(n))
    lines = "".join(f"{hashlib.sha256(folder.read(n)).hexdigest()}  {n}\n" for n in names)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    if [e["kind"] for e in events if e["released"] == digest] != ["spend"]:
        wrong.append("the files do not match the entry")
    folder.say(7, wrong, f"the ledger contains this release once, and its total is not exceeded (last hash {previous})")
