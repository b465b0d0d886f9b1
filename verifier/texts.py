"""Check 6: report, label, registry entry and Croissant card repeat the statement."""

import hashlib
import html
import math
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any

from .budget import differing, entry
from .folder import Folder, parsed

FIXED = {"5a973d46db148905", "6f3287a73cff94c0", "9be0c9eebba49535", "bb59732f4510d255"}
FIXED |= {"294f93884010ce43", "59fa5107b8077e4c"}  # for linked tables
FIXED_PURE = {"48a989d38986c8a0", "1ba91ab975e5daeb", "340109bcd5580920", "63a813be0781b420"}
"""SHA-256 prefixes of the sentences that are the same in all releases of a unit, and of those with δ = 0."""
PROMISED = {"d5b2894c33f144c6", "c1f3000c0c61d8ce", "7d60833b93229d20"}
"""The same for the guarantee's sentence, and for the rule on held-out people."""
STATED = {"18faf36ea334023e", "3964cc2c905be54a", "6ee6afb3877a66fc", "9bfd1bc273c18558", "ba38cd457009f47a"}
STATED |= {"d8bddf0d4caa0941", "f67af9f95e7088c4"}
"""The same for the sentence about rows per person together with the first four promises."""
NUMBERED = re.compile(r"([εδρ]) = (\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
NUMBER = re.compile(
    r"(?:(?<![α-ω])([εδρ])[A-Za-z_]{0,9}\s*(?:[^\w\s(]{1,2}|is|of|is at most|at most|below)"
    r"|((?i:epsilon|(?<![a-z])eps|delta|rho))\s*(?:[=≈<≤:]|is|is at most))"
    r"\s*(\d*\.?\d+(?:e[-+]?\d+)?(?:\s*[/⁄∕·×⋅*^]\s*\d+)?)"
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
ATTRIBUTE = re.compile(r'([a-zA-Z-]+)(?:="[^"<>]*")?')
"""An attribute of an element that `TAG` matches; ``ODD`` matches the start of an attribute that might hide text."""
PLAIN = {
    "html",
    "aria-label",
    "charset",
    "class",
    "colspan",
    "content",
    "id",
    "lang",
    "name",
    "role",
    "rowspan",
    "scope",
}
PLAIN |= {"style", "tabindex", "title"}
"""Attributes that elements outside pictures may have."""
TURNED = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that change the reading direction."""
UNSEEN = {"head", "svg", "style", "title"}
"""Elements with text that people do not read as a sentence."""
HIDING = re.compile(
    r"""\\|/\*|display:\s*(?:none|contents)|visibility|font(?:-size)?:\s*(?:0?\.[0-4]|[0-6](?:\.\d+)?(?:px|pt)|0(?![.\d]))
    |opacity:\s*(?:0?\.[0-4]|0(?![.\d]))|position:|clip|transform:|text-(?:indent|fill|security)|transparent|filter:
    |[\s{;]content:|[\s{;]color:\s*(?:white|\#[ef]|rgb|hsl|var\(--paper)|url\(|@(?:import|supports|container)
    |(?<![-\w])(?:max-)?(?:width|height):\s*0(?![.\d])|line-height:\s*0|(?:letter|word)-spacing|margin[\w-]{0,20}:[^;}]{0,99}-\d
    |zoom:|scale:|translate:|rotate:|mask|blend|z-index|float:|direction:|bidi|writing-mode""",
    re.I | re.X,
)
"""Styles that may hide text, including escapes and comments that could disguise them."""
LETTERS = {"epsilon": "ε", "eps": "ε", "delta": "δ", "rho": "ρ"}
ALIKE = str.maketrans("ɛєԑ∊", "εεεε")
OF_LEDGER = re.compile(r"(?:reached|total is|may reach|together reach|total of|, of)\s*$")
"""Pattern of the words that precede an ε of the ledger."""
SAME = """
deployment.privacy_loss.privacy_parameters.epsilon  guarantee.epsilon
deployment.privacy_loss.privacy_parameters.delta    guarantee.delta
deployment.privacy_loss.privacy_parameters.rho      spent.rho
deployment.privacy_loss.privacy_parameters_details  guarantee.sentence
deployment.privacy_loss.privacy_unit                unit.sentence
deployment.basic.publication_date                   release.date
deployment.basic.name                               release.name
"""
"""Entries of the registry file, each with the statement's entry that it repeats."""


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values in a JSON document, each with its key."""
    if isinstance(value, dict | list):
        for k, v in value.items() if isinstance(value, dict) else ((key, v) for v in value):
            yield from leaves(v, k)
    else:
        yield key, value


def words(folder: Folder, name: str) -> tuple[str, str]:
    """Return the words of a file that people read, and all of its words: HTML without tags, or all text in a
    JSON file.
    """
    data = folder.read(name)
    if TURNED.search(html.unescape(data.decode(errors="replace"))) and not TURNED.search(
        "".join(f"{k}{v}" for k, v in leaves(folder.facts))
    ):
        raise ValueError(f"{name} changes the direction of reading")
    if not name.endswith(".html"):
        text = plain("\n".join(v for _, v in leaves(parsed(data, name)) if isinstance(v, str)))
        return text, text
    seen, whole, at, inside, page = list[str](), list[str](), 0, list[str](), data.decode()
    for tag in [*TAG.finditer(page), None]:
        text = page[at : tag.start() if tag else None]
        if "style" in inside:  # without comments
            first, *parts = re.sub(r"url\(data:font/woff2;base64,[\w+/=]*\)", "", text).split("/*")
            text = first + "".join(part.partition("*/")[2] if "*/" in part else f"/*{part}" for part in parts)
        own = list(ATTRIBUTE.finditer(tag[3])) if tag else []
        odd = "<" in text or (tag and not TAGS.fullmatch(tag[2])) or any(ODD.match(a[0]) for a in own)
        if tag and "svg" not in (*inside, tag[2]):
            odd = odd or not {a[1] for a in own} <= PLAIN
        if odd or HIDING.search(text if "style" in inside else ""):
            raise ValueError(f"{name} may hide text near {page[at : at + 60]!r}")
        whole.append(text)
        seen += [] if inside else [text]
        if tag:
            at = tag.end()
            inside = [n for n in inside if n != tag[2]] + [tag[2]] * (tag[2] in UNSEEN and not tag[1])
    return plain(html.unescape("".join(seen))), plain(html.unescape("".join(whole)))


def plain(text: str) -> str:
    """Return the text in normal form, without accents and zero-width characters."""
    kept = (c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) not in ("Cf", "Mn", "Me"))
    return "".join(kept).translate(ALIKE)


def same(text: str, number: float) -> bool:
    """Return whether a text states this number. A fraction or a power does not."""
    return bool(re.fullmatch(r"[\d.e+-]+", text)) and math.isclose(float(text), number, rel_tol=1e-3)


def claimed(folder: Folder) -> dict[str, set[float]]:
    """Return the ε, δ and ρ that a text may state: those of the guarantee, of the spent amount and of each draw, and
    under ``ledger`` the ledger's ε. A text may state δ = 0, which a single draw may have, only if the guarantee has it.
    """
    made, facts = folder.statement, folder.facts
    parts = [made.get("guarantee"), made.get("spent"), facts["asked"], facts["spent"]]
    known = {"ε": {part["epsilon"] for part in parts if part}}
    ledger = [entry(facts, f"ledger.{key}") for key in ("total", "before", "after")]
    parts += [*ledger, *made.get("composition", {}).values(), facts.get("looking"), *made.get("draws", [])]
    for c, keys in (("δ", ("delta", "at_delta")), ("ρ", ("rho",))):
        known[c] = {part[k] for part in parts if part for k in keys if k in part}
    known["δ"] -= {0} if facts["asked"]["delta"] else set()
    return {**known, "ledger": {part["epsilon"] for part in ledger if part}}


def stated(text: str, known: dict[str, set[float]]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return each ε, δ and ρ in a text, and those that it must not state. Only certain sentences may state an ε of the
    ledger."""
    said, wrong = list[tuple[str, str]](), list[str]()

    @cache
    def one_of(x: str, group: str) -> bool:
        return any(same(x, v) for v in known[group])

    for m in NUMBER.finditer(text):
        c, x = m[1] or LETTERS[m[2].lower()], m[3]
        said.append((c, x))
        if not one_of(x, c):
            before, after = OF_LEDGER.search(text[max(0, m.start() - 30) : m.start()]), " before this release"
            if c != "ε" or not (before or text.startswith(after, m.end())) or not one_of(x, "ledger"):
                wrong.append(f"{c} = {x}")
    return said, wrong


def check_texts(folder: Folder) -> None:
    """Check that report, label, registry entry and Croissant card repeat the statement, and state no other ε, δ or
    ρ.
    """
    made, facts, wrong = folder.statement, folder.facts, list[str]()
    names = [n for n in ("report.html", "label.html", "registry.yaml", "croissant.json") if n in folder.names]
    known = claimed(folder)
    for name in names:
        (text, whole), needed = words(folder, name), [facts["project"]["name"]]
        if not name.endswith(".html"):
            parts = [
                (w, v) for k, v in leaves(folder.json(name)) for w in re.split("[^a-z]+", k.lower()) if w in LETTERS
            ]
            wrong += [f"{name} has {w} = {v}" for w, v in parts if v not in known[LETTERS[w]]]
        read, (_, odd) = stated(text, known)[0], stated(whole, known)
        wrong += [f"{name} states {said}" for said in odd]
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
        wrong += [f"registry.yaml has a different {path}" for path in differing(SAME, registry, made)]
        wrong += fixed(made, facts["project"]["tables"][folder.linked["visits"]] if folder.linked else {})
    folder.say(6, wrong, f"{', '.join(names)} agree with the statement")


def described(folder: Folder, card: dict[str, Any]) -> list[str]:
    """Return errors in the Croissant card, which must describe the folder's tables, their columns, and nothing else."""
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
    """Check the sentences that follow from the unit: who is protected, which tables are adjacent, and what is promised,
    not protected or assumed. ``visits`` describes the table of visits, if there is one.
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
