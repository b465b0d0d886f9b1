"""``espalier graph``: summarise another tool's graph file, or convert it to another format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

FORMAT_NAMES = ("dagitty", "dot", "gml", "bif", "csv", "json", "graphml", "bnlearn", "tetrad")


def add(commands: Any) -> None:
    """Declare the command."""
    graph = commands.add_parser("graph", help="read another tool's graph file and convert it to another format")
    graph.add_argument("file", type=Path)
    graph.add_argument(
        "--to",
        choices=FORMAT_NAMES,
        help="print the graph in this format, and list the parts that the format cannot represent",
    )
    graph.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Summarise a drawing, or print it in the format of ``--to``. Parts that this format cannot represent are listed on
    stderr.
    """
    from espalier.core.graph.formats import not_held, write_graph
    from espalier.core.graph.formats.describe import checked, load_graph, summary

    found = load_graph(opt.file)
    if opt.to is None:
        print(summary(found, opt.file.name))
        checked(found, opt.file)
        return
    text = write_graph(checked(found, opt.file), opt.to)
    for remark in found.remarks:
        print(f"note: {opt.file}: line {remark.line}: {remark.text}", file=sys.stderr)
    for lost in not_held(found, opt.to):
        print(f"note: {lost}", file=sys.stderr)
    print(text, end="")
