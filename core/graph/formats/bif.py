"""Structure of BIF files, the Bayesian network interchange format. Probabilities are skipped.

Cozman 1998, "The Interchange Format for Bayesian Networks".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from espalier.core.graph.formats.dot import Token, quoted, unquoted
from espalier.core.graph.formats.mixed import Builder, MixedGraph, broken, number, shown, written_number

_TOKEN = re.compile(
    r"""(?P<space>[\s,]+|//[^\n]*)
    |(?P<comment>/\*)
    |(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
    |(?P<word>[^\s{}()\[\]|,;"]+)
    |(?P<mark>[{}()\[\]|;])""",
    re.VERBOSE | re.DOTALL,
)
_POSITION = re.compile(r"position\s*=\s*\(\s*([^,\s]+)\s*,\s*([^)\s]+)\s*\)")


def _tokens(text: str, line: int) -> Iterator[Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise broken(line, "a quotation mark is never closed")
        kind, piece, at = found.lastgroup or "", found[0], found.end()
        if kind == "space":
            line += piece.count("\n")
        elif kind == "comment":
            end = text.find("*/", at)
            if end < 0:
                raise broken(line, "a comment that begins with /* is never closed")
            line, at = line + text.count("\n", at, end), end + 2
        elif kind == "string":
            yield Token("name", unquoted(piece), line)
            line += piece.count("\n")
        else:
            yield Token(piece if kind == "mark" else "name", piece, line)
    yield Token("end", "the end of the file", line)


def read(text: str, line: int = 1) -> MixedGraph:
    """Return the structure of a BIF network; raises :class:`GraphError`."""
    builder = Builder("bif")
    pieces = _tokens(text, line)
    given: dict[str, int] = {}
    arrows: list[tuple[str, str, int]] = []
    for token in pieces:
        if token.kind == "end":
            break
        word = token.text.lower() if token.kind == "name" else ""
        if word == "network":
            _network(pieces)
        elif word == "variable":
            _variable(pieces, builder)
        elif word == "probability":
            child, parents = _probability(pieces)
            if child in given:
                raise broken(
                    token.line, f"{shown(child)} has a second probability; the first is on line {given[child]}"
                )
            given[child] = token.line
            arrows += [(parent, child, token.line) for parent in parents]
        elif token.kind != ";":
            raise broken(
                token.line, f"{shown(token.text)} is out of place; a network, variable or probability must begin here"
            )
    for name, where in [*given.items(), *((cause, where) for cause, _, where in arrows)]:
        if name not in builder.nodes:
            raise broken(where, f"{shown(name)} is not one of the variables")
    for cause, effect, where in arrows:
        builder.edge(cause, "->", effect, where)
    return builder.done()


def _need(token: Token, kind: str, what: str) -> Token:
    if token.kind != kind:
        raise broken(token.line, f"{what} is missing before {shown(token.text)}")
    return token


def _network(pieces: Iterator[Token]) -> None:
    token = next(pieces)
    while token.kind == "name":
        token = next(pieces)
    _skip(pieces, _need(token, "{", "'{'"))


def _variable(pieces: Iterator[Token], builder: Builder) -> None:
    name = _need(next(pieces), "name", "a variable's name")
    if name.text in builder.nodes:
        raise broken(name.line, f"two variables are called {shown(name.text)}")
    words = _skip(pieces, _need(next(pieces), "{", "'{'"))
    builder.node(name.text, name.line)
    for word in words:
        if found := _POSITION.search(word):
            x, y = number(found[1]), number(found[2])
            if x is not None and y is not None:
                builder.node(name.text, name.line, position=(x, y))


def _probability(pieces: Iterator[Token]) -> tuple[str, list[str]]:
    """Read the variable and its parents. Some programs omit the bar between them."""
    _need(next(pieces), "(", "'('")
    child = _need(next(pieces), "name", "a variable's name").text
    parents: list[str] = []
    bar = False
    for token in pieces:
        if token.kind == ")":
            break
        if token.kind == "|" and not bar and not parents:
            bar = True
        elif token.kind == "name":
            parents.append(token.text)
        else:
            raise broken(token.line, f"{shown(token.text)} is out of place in a list of variables")
    _skip(pieces, _need(next(pieces), "{", "'{'"))
    return child, parents


def _skip(pieces: Iterator[Token], begun: Token) -> list[str]:
    """Skip a block to its closing brace; return the names inside."""
    depth, names = 1, []
    for token in pieces:
        if token.kind == "name":
            names.append(token.text)
        elif token.kind == "{":
            depth += 1
        elif token.kind == "}":
            depth -= 1
            if not depth:
                return names
        elif token.kind == "end":
            break
    raise broken(begun.line, "the '{' on this line is never closed")


def write(graph: MixedGraph) -> str:
    """Return the structure as BIF: variables and their parents, without categories or probabilities."""
    lines = ["// structure only: no categories, no probabilities", "network unknown {", "}"]
    parents: dict[str, list[str]] = {node.name: [] for node in graph.nodes}
    for edge in graph.edges:
        if edge.mark == "->":
            parents[edge.right].append(edge.left)
    for node in graph.nodes:
        lines.append(f"variable {quoted(node.name)} {{")
        if node.position:
            lines.append(f'  property "position = ({", ".join(map(written_number, node.position))})" ;')
        lines.append("}")
    for name, causes in parents.items():
        given = f" | {', '.join(map(quoted, causes))}" if causes else ""
        lines += [f"probability ( {quoted(name)}{given} ) {{", "}"]
    return "\n".join(lines) + "\n"
