"""Model code of dagitty: the current form, which is similar to DOT, and the legacy form with two blocks of lines.

Textor et al. 2016, "Robust causal inference using directed acyclic graphs: the R package 'dagitty'".
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from espalier.core.graph.formats.dot import quoted, read_statements
from espalier.core.graph.formats.mixed import Builder, MixedGraph, broken, number, shown, written_number

_PLACE = re.compile(r"@([^,\s]+),([^,\s]+)")
_LEGACY_NODE = re.compile(r"\S.*\s(?:[EOAU]+|\d+(?:\.\d+)?)\s+@[^,\s]+,\S+")
_LEGACY_ROLES = {"E": "exposure", "O": "outcome", "A": "adjusted"}
_HEAD = r"(?:dag|mag|pdag|pag)[ \t]*+(?:\"[^\"\n]*\"|[\w.]+)?[ \t]*+\{"
_ANY_HEAD = re.compile(rf'(?:strict\s+)?(?:{_HEAD}|(?:di)?graph\s*+(?:"[^"\n]*"|[\w.-]+)?\s*+\{{)', re.IGNORECASE)
_HEAD_ON_A_LINE = re.compile(rf"^[ \t>]*{_HEAD}", re.MULTILINE)
_MARKS = {"o->": "@->", "o-o": "@-@", "o--": "@--"}
_WRITTEN = {"protected": "exposure", "admissible": "adjusted", "inadmissible": None}


def read(text: str, line: int = 1) -> MixedGraph:
    """Read current model code, with or without ``dag { … }`` around it. Raises :class:`GraphError`."""
    builder = Builder("dagitty")
    if not re.match(r"(strict\s+)?(digraph|graph|dag|mag|pdag|pag)\b[^{]*\{", text, re.IGNORECASE):
        text = "dag {" + text + "\n}"
    read_statements(text, builder, line)
    return builder.done()


def after_prose(text: str) -> bool:
    """Return whether model code follows other text, as ``dag {`` on a separate line or as a paragraph of old code."""
    if _ANY_HEAD.match(text) or text.startswith("<"):
        return False
    return bool(_HEAD_ON_A_LINE.search(text)) or bool(legacy_after_prose(text))


def legacy_after_prose(text: str) -> int:
    """Return the position at which old model code begins after an empty line; 0 if it is at the start of the text or
    absent.
    """
    if is_legacy(text):
        return 0
    found = (m.end() for m in re.finditer(r"\n[ \t]*\r?\n\s*", text.rstrip()))
    return next((at for at in found if is_legacy(text[at : at + 2000])), 0)


def is_legacy(text: str) -> bool:
    """Return whether the text begins with a node of old model code: name, weight or letters, position."""
    return bool(_LEGACY_NODE.fullmatch(text.lstrip().split("\n", 1)[0].strip()))


def read_legacy(text: str, line: int = 1) -> MixedGraph:
    """Read old model code: nodes, an empty line, and for each node its effects (or a matrix of 0 and 1).

    Names are percent-encoded or plain. An arrow given in both directions is bidirected, as in dagitty.
    Raises :class:`GraphError`.
    """
    builder = Builder("dagitty")
    lines = text.split("\n")
    at = 0
    while at < len(lines) and not lines[at].strip():
        at += 1
    while at < len(lines) and lines[at].strip():
        _legacy_node(lines[at].split(), line + at, builder)
        at += 1
    rest = [(line + i, row.split()) for i, row in enumerate(lines[at:], at) if row.strip()]
    if rest and all(word in ("0", "1") for _, words in rest for word in words):
        arrows = _matrix(rest, list(builder.nodes))
    else:
        arrows = {}
        for where, words in rest:
            _effects(words, where, builder, arrows)
    for (cause, effect), where in arrows.items():
        if (effect, cause) not in arrows:
            builder.edge(cause, "->", effect, where)
        elif where <= arrows[effect, cause] and cause != effect:
            builder.edge(cause, "<->", effect, where)
    return builder.done()


def _legacy_node(words: list[str], line: int, builder: Builder) -> None:
    position = None
    if len(words) > 1 and words[-1].startswith("@"):
        found = _PLACE.fullmatch(words.pop())
        x, y = (number(found[1]), number(found[2])) if found else (None, None)
        if x is None or y is None:
            raise broken(line, "a position must be two numbers, such as @0.5,1.25")
        position = (x, y)
    flags = words.pop() if len(words) > 1 else "1"
    if not re.fullmatch(r"[EOAU]+|\d+(?:\.\d+)?", flags):
        raise broken(line, f"{shown(flags)} is not a weight or any of the letters E, O, A, U")
    name = unquote(" ".join(words))
    if name in builder.nodes:
        raise broken(line, f"two nodes are called {shown(name)}")
    roles = tuple(_LEGACY_ROLES[letter] for letter in flags if letter in _LEGACY_ROLES)
    builder.node(name, line, roles=roles, latent="U" in flags, position=position)


def _effects(words: list[str], line: int, builder: Builder, arrows: dict[tuple[str, str], int]) -> None:
    """Read ``cause effect effect @x,y effect …``, where a name may consist of several words."""
    cause, at = _known(words, 0, line, builder)
    while at < len(words):
        if words[at].startswith("@"):
            builder.unused("the bend of an arrow", line)
            at += 1
            continue
        effect, at = _known(words, at, line, builder)
        arrows.setdefault((cause, effect), line)


def _known(words: list[str], at: int, line: int, builder: Builder) -> tuple[str, int]:
    """Return the node at the start of the words from ``at`` onwards, and the position where it ends."""
    for end in range(at + 1, min(len(words), at + 50) + 1):
        name = unquote(" ".join(words[at:end]))
        if name in builder.nodes:
            return name, end
    raise broken(line, f"{shown(words[at])} is not one of the nodes listed above")


def _matrix(rest: list[tuple[int, list[str]]], names: list[str]) -> dict[tuple[str, str], int]:
    cells = [(line, word) for line, words in rest for word in words]
    if len(cells) != len(names) ** 2:
        size = len(names)
        raise broken(rest[0][0], f"the matrix must have {size} × {size} cells, one for each pair of nodes")
    pairs = ((cause, effect) for cause in names for effect in names)
    return {pair: line for pair, (line, word) in zip(pairs, cells, strict=True) if word == "1"}


def write(graph: MixedGraph) -> str:
    """Return current model code. Protected columns become exposures, and admissible columns become adjusted."""
    lines = ["dag {"]
    for node in graph.nodes:
        facts = ["latent"] if node.latent else []
        facts += [word for role in node.roles if (word := _WRITTEN.get(role, role))]
        if node.position:
            facts.append(f'pos="{",".join(map(written_number, node.position))}"')
        lines.append(quoted(node.name) + (f" [{','.join(facts)}]" if facts else ""))
    lines += [f"{quoted(e.left)} {_MARKS.get(e.mark, e.mark)} {quoted(e.right)}" for e in graph.edges]
    return "\n".join([*lines, "}"]) + "\n"
