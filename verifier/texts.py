"""Check 6: report, label, registry entry and Croissant card repeat the statement."""

import hashlib
import html
import math
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, partial
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
STATED |= {"d8bddf0d4caa0941", "f67af9f95e7088c4", "70994394668547c1", "572bfc6574557c8b"}
"""The same for the sentence about rows per person together with the first four promises."""
NUMBERED = re.compile(r"([εδρ]) = (\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
NUMBER = re.compile(
    r"(?:(?<![α-ω])([εδρ])[A-Za-z_]{0,9}\s*(?:[^\w\s(]{1,2}|is|of|is at most|at most|below)"
    r"|((?i:epsilon|(?<![a-z])eps|delta|rho))\s*(?:[=≈<≤:]|is|is at most))"
    r"\s*(\d*\.?\d+(?:e[-+]?\d+)?(?:\s*[/⁄∕·×⋅*^]\s*\d+)?)"
)
TAG = re.compile(r"<(/?)(!?[a-z][a-z0-9]*)((?:\s+[a-zA-Z-]+(?:=\"[^\"<>]*\")?)*)\s*(/?)>")
TAGS = re.compile(
    "!doctype|body|br|caption|code|div|em|figcaption|figure|h[123]|head|html|li|main|meta|p|pre|section|small|span"
    "|strong|style|table|tbody|td|th|thead|title|tr|ul"
)
"""Elements of reports and labels. An element that is not listed might hide its text."""
PICTURE = re.compile("circle|defs|g|marker|path|rect|style|svg|text|title")
"""Elements of pictures, which only reports have."""
ATTRIBUTE = re.compile(r'([a-zA-Z-]+)(?:="([^"<>]*)")?')
SAFE = re.compile(
    r'charset="utf-8"|content="width=device-width, initial-scale=1"|name="viewport"|lang="\w+"|(?:col|row)span="\d+"'
    r'|class="chip (?:outcome|protected|admissible|inadmissible)"|class="(?!(?:[^"]*\s)?chip\b)[^"]*"|role="group"|html'
    r'|scope="(?:row|col)"|tabindex="0"|(?:aria-label|title)="[^"]*"|style="(?:stroke-)?width:[\d.]+%?"'
)
"""Attributes of elements outside pictures. Other attributes might hide text or state it only to some readers."""
DRAWN = re.compile(
    "aria-label|class|cx|cy|d|fill|font-size|height|id|marker-end|marker(?:Height|Units|Width)|orient|r|ref[XY]"
    "|role|rx|stroke(?:-dasharray|-width)?|style|text-anchor|transform|viewBox|width|x|xmlns|y"
)
"""Attributes in pictures. With others, a picture might cover text outside of it."""
IN_PICTURE = re.compile(r'(?!style=|id=).*|style="(?:stroke-width:[\d.]+|fill:[#\w]+)"|id="arrow"')
EMPTY = {"bar", "stack"}
"""Classes of elements without text: they cut off a text that does not fit."""
SHEETS = {"label.html": {"fec4bc8fef7f3288"}}
SHEETS["report.html"] = {"1e2cb9398e1a6c5f", "6d013bc49bd5c4dd", "a372afabba1516da", "128ae174a4aabcba"}
SHEETS["report.html"] |= {"e4cd002f3387bc49", "f0a2b857f8d79203", "765dfceb7c82e546", "497e52a33e5e75c6"}
SHEETS["report.html"] |= {"c2d75ced8673dcc1", "d302931877af1f14", "50d51a213fc36fd1", "7c6675a9624ff259"}
SHEETS["report.html"] |= {"6d1a0f81ec085e60", "9a1fab27ed9436f6", "857eb20a8ec74b64", "983b544664b01dc6"}
SHEETS["report.html"] |= {"2b9682cc0b60e8fc", "c8e794b259bcfc96", "4e0f8c5818a40101", "ff06436d653f4d8f"}
SHEETS["report.html"] |= {"5abf5affb09da3ba", "1c3e3b910cdfb7ca", "4ee4f47274de20f3"}
"""SHA-256 prefixes of all style sheets that Espalier has written. A changed style sheet is added here."""
NESTED, VOID, DEEPEST = {"div", "g"}, {"!doctype", "br", "meta"}, 12
"""Elements that may contain their own kind, elements without an end tag, and the largest depth. Deeper text could be
too small.
"""
INLINE = {"code", "em", "small", "span", "strong"}
"""Elements inside a line of text. All others separate words."""
TURNED = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that change the reading direction."""
UNSEEN = {"head", "svg", "style", "title"}
"""Elements with text that people do not read as a sentence."""
LETTERS = {"epsilon": "ε", "eps": "ε", "delta": "δ", "rho": "ρ"}
ALIKE = str.maketrans("ɛєԑ∊", "εεεε")
VALUE = r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
OF_LEDGER = {
    "From the same people: ε = # before this release, of ε = # at δ = #": "before.epsilon total.epsilon total.delta",
    "may together reach ε = # at δ = # \\(ρ = #": "total.epsilon total.delta total.rho",
    "had reached ε = # \\(ρ = #": "before.epsilon before.rho",
    "the total is ε = # \\(ρ = #": "after.epsilon after.rho",
    "together may reach ε = #; the ledger allows #": "after.epsilon total.epsilon",
    "Recorded in a ledger with a total of ε = # at δ = #": "total.epsilon total.delta",
}
"""Sentences about the ledger, each with its numbers in the order of the sentence."""
PLACES = {
    "registry.yaml": {
        "": "url_slug status tier",
        "deployment.basic.": "name data_curators intended_use data_product_type data_product_region description "
        "publication_date",
        "deployment.dp_variant.": "variant_name data_domain unprotected_quantities",
        "deployment.privacy_loss.": "privacy_unit privacy_unit_details privacy_parameters_details",
        "deployment.privacy_loss.privacy_parameters.": "epsilon delta rho",
        "deployment.deployment_model.": "model_name model_name_details actors release_type release_type_details "
        "data_source_type access_type",
        "deployment.accounting.": "post_processing composition",
        "deployment.implementation.": "preprocessing_and_hyperparameter_tuning mechanisms justification",
        "deployment.administrative.": "registry_authors notes",
    },
    "croissant.json": {
        "": "@type conformsTo name description datePublished version isLiveDataset",
        "distribution.": "@type @id name contentUrl encodingFormat sha256",
        "recordSet.": "@type @id name",
        "recordSet.field.": "@type @id name dataType",
        "recordSet.field.source.": "fileObject.@id extract.column",
        "rai:": "dataCollection dataCollectionType dataManipulationProtocol personalSensitiveInformation "
        "dataLimitations dataUseCases dataReleaseMaintenancePlan",
    },
}
"""Entries of the registry file and the card, by place. Others might state another ε."""
NUMERIC = ("tier", "epsilon", "delta", "rho", "isLiveDataset")
"""Ends of the names of entries that are not text."""
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


def unknown(name: str, value: Any, at: str = "") -> Iterator[str]:
    """Yield the entries of the registry file or the card that are at no known place, or are not text."""
    if isinstance(value, dict | list):
        for k, v in value.items() if isinstance(value, dict) else (("", v) for v in value):
            yield from unknown(name, v, f"{at}.{k}".strip(".") if k else at)
    elif not at.startswith("@context.") or not isinstance(value, str):
        known = {f"{place}{key}" for place, keys in PLACES[name].items() for key in keys.split()}
        if at not in known or isinstance(value, str) is at.endswith(NUMERIC):
            yield at


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
    seen, whole, given = read(data.decode(), name)
    return plain(seen), plain(f"{whole}\n{given}")


def read(page: str, name: str) -> tuple[str, str, str]:
    """Return the text of a page that people read as sentences, all of its text, and the texts of its attributes.

    A page that is not built from the parts that Espalier writes is refused, because it could hide or change text.
    """
    seen, whole, given, at = list[str](), list[str](), list[str](), 0
    inside: list[tuple[str, set[str]]] = []

    def odd(text: str, tag: re.Match[str] | None) -> bool:
        names = [n for n, _ in inside]
        if "style" in names[-1:] and mark(text) not in SHEETS.get(name, ()):
            return True
        if "<" in text or (text.strip() and any(classes & EMPTY for _, classes in inside)):
            return True
        if tag is None:
            return bool(inside)
        if tag[1]:
            return tag[2] not in names[-1:] or bool(tag[3].strip())
        drawn = "svg" in (*names, tag[2]) and name != "label.html"
        if not (PICTURE if drawn else TAGS).fullmatch(tag[2]) or (tag[2] in names and tag[2] not in NESTED):
            return True
        own = list(ATTRIBUTE.finditer(tag[3]))
        if drawn:
            return not all(DRAWN.fullmatch(a[1]) and IN_PICTURE.fullmatch(a[0]) for a in own)
        return len(inside) > DEEPEST or not all(SAFE.fullmatch(a[0]) for a in own)

    for tag in [*TAG.finditer(page), None]:
        text = page[at : tag.start() if tag else None]
        if odd(text, tag):
            raise ValueError(f"{name} may hide text near {page[at : at + 60]!r}")
        if "style" not in (names := {n for n, _ in inside}):
            whole.append(text)
            seen += [] if names & UNSEEN else [text]
        if tag:
            at = tag.end()
            for texts in (seen, whole) if tag[2] not in INLINE else ():
                texts.append("\n")
            own = {a[1]: a[2] or "" for a in ATTRIBUTE.finditer(tag[3])}
            given += own.values()
            if tag[1]:
                inside.pop()
            elif tag[2] not in VOID and not (tag[4] and "svg" in names):
                inside.append((tag[2], set(own.get("class", "").split())))
    return html.unescape("".join(seen)), html.unescape("".join(whole)), html.unescape("\n".join(given))


def mark(*lines: str) -> str:
    """Return the prefix of the SHA-256 of some lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def plain(text: str) -> str:
    """Return the text in normal form, without accents and zero-width characters."""
    kept = (c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) not in ("Cf", "Mn", "Me"))
    return "".join(kept).translate(ALIKE)


def same(text: str, number: float) -> bool:
    """Return whether a text states this number. A fraction or a power does not."""
    return bool(re.fullmatch(r"[\d.e+-]+", text)) and math.isclose(float(text), number, rel_tol=1e-3)


def claimed(folder: Folder) -> dict[str, set[float]]:
    """Return the ε, δ and ρ that a text may state as those of the release: those of the guarantee and of the spent
    amount.
    """
    made, facts = folder.statement, folder.facts
    parts = [made.get("guarantee"), made.get("spent"), facts["asked"], facts["spent"]]
    known = {c: {part[key] for part in parts if part and key in part} for c, key in (("ε", "epsilon"), ("ρ", "rho"))}
    return {**known, "δ": {facts["asked"]["delta"]}}


def stated(text: str, known: dict[str, set[float]], ledger: Any = None) -> tuple[list[tuple[str, str]], list[str]]:
    """Return each ε, δ and ρ in a text, and those that it must not state. Sentences about the ledger are left out if
    their numbers are those of ``ledger``.
    """
    said, wrong = list[tuple[str, str]](), list[str]()

    def left_out(values: list[str], m: re.Match[str]) -> str:
        return " " if all(same(x, entry(ledger, v)) for x, v in zip(m.groups(), values, strict=True)) else m[0]

    for sentence, values in OF_LEDGER.items() if ledger else ():
        text = re.sub(sentence.replace("#", VALUE), partial(left_out, values.split()), text)

    @cache
    def one_of(x: str, group: str) -> bool:
        return any(same(x, v) for v in known[group])

    for m in NUMBER.finditer(text):
        c, x = m[1] or LETTERS[m[2].lower()], m[3]
        said.append((c, x))
        if not one_of(x, c):
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
            wrong += [f"{name} has the unknown entry {at}" for at in unknown(name, folder.json(name)) if made]
        said, (_, odd) = stated(text, known)[0], stated(whole, known, facts.get("ledger"))
        wrong += [f"{name} states {number}" for number in odd]
        for c, key in (("ε", "epsilon"), ("δ", "delta")):
            if not any(a == c and same(x, facts["asked"][key]) for a, x in said):
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


def check_unprotected(folder: Folder) -> None:
    """Check that a release without privacy claims none."""
    folder.note(6, "NOT PRIVATE: these rows have no privacy guarantee, and no further check applies")
    facts, made, wrong = folder.facts, folder.statement, list[str]()
    if any(part.get("private", True) for part in (facts, made or facts)):
        wrong.append("the files disagree on whether it is private")
    if any([*map(facts.get, ("asked", "spent", "ledger")), made.get("guarantee"), made.get("draws")]):
        wrong.append("rows without privacy come with a guarantee")
    page = folder.read("report-NOT-PRIVATE.html").decode()
    if NUMBER.search(plain(html.unescape(page))) or "Not private" not in page:
        wrong.append("the report does not say that the rows are not private, or states ε, δ or ρ")
    if wrong:
        folder.say(6, wrong)


def described(folder: Folder, card: dict[str, Any]) -> list[str]:
    """Return errors in the Croissant card, which must describe the folder's tables, their columns, and nothing else."""
    facts, (record,) = folder.facts, card["recordSet"]
    columns = [c["name"] for c in facts["project"]["schema"] if c["kind"] != "identifier" or c.get("invented")]
    columns = [n for n in columns if not folder.linked or n != f"{folder.linked['visits']} per person"]
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
