"""A drawing by layers: every effect below its causes (longest path), few crossings, arrows that skip layers bent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Bend = tuple[str, str, int]
"""Where the arrow (cause, effect) crosses a layer that neither of them is in."""
Slot = str | Bend


def depths(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layer of each column: the length of the longest chain of causes above it.

    A cause without causes stands one layer above its first effect. ``edges`` have no cycle.
    """
    causes: dict[str, list[str]] = {n: [] for n in names}
    effects: dict[str, list[str]] = {n: [] for n in names}
    for a, b in edges:
        causes[b].append(a)
        effects[a].append(b)
    depth: dict[str, int] = {}
    waiting = {n: len(causes[n]) for n in names}
    ready = [n for n in names if not waiting[n]]
    for n in ready:  # grows while it is walked: causes before effects
        depth[n] = 1 + max((depth[c] for c in causes[n]), default=-1)
        for effect in effects[n]:
            waiting[effect] -= 1
            if not waiting[effect]:
                ready.append(effect)
    for n in names:
        if not causes[n] and effects[n]:
            depth[n] = max(min(depth[e] for e in effects[n]) - 1, 0)
    return depth


def layered(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> tuple[list[list[Slot]], list[list[Slot]]]:
    """(layers, paths): the slots of every layer from left to right, and the slots each arrow runs through.

    Slots are ordered by eight sweeps of the barycentre rule (Sugiyama, Tagawa and Toda 1981).
    """
    depth = depths(names, edges)
    layers: list[list[Slot]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for n in names:
        layers[depth[n]].append(n)
    paths: list[list[Slot]] = []
    for a, b in edges:
        bends: list[Slot] = [(a, b, level) for level in range(depth[a] + 1, depth[b])]
        for level, bend in zip(range(depth[a] + 1, depth[b]), bends, strict=True):
            layers[level].append(bend)
        paths.append([a, *bends, b])
    near: dict[Slot, list[Slot]] = {}
    for path in paths:
        for one, other in pairwise(path):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    for sweep in range(8):
        down = sweep % 2 == 0
        for i in range(1, len(layers)) if down else range(len(layers) - 2, -1, -1):
            rank = _ranks(layers[i - 1 if down else i + 1])
            own = _ranks(layers[i])
            weight = {}
            for slot in layers[i]:
                known = [rank[m] for m in near.get(slot, ()) if m in rank]
                weight[slot] = sum(known) / len(known) if known else own[slot]
            layers[i].sort(key=weight.__getitem__)
    return layers, paths


def _ranks(layer: list[Slot]) -> dict[Slot, float]:
    return {slot: k / max(len(layer) - 1, 1) for k, slot in enumerate(layer)}
