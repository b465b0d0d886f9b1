"""Checks 6 and 7: the texts repeat the statement, and the ledger holds the release once."""

import hashlib
import html
import json
import math
import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from .budget import differing, entry, epsilon_of
from .folder import Folder, parsed

FIXED = {"5a973d46db148905", "6f3287a73cff94c0", "9be0c9eebba49535", "bb59732f4510d255"}
FIXED |= {"294f93884010ce43", "59fa5107b8077e4c"}  # of linked tables
FIXED_PURE = {"48a989d38986c8a0", "1ba91ab975e5daeb", "340109bcd5580920", "63a813be0781b420"}
"""SHA-256 prefixes of the sentences that are the same in all releases of a unit, and of those with δ = 0."""
PROMISED = {"d5b2894c33f144c6", "c1f3000c0c61d8ce", "7d60833b93229d20"}
"""Of the sentence of the guarantee, and of the rule for held-out people."""
STATED = {"18faf36ea334023e", "3964cc2c905be54a", "6ee6afb3877a66fc", "9bfd1bc273c18558", "ba38cd457009f47a"}
STATED |= {"d8bddf0d4caa0941", "f67af9f95e7088c4"}
"""Of the sentence about rows per person with the first four promises."""
NUMBERED = re.compile(r"([εδρ]) = (\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
NUMBER = re.compile(
    r"(?:([εδρ])\s*(?:[^\w\s(]{1,2}|is|of|is at most|at most|below)"
    r"|((?i:epsilon|delta|rho))\s*(?:[=≈<≤]|is|is at most))\s*(\d*\.?\d+(?:e[-+]?\d+)?(?:\s*[/·×⋅*^]\s*\d+)?)"
)
TAG = re.compile(r"<(/?)(!?[a-z][a-z0-9]*)((?:\s+[a-zA-Z-]+(?:=\"[^\"<>]*\")?)*)\s*/?>")
TAGS = re.compile(
    "!doctype|body|br|caption|circle|code|defs|div|em|figcaption|figure|g|h[123]|head|html|li|line|main|marker|meta|ol|p"
    "|path|polygon|polyline|pre|rect|section|small|span|strong|style|sub|sup|svg|table|tbody|td|text|th|thead|title|tr"
    "|tspan|ul"
)
"""Elements of reports and labels. An element that is not listed might hide its text."""
ODD = re.compile(
    r'(?:hidden|on\w+|http-equiv)\b|charset="(?!utf-8")|style="(?!(?:(?:stroke-)?width:[\d.]+%?|fill:[^;]*)")', re.I
)
ATTRIBUTE = re.compile(r'[a-zA-Z-]+(?:="[^"<>]*")?')
"""An attribute of an element that `TAG` matches; ``ODD`` is the start of one that might hide text."""
UNSEEN = {"head", "svg", "style", "title"}
"""Elements whose text does not count as a sentence that people read."""
HIDING = re.compile(
    r"""display:\s*none|visibility:|font-size:\s*\.?0(?![.\d]*[1-9])|opacity:\s*0(?![.\d])
    |position:|clip|transform:|text-indent|transparent|@import|[\s{;]content:|[\s{;]color:\s*(?:white|\#f)|url\(""",
    re.I | re.X,
)
LETTERS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
KEYS = {"ε": ("epsilon",), "δ": ("delta", "at_delta"), "ρ": ("rho",)}
SAME = """
deployment.privacy_loss.privacy_parameters.epsilon  guarantee.epsilon
deployment.privacy_loss.privacy_parameters.delta    guarantee.delta
deployment.privacy_loss.privacy_parameters.rho      spent.rho
deployment.privacy_loss.privacy_parameters_details  guarantee.sentence
deployment.privacy_loss.privacy_unit                unit.sentence
deployment.basic.publication_date                   release.date
deployment.basic.name                               release.name
"""
"""Entries of the registry's file, each with the statement's entry that it repeats."""
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
"""Events of the ledger, each with the entry of ``release.json`` that repeats it."""
FURTHER = re.compile(r"statement\.(json|sig)|dictionary\..*|synthetic-whole\.csv|synthetic\.(?!csv$).*")
"""Files that the ledger's hash of a release leaves out."""


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values in JSON, each with its key."""
    if isinstance(value, dict | list):
        for k, v in value.items() if isinstance(value, dict) else ((key, v) for v in value):
            yield from leaves(v, k)
    else:
        yield key, value


def words(folder: Folder, name: str) -> tuple[str, str]:
    """Return the words that people read in a file, and all its words: HTML without tags, or all texts of JSON."""
    data = folder.read(name)
    if not name.endswith(".html"):
        text = plain("\n".join(v for _, v in leaves(parsed(data, name)) if isinstance(v, str)))
        return text, text
    seen, whole, at, inside, page = list[str](), list[str](), 0, list[str](), data.decode()
    for tag in [*TAG.finditer(page), None]:
        text = page[at : tag.start() if tag else None]
        text = re.sub(r"url\(data:font/woff2;base64,[\w+/=]*\)", "", text) if "style" in inside else text
        odd = "<" in text or (tag and (not TAGS.fullmatch(tag[2]) or any(map(ODD.match, ATTRIBUTE.findall(tag[3])))))
        if odd or HIDING.search(text if "style" in inside else ""):
            raise ValueError(f"{name} may hide text near {page[at : at + 60]!r}")
        whole.append(text)
        seen += [] if inside else [text]
        if tag:
            at = tag.end()
            inside = [n for n in inside if n != tag[2]] + [tag[2]] * (tag[2] in UNSEEN and not tag[1])
    return plain(html.unescape("".join(seen))), plain(html.unescape("".join(whole)))


def plain(text: str) -> str:
    """Return the text with one form of each letter, and without characters of no width."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def same(text: str, number: float) -> bool:
    """Return whether a text states a number; a fraction or a power does not."""
    return bool(re.fullmatch(r"[\d.e+-]+", text)) and math.isclose(float(text), number, rel_tol=1e-3)


def claimed(folder: Folder) -> dict[str, set[float]]:
    """Return the ε, δ and ρ that a text may state: those of the guarantee, of what was spent, of each draw, and of the
    ledger.

    A δ of 0 is a draw's own, and a text may state it only if the guarantee has it.
    """
    made, facts = folder.statement, folder.facts
    parts = [
        entry(whole, path) for whole, path in ((made, "guarantee"), (made, "spent"), (facts, "asked"), (facts, "spent"))
    ]
    parts += [entry(facts, f"ledger.{key}") for key in ("total", "before", "after")]
    parts += [
        entry(made, "composition.own"),
        entry(made, "composition.held out"),
        facts.get("looking"),
        *made.get("draws", []),
    ]
    known = {c: {part[k] for part in parts if part for k in keys if k in part} for c, keys in KEYS.items()}
    return known if facts["asked"]["delta"] == 0 else {**known, "δ": known["δ"] - {0}}


def check_texts(folder: Folder) -> None:
    """Check that report, label, registry entry and Croissant card repeat the statement, and state no other ε, δ or
    ρ.
    """
    made, facts, wrong = folder.statement, folder.facts, list[str]()
    names = [n for n in ("report.html", "label.html", "registry.yaml", "croissant.json") if n in folder.names]
    known = claimed(folder)
    for name in names:
        (text, whole), needed = words(folder, name), [facts["project"]["name"]]
        said, read = ([(c or LETTERS[word.lower()], x) for c, word, x in NUMBER.findall(t)] for t in (whole, text))
        for c, x in said:
            if not any(same(x, v) for v in known[c]):
                wrong.append(f"{name} states {c} = {x}")
        for c, key in (("ε", "epsilon"), ("δ", "delta")):
            if not any(a == c and same(x, facts["asked"][key]) for a, x in read):
                wrong.append(f"{name} does not state {c}")
        if made:
            unit, signer = made["unit"], (made["signer"] or {}).get("fingerprint", "was not signed when it was made")
            needed += [unit["sentence"], *made["not_protected"], *made["assumed"]]
            needed += (
                [unit["stated"], signer]
                if name.endswith(".html")
                else [unit["adjacent"], made["guarantee"]["sentence"]]
            )
        needed += [f"{facts['rows']:,}"] if name != "croissant.json" else []
        wrong += [f"{name} does not contain “{s[:60]}”" for s in needed if plain(s) not in text]
    if made:
        e, d, card = facts["asked"]["epsilon"], facts["asked"]["delta"], folder.json("croissant.json")
        right = min(1.0, (1 + d * math.exp(-e)) / (1 + math.exp(-e)))
        if not math.isclose(made["guarantee"]["guess_right"], right, rel_tol=1e-9):
            wrong.append("the probability of guessing right does not follow from (ε, δ)")
        wrong += described(folder, card)
        registry = folder.json("registry.yaml")
        if entry(registry, "deployment.dp_variant.variant_name") != ("Approximate DP" if d else "Pure DP"):
            wrong.append("registry.yaml names another kind of privacy")
        wrong += [f"registry.yaml: another {path}" for path in differing(SAME, registry, made)]
        wrong += fixed(made, facts["project"]["tables"][folder.linked["visits"]] if folder.linked else {})
    folder.say(6, wrong, f"{', '.join(names)} agree with the statement")


def described(folder: Folder, card: dict[str, Any]) -> list[str]:
    """Return the errors of the Croissant card, which must describe exactly the folder's tables and columns."""
    facts, (record,) = folder.facts, card["recordSet"]
    columns = [c["name"] for c in facts["project"]["schema"] if c["kind"] != "identifier" or c.get("invented")]
    columns = [n for n in columns if n != "visits per person"] if folder.linked else columns
    files = {(name, name, hashlib.sha256(folder.read(name)).hexdigest()) for name in folder.tables}
    named = [(d["name"], d["contentUrl"], d["sha256"]) for d in card["distribution"]]
    good = sorted(named) == sorted(files) and [f["name"] for f in record["field"]] == columns
    good = good and record.keys() <= {"@type", "@id", "name", "field"}
    good = good and (card["name"], card["datePublished"]) == (facts["project"]["name"], facts["date"])
    return [] if good else ["croissant.json describes another table"]


def fixed(made: dict[str, Any], visits: dict[str, Any]) -> list[str]:
    """Check the sentences fixed by the unit: who is protected, which tables are adjacent, what is promised, not
    protected or assumed. ``visits`` describes the table of visits, if there is one.
    """
    unit, promise, k, person = made["unit"], made["guarantee"], made["unit"]["rows_per_person"], made["unit"]["person"]
    change = ("becoming another, or no one" if person else "changing in place", "being there or not")
    who = f"{'one row' if k == 1 else f'up to {k} rows'} of one person"
    who = f"one person with all their rows (“{person}”, at most {k} of them kept)" if person else who
    if visits:
        who, k = f"one person with all their rows in both tables (“{person}”)", visits["keep"]

    def plainly(*lines: str) -> str:
        """Return the lines without the numbers and names of this unit."""
        text = "\n".join(lines).replace(f"“{person}”", "{person}").replace(f" {k} ", " {k} ")
        return text.replace(repr(person), "{person}").replace(f"the order of {visits.get('order')!r}", "the order")

    def mark(*lines: str) -> str:
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    parts = [part["rule"] for part in made["composition"].values() if part]
    said = [made["accounting"]["currency"], made["accounting"]["conversion"], *parts[:1]]
    said += [*made["post_processing"], *made["not_protected"], *made["assumed"][-4:], plainly(unit["adjacent"])]
    numbers = {c: float(x) for c, x in NUMBERED.findall(promise["sentence"])}
    wanted = {"ε": promise["epsilon"], "δ": promise["delta"], "ρ": made["spent"]["rho"]}
    good = unit["sentence"] == f"Protected: {who} {change[unit['neighbors'] != 'replace-one']}."
    good = good and numbers.keys() == wanted.keys() and all(same(str(numbers[c]), x) for c, x in wanted.items())
    good = good and mark(*said) in (FIXED if promise["delta"] else FIXED_PURE)
    good = good and mark(NUMBERED.sub(r"\1", promise["sentence"]), *parts[1:]) in PROMISED
    good = good and mark(plainly(unit["stated"], *made["assumed"][:4])) in STATED
    return [] if good else ["the unit, the guarantee or its limits are described incorrectly"]


def slip_of(event: dict[str, Any]) -> float:
    """Return the δ that an event keeps for the δ₀ of draws."""
    return float(json.loads(event["plan"] or "{}").get("delta_for_draws", 0))


def totals(said: dict[str, Any], rho: float) -> list[str]:
    """Return the errors of a ledger's total in ``release.json``: its ρ gives its ε, and this release fits into it."""
    total, before = said["total"], said["before"]
    delta = total["delta"] - (said.get("delta_for_draws") or {}).get("total", 0)
    wrong = ["the ledger's total is exceeded"] * (Fraction(before["rho"]) + Fraction(rho) > Fraction(total["rho"]))
    for part in (total, before):
        if epsilon_of(part["rho"], delta) * (1 - 1e-9) > part["epsilon"]:
            wrong.append("a ρ of the ledger gives a larger ε than is stated")
    return wrong


def check_ledger(folder: Folder, export: bytes | None) -> None:
    """Check the exported ledger: its chain is intact, it contains the release once, and the population stays within its
    total.
    """
    facts, said = folder.facts, folder.facts.get("ledger")
    wrong = totals(said, facts["spent"]["rho"]) if said else []
    if export is None or not said:
        if export is not None or wrong:
            folder.say(7, wrong or ["the release names no entry of a ledger"])
        else:
            folder.note(7, "recorded in a ledger; pass its export to check it" if said else "not recorded in a ledger")
        return
    events, previous = parsed(export, "the export")["events"], "0" * 64
    for i, event in enumerate(events, 1):
        body = json.dumps({k: v for k, v in event.items() if k != "hash"}, sort_keys=True, separators=(",", ":"))
        if (event["seq"], event["previous"], event["hash"]) != (i, previous, hashlib.sha256(body.encode()).hexdigest()):
            raise ValueError(f"the chain breaks at event {i}")
        previous = event["hash"]
    moves = [e for e in events if e["population"] == said["population"] and e["kind"] in ("reserve", "spend", "return")]
    mine = [e for e in moves if e["entry"] == said["entry"]]
    opened = [e for e in events if e["kind"] == "open" and e["population"] == said["population"]]
    if [e["kind"] for e in mine] != ["reserve", "spend"] or len(opened) != 1:
        folder.say(7, [f"the ledger does not contain entry {said['entry']} exactly once"])
        return
    (total,), (start, end), before, counted = opened, mine, Fraction(0), Fraction(0)
    wrong += differing(LEDGER, {"open": total, "reserve": start, "spend": end}, facts)
    kept = slip_of(total)
    if kept != (said.get("delta_for_draws") or {}).get("total", 0):
        wrong.append("ledger and release name different δ for draws")
    reserved, ended, slips = dict[str, tuple[Fraction, Fraction]](), set[str](), Fraction(0)
    for e in moves:
        before, rho, name = counted if e is start else before, Fraction(e["rho"]), e["entry"]
        slip = Fraction(slip_of(e) if e["kind"] == "reserve" else e["delta"] or 0)
        if e["kind"] == "reserve":
            wrong += (
                [f"event {e['seq']} reserves twice, or less than nothing"]
                if name in reserved or min(rho, slip) < 0
                else []
            )
            reserved[name], counted, slips = (rho, slip), counted + rho, slips + slip
        else:
            most = reserved[name] if e["kind"] == "spend" else (0, 0)
            if name in ended or not (0 <= rho <= most[0] and 0 <= slip <= most[1]):
                wrong.append(f"event {e['seq']} ends an entry twice, or counts more than was reserved")
            ended.add(name)
            counted, slips = counted + rho - reserved[name][0], slips + slip - reserved[name][1]
        if counted > Fraction(total["rho"]) or slips > Fraction(kept):
            wrong.append(f"the total is exceeded at event {e['seq']}")
    stated = Fraction(said["before"]["rho"])
    if not before <= stated <= before * (1 + Fraction(1, 10**12)) or end["rho"] > start["rho"]:
        wrong.append("the spent amounts do not add up")
    if (end["delta"] or 0) < entry(folder.statement, "spent.delta") * (1 - 1e-9):
        wrong.append("the ledger counts less δ than the draws take")
    if json.loads(start["plan"])["plan"].get("person") != facts["spent"].get("person"):
        wrong.append("ledger and release name different person columns")
    names = sorted(n for n in folder.names if not FURTHER.fullmatch(n))
    lines = "".join(f"{hashlib.sha256(folder.read(n)).hexdigest()}  {n}\n" for n in names)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    if [e["kind"] for e in events if e["released"] == digest] != ["spend"]:
        wrong.append("the files do not match the entry")
    folder.say(7, wrong, f"the ledger contains this release once, and its total is kept (last hash {previous})")
