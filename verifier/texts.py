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

from .budget import differing, epsilon_of
from .folder import Folder, parsed

FIXED = {"5a973d46db148905", "6f3287a73cff94c0", "9be0c9eebba49535", "bb59732f4510d255"}
FIXED |= {"294f93884010ce43", "59fa5107b8077e4c"}  # of linked tables
FIXED_PURE = {"48a989d38986c8a0", "1ba91ab975e5daeb", "340109bcd5580920", "63a813be0781b420"}
"""SHA-256 prefixes of the sentences that are the same in all releases of a unit, and of those with δ = 0."""
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
    """All values in JSON, each with its key."""
    if isinstance(value, dict | list):
        for k, v in value.items() if isinstance(value, dict) else ((key, v) for v in value):
            yield from leaves(v, k)
    else:
        yield key, value


def words(folder: Folder, name: str) -> tuple[str, str]:
    """The words of a file that people read, and all of them: HTML without its tags, or all texts of a JSON file."""
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
    """The text with one form of each letter, and without characters of no width."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def same(text: str, number: float) -> bool:
    """Return whether a text states a number; a fraction or a power does not."""
    return bool(re.fullmatch(r"[\d.e+-]+", text)) and math.isclose(float(text), number, rel_tol=1e-3)


def check_texts(folder: Folder) -> None:
    """Check that report, label, registry entry and Croissant card repeat the statement, and state no other ε, δ or
    ρ.
    """
    made, facts, wrong = folder.statement, folder.facts, list[str]()
    names = [n for n in ("report.html", "label.html", "registry.yaml", "croissant.json") if n in folder.names]
    claims = [made, *map(facts.get, ("asked", "spent", "ledger", "looking"))]
    known = [(k, v) for k, v in leaves(claims) if isinstance(v, float | int)]
    for name in names:
        (text, whole), needed = words(folder, name), [facts["project"]["name"]]
        said, read = ([(c or LETTERS[word.lower()], x) for c, word, x in NUMBER.findall(t)] for t in (whole, text))
        for c, x in said:
            if not any(k in KEYS[c] and same(x, v) for k, v in known):
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
        schema = [c["name"] for c in facts["project"]["schema"] if c["kind"] != "identifier" or c.get("invented")]
        digests = [hashlib.sha256(folder.read(name)).hexdigest() for name in folder.tables]
        schema = [n for n in schema if n != "visits per person"] if folder.linked else schema
        described = sorted(d["sha256"] for d in card["distribution"] if d["name"] in folder.tables)
        if [f["name"] for f in card["recordSet"][0]["field"]] != schema or described != sorted(digests):
            wrong.append("croissant.json describes another table")
        wrong += [f"registry.yaml: another {path}" for path in differing(SAME, folder.json("registry.yaml"), made)]
        keep = facts["project"]["tables"][folder.linked["visits"]]["keep"] if folder.linked else None
        wrong += fixed(made, keep)
    folder.say(6, wrong, f"{', '.join(names)} agree with the statement")


def fixed(made: dict[str, Any], keep: int | None) -> list[str]:
    """Check the sentences fixed by the unit: who is protected, which tables are adjacent, what is not protected or
    assumed.
    """
    unit, k, person = made["unit"], made["unit"]["rows_per_person"], made["unit"]["person"]
    change = ("becoming another, or no one" if person else "changing in place", "being there or not")
    who = f"{'one row' if k == 1 else f'up to {k} rows'} of one person"
    who = f"one person with all their rows (“{person}”, at most {k} of them kept)" if person else who
    if keep:  # linked tables, with this many visits kept per person
        who, k = f"one person with all their rows in both tables (“{person}”)", keep
    lines = unit["adjacent"].replace(f"“{person}”", "{person}").replace(f" {k} ", " {k} ")
    said = [made["accounting"]["currency"], made["accounting"]["conversion"], made["composition"]["own"]["rule"]]
    said += [*made["post_processing"], *made["not_protected"], *made["assumed"][-4:], lines]
    mark = hashlib.sha256("\n".join(said).encode()).hexdigest()
    known = FIXED if made["guarantee"]["delta"] else FIXED_PURE
    good = unit["sentence"] == f"Protected: {who} {change[unit['neighbors'] != 'replace-one']}." and mark[:16] in known
    return [] if good else ["the unit or the limits of the guarantee are described incorrectly"]


def check_ledger(folder: Folder, export: bytes | None) -> None:
    """Check the exported ledger: its chain is intact, it contains the release once, and the population stays within its
    total.
    """
    facts, said = folder.facts, folder.facts.get("ledger")
    if export is None:
        folder.note(7, "recorded in a ledger; pass its export to check it" if said else "not recorded in a ledger")
        return
    events, previous = parsed(export, "the export")["events"], "0" * 64
    for i, event in enumerate(events, 1):
        body = json.dumps({k: v for k, v in event.items() if k != "hash"}, sort_keys=True, separators=(",", ":"))
        if (event["seq"], event["previous"], event["hash"]) != (i, previous, hashlib.sha256(body.encode()).hexdigest()):
            raise ValueError(f"the chain breaks at event {i}")
        previous = event["hash"]
    if not said:
        folder.say(7, ["the release names no entry of a ledger"])
        return
    moves = [e for e in events if e["population"] == said["population"] and e["kind"] in ("reserve", "spend", "return")]
    mine = [e for e in moves if e["entry"] == said["entry"]]
    opened = [e for e in events if e["kind"] == "open" and e["population"] == said["population"]]
    if [e["kind"] for e in mine] != ["reserve", "spend"] or len(opened) != 1:
        folder.say(7, [f"the ledger does not contain entry {said['entry']} exactly once"])
        return
    (total,), (start, end), before, counted = opened, mine, Fraction(0), Fraction(0)
    wrong = differing(LEDGER, {"open": total, "reserve": start, "spend": end}, facts)
    if total["delta"] and epsilon_of(total["rho"], total["delta"]) * (1 - 1e-9) > total["epsilon"]:
        wrong.append("the total ρ gives a larger ε than the total")
    reserved, ended = dict[str, Fraction](), set[str]()
    for e in moves:
        before, rho, name = counted if e is start else before, Fraction(e["rho"]), e["entry"]
        if e["kind"] == "reserve":
            wrong += [f"event {e['seq']} reserves twice, or less than nothing"] if name in reserved or rho < 0 else []
            reserved[name], counted = rho, counted + rho
        else:
            if name in ended or not 0 <= rho <= reserved[name] * (e["kind"] == "spend"):
                wrong.append(f"event {e['seq']} ends an entry twice, or counts more ρ than was reserved")
            ended.add(name)
            counted += rho - reserved[name]
        wrong += [f"the total is exceeded at event {e['seq']}"] if counted > Fraction(total["rho"]) else []
    stated = said["before"]
    if not before <= Fraction(stated["rho"]) <= before * (1 + Fraction(1, 10**12)) or end["rho"] > start["rho"]:
        wrong.append("the spent amounts do not add up")
    if epsilon_of(stated["rho"], total["delta"]) * (1 - 1e-9) > stated["epsilon"]:
        wrong.append("more was spent earlier than stated")
    if json.loads(start["plan"])["plan"].get("person") != facts["spent"].get("person"):
        wrong.append("ledger and release name different person columns")
    names = sorted(n for n in folder.names if not FURTHER.fullmatch(n))
    lines = "".join(f"{hashlib.sha256(folder.read(n)).hexdigest()}  {n}\n" for n in names)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    if [e["kind"] for e in events if e["released"] == digest] != ["spend"]:
        wrong.append("the files do not match the entry")
    folder.say(7, wrong, f"the ledger contains this release once, and its total is kept (last hash {previous})")
