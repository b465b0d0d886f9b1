"""Time to read a graph file of 1 MB in each format: ``python -m benchmarks.graph_files``."""

from __future__ import annotations

import time

from espalier.core.graph.formats import FORMATS, Edge, MixedGraph, Node, read_graph, write_graph
from espalier.core.graph.formats.resolve import resolve


def graph(nodes: int) -> MixedGraph:
    """Return names with spaces, quotes and non-ASCII letters, and four arrows into each node."""
    names = [f'the "{i}" é, of them' for i in range(nodes)]
    edges = (Edge(names[i - k], names[i]) for i in range(nodes) for k in (1, 3, 7, 9) if i >= k)
    return MixedGraph(tuple(map(Node, names)), tuple(edges))


def seconds(text: str) -> tuple[float, float]:
    """Return the CPU seconds of reading and of resolving, each the best of three."""
    read, settled = [], []
    for _ in range(3):
        start = time.process_time()
        found = read_graph(text)
        read.append(time.process_time() - start)
        start = time.process_time()
        resolve(found)
        settled.append(time.process_time() - start)
    return min(read), min(settled)


def main() -> None:
    """Print one line per format."""
    print(f"{'format':<10} {'MB':>5} {'edges':>7} {'read, s':>8} {'resolve, s':>10}")
    for name in FORMATS:
        size = 1000 * 1_000_000 // len(write_graph(graph(1000), name).encode())
        text = write_graph(graph(size), name)
        read, settled = seconds(text)
        edges = len(graph(size).edges)
        print(f"{name:<10} {len(text.encode()) / 1e6:>5.2f} {edges:>7,} {read:>8.2f} {settled:>10.2f}")


if __name__ == "__main__":
    main()
