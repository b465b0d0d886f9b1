"""DOT, the language of Graphviz, and the grammar that it shares with dagitty's model code. pydot is not used, because
it does not keep line numbers, takes about 30 s for 1 MB, and needs a level of Python's stack for each nested subgraph.
Here the text is split into tokens in one pass, and groups are kept in a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from espalier.core.graph.formats.mixed import (
    MAX_EDGES,
    Builder,
    MixedGraph,
    Position,
    broken,
    facts_of,
    number,
    shown,
    written_number,
)

MAX_DEPTH = 100
_TOKEN = re.compile(
    r"""(?P<word>[\w.\u0080-\U0010ffff]+|-(?:\.\d|\d)[\w.]*)[ ;]*
    |(?P<edge><->|<-@|<-|@->|@--|@-@|->|--@|--)[ ]*
    |(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")[ ;]*
    |(?P<space>[\s;]+|//[^\n]*|/\*.*?\*/|(?m:^[ \t]*\#)[^\n]*)
    |(?P<mark>[{}\[\]=:,+])[ ]*
    |(?P<html><)""",
    re.VERBOSE | re.DOTALL,
)
_WORD = r'(?:[\w.]+|"[^"\\\n]*")'
_PLAIN = re.compile(rf'({_WORD})[ \t]*(->|<->|<-|--)[ \t]*({_WORD})(?=[\s;]+[\w"{{}}])')
"""Pattern of a statement with one edge and no attributes. It is by far the most common kind, and reading it in one
match is three times as fast.
"""
_BEGUN = ("edge", "=", "+", ":")
_EDGES = {"@->": "o->", "<-@": "<-o", "@-@": "o-o", "@--": "o--", "--@": "--o"}
_FLAGS = {
    "l": "latent",
    "u": "latent",
    "e": "exposure",
    "source": "exposure",
    "o": "outcome",
    "target": "outcome",
    "a": "adjusted",
    "s": "selected",
}
_ENDS = {
    "-": {"-": "--", ">": "->", "o": "--o"},
    ">": {"-": "<-", ">": "<->", "o": "<-o"},
    "o": {"-": "o--", ">": "o->", "o": "o-o"},
}
_HEADER = re.compile(r"(strict\s+)?(graph|digraph|dag|pdag|mag|pag)\b", re.IGNORECASE)


class Token(NamedTuple):
    """A piece of the text. Its ``kind`` is word, string, edge, the character itself, or, for a whole statement,
    plain.
    """

    kind: str
    text: str
    line: int
    ends: tuple[str, str] = ("", "")


def tokens(text: str, line: int = 1) -> Iterator[Token]:
    """Yield the tokens of DOT or dagitty text; raises :class:`GraphError` that names the line of an invalid token."""
    at, size, match, plain = 0, len(text), _TOKEN.match, _PLAIN.match
    kind = ""
    while at < size:
        if kind not in _BEGUN and (edge := plain(text, at)):
            left, mark, right = edge.groups()
            yield Token("plain", mark, line, (left.strip('"'), right.strip('"')))
            kind, at = "plain", edge.end()
            continue
        before = kind
        found = match(text, at)
        if found is None:
            raise broken(line, _why_not(text, at))
        kind, at = found.lastgroup or "", found.end()
        piece = found[kind]
        if kind == "space":
            if before == "edge" and not piece.strip(" \t\r\n;") and ";" in piece:
                raise broken(line + piece[: piece.index(";")].count("\n"), "nothing follows the edge before ';'")
            line += piece.count("\n")
            kind = before
        elif kind == "string":
            yield Token(kind, unquoted(piece), line)
            line += piece.count("\n")
        elif kind == "mark":
            kind = piece
            yield Token(piece, piece, line)
        elif kind == "html":
            end = _closing(text, at)
            if end < 0:
                raise broken(line, "an HTML label that begins with '<' is never closed")
            yield Token("string", text[at : end - 1], line)
            line += text.count("\n", at, end)
            at = end
        else:
            yield Token(kind, piece, line)
    yield Token("end", "the end of the file", line)


def _why_not(text: str, at: int) -> str:
    if text[at] == '"':
        return "a name that begins with a quote is never closed"
    if text.startswith("/*", at):
        return "a comment that begins with /* is never closed"
    return f"cannot read {shown(text[at])} here; put a name with such a character in quotes"


def _closing(text: str, at: int) -> int:
    depth = 1
    for found in re.compile(r"[<>]").finditer(text, at):
        depth += 1 if found[0] == "<" else -1
        if not depth:
            return found.end()
    return -1


def unquoted(piece: str) -> str:
    """Return the name inside quotes: ``\\"`` is a quote, ``\\\\`` a backslash; a final backslash continues a line."""
    inside = piece[1:-1]
    if "\\" not in inside:
        return inside
    return re.sub(r'\\(\r?\n|["\\])', lambda m: m[1] if m[1] in '"\\' else "", inside)


def quoted(name: str) -> str:
    """Return a name in quotes; backslashes are doubled only where a single one would be misread, because dagitty never
    doubles them.
    """
    return '"' + re.sub(r'\\{2,}|\\(?="|\Z)', lambda m: m[0] * 2, name).replace('"', '\\"') + '"'


@dataclass
class _Group:
    """State of an open brace: the nodes inside it, the default attributes of edges, and the current statement."""

    line: int
    nodes: dict[str, None] = field(default_factory=dict)
    edge_defaults: dict[str, str] = field(default_factory=dict)
    operands: list[tuple[str, ...]] = field(default_factory=list)
    operators: list[Token] = field(default_factory=list)


class _Reader:
    """Reader that passes statements to a builder and looks one token ahead in ``tokens``."""

    def __init__(self, pieces: Iterator[Token], builder: Builder) -> None:
        self.pieces, self.builder = pieces, builder
        self.token = next(pieces)

    def next(self) -> Token:
        """Advance by one token, and return the previous one."""
        seen = self.token
        self.token = next(self.pieces, seen)
        return seen

    def name(self) -> str:
        """Read a word or a string, with ``"a" + "b"`` joined."""
        text = self.next().text
        if self.token.kind != "+":
            return text
        while self.token.kind == "+":
            self.next()
            if self.token.kind != "string":
                raise broken(self.token.line, "'+' must be followed by quoted text")
            text += self.next().text
        return text

    def graph(self) -> None:
        """Read ``[strict] (graph | digraph | dag …) [name] { statements }``."""
        if self.token.text.lower() == "strict":
            self.next()
        self.next()
        if self.token.kind in ("word", "string"):
            self.name()
        if self.token.kind != "{":
            raise broken(self.token.line, f"'{{' is missing before {shown(self.token.text)}")
        self.statements(_Group(self.next().line))
        if self.token.kind != "end":
            raise broken(self.token.line, f"{shown(self.token.text)} follows after the end of the graph")

    def statements(self, group: _Group) -> None:
        """Read everything up to the brace that closes ``group``."""
        stack = [group]
        while stack:
            group, token = stack[-1], self.token
            if token.kind == "}":
                if len(group.operators) >= len(group.operands) > 0:
                    raise broken(token.line, f"nothing follows the edge {group.operators[-1].text!r}")
                self.next()
                stack.pop()
                if stack:
                    stack[-1].nodes |= group.nodes
                    self.operand(stack[-1], tuple(group.nodes))
            elif token.kind == "{" or (token.kind == "word" and token.text.lower() == "subgraph"):
                if token.kind != "{":
                    self.next()
                    if self.token.kind in ("word", "string"):
                        self.name()
                    if self.token.kind != "{":
                        raise broken(self.token.line, "'{' is missing after subgraph")
                if len(stack) >= MAX_DEPTH:
                    raise broken(token.line, f"groups are nested more than {MAX_DEPTH} levels deep")
                stack.append(_Group(self.next().line, edge_defaults=dict(group.edge_defaults)))
            elif token.kind == "plain":
                self.plain(group, self.next())
            elif token.kind in ("word", "string"):
                self.named(group)
            elif token.kind == "end":
                raise broken(group.line, "the '{' on this line is never closed")
            elif token.kind == "edge":
                raise broken(token.line, f"nothing precedes the edge {token.text!r}")
            else:
                raise broken(token.line, f"{shown(token.text)} is out of place")

    def plain(self, group: _Group, token: Token) -> None:
        """Read an edge without its own attributes."""
        left, right = token.ends
        group.nodes[left] = group.nodes[right] = None
        mark = self.mark(token.text, group.edge_defaults) if group.edge_defaults else token.text
        self.builder.edge(left, mark, right, token.line)

    def named(self, group: _Group) -> None:
        """Read a statement, or an operand of one, that begins with a name."""
        token, name = self.token, self.name()
        awaited = len(group.operators) >= len(group.operands) > 0
        bare = token.text.lower() if self.token.kind == "[" and token.kind == "word" else ""
        if self.token.kind == "=" and not awaited:
            self.next()
            if self.token.kind not in ("word", "string"):
                raise broken(self.token.line, f"{name} = must be followed by a value")
            self.name()
        elif bare in ("graph", "node", "edge") and not awaited:
            found = self.attributes()
            if bare == "edge":
                group.edge_defaults |= found
        else:
            while self.token.kind == ":":
                self.next()
                if self.token.kind not in ("word", "string"):
                    raise broken(self.token.line, "a port must follow ':'")
                self.name()
            self.builder.node(name, token.line)
            group.nodes[name] = None
            self.operand(group, (name,))

    def operand(self, group: _Group, names: tuple[str, ...]) -> None:
        """Read one end of a chain. The statement ends unless an edge follows."""
        group.operands.append(names)
        if self.token.kind == "edge":
            group.operators.append(self.next())
        else:
            self.finish(group)

    def finish(self, group: _Group) -> None:
        """Add the statement, with any attributes that follow it."""
        operands, operators = group.operands, group.operators
        group.operands, group.operators = [], []
        line = self.token.line
        found = self.attributes() if self.token.kind == "[" else {}
        if operators:
            if group.edge_defaults:
                found = {**group.edge_defaults, **found}
            for (lefts, rights), token in zip(pairwise(operands), operators, strict=True):
                mark = self.mark(token.text, found)
                if len(lefts) * len(rights) > MAX_EDGES:
                    raise broken(token.line, f"the groups on both sides form more than {MAX_EDGES:,} edges")
                for left in lefts:
                    for right in rights:
                        self.builder.edge(left, mark, right, token.line)
            for key in found:
                if key not in ("dir", "arrowhead", "arrowtail"):
                    self.builder.unused(f"the attribute {shown(key)} of an edge", line)
        elif len(operands[0]) == 1 and found:
            (name,) = operands[0]
            self.builder.node(name, line, **self.facts(found, line))

    def mark(self, operator: str, found: Mapping[str, str]) -> str:
        """Return the edge's mark; Graphviz also uses dir, arrowhead and arrowtail."""
        if not found or operator not in ("->", "--"):
            return _EDGES.get(operator, operator)
        points = found.get("dir", "none" if operator == "--" else "forward")
        head = _end(found.get("arrowhead", "normal")) if points in ("forward", "both") else "-"
        tail = _end(found.get("arrowtail", "normal")) if points in ("back", "both") else "-"
        return _ENDS[tail][head]

    def facts(self, found: dict[str, str], line: int) -> dict[str, object]:
        """Return the facts in a node's attributes."""
        found = {_FLAGS.get(key, key): value for key, value in found.items()}
        position = _position(found.pop("pos"), line) if "pos" in found else None
        facts = facts_of(found, line, self.builder)
        if "label" in facts:
            label = re.sub(r"\\[nlr]", " ", facts["label"]).strip()
            facts["label"] = "" if label == "\\N" else label
        return {**facts, "position": position} if position else facts

    def attributes(self) -> dict[str, str]:
        """Read any number of lists ``[key=value, flag …]``."""
        found: dict[str, str] = {}
        while self.token.kind == "[":
            opened = self.next().line
            while self.token.kind != "]":
                if self.token.kind == ",":
                    self.next()
                    continue
                if self.token.kind == "end":
                    raise broken(opened, "the '[' on this line is never closed")
                if self.token.kind not in ("word", "string"):
                    raise broken(self.token.line, f"{shown(self.token.text)} is out of place between '[' and ']'")
                key, value = self.name(), "true"
                if self.token.kind == "=":
                    self.next()
                    if self.token.kind not in ("word", "string"):
                        raise broken(self.token.line, f"{key} = must be followed by a value")
                    value = self.name()
                found[key] = value
            self.next()
        return found


def _end(shape: str) -> str:
    return {"none": "-", "odot": "o"}.get(shape, ">")


def _position(text: str, line: int) -> Position:
    parts = [number(part) for part in text.rstrip("! ").split(",")[:2]]
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        raise broken(line, f"the position {shown(text)} must be two numbers, such as 0.5,1.25")
    return parts[0], parts[1]


def read_statements(text: str, builder: Builder, line: int = 1) -> None:
    """Read DOT or dagitty text; raises :class:`GraphError`."""
    _Reader(tokens(text, line), builder).graph()


def sniff(text: str) -> str:
    """Return the word with which such text begins (digraph, dag …), or nothing."""
    found = _HEADER.match(text)
    return found[2].lower() if found else ""


def read(text: str, line: int = 1) -> MixedGraph:
    """Read a DOT graph; the ids are the names, or the labels if the ids are mere numbers. Raises
    :class:`GraphError`.
    """
    builder = Builder("dot")
    read_statements(text, builder, line)
    builder.use_labels()
    for name, node in builder.nodes.items():
        if node.position:  # in Graphviz, y increases upwards; elsewhere, downwards
            builder.nodes[name] = replace(node, position=(node.position[0], -node.position[1]))
    return builder.done()


_STYLE = {
    "->": "",
    "<->": " [dir=both]",
    "--": " [dir=none]",
    "o->": " [dir=both, arrowtail=odot]",
    "o-o": " [dir=both, arrowtail=odot, arrowhead=odot]",
    "o--": " [dir=both, arrowtail=odot, arrowhead=none]",
}


def write(graph: MixedGraph) -> str:
    """Return DOT text that Graphviz can draw and :func:`read` can read back."""
    lines = ["digraph {"]
    for node in graph.nodes:
        facts = ["latent=true"] if node.latent else []
        facts += [f'role="{" ".join(node.roles)}"'] if node.roles else []
        if node.position:
            x, y = node.position
            facts.append(f'pos="{written_number(x)},{written_number(-y)}!"')
        lines.append(f"  {quoted(node.name)}" + (f" [{', '.join(facts)}]" if facts else "") + ";")
    lines += [f"  {quoted(e.left)} -> {quoted(e.right)}{_STYLE[e.mark]};" for e in graph.edges]
    return "\n".join([*lines, "}"]) + "\n"
