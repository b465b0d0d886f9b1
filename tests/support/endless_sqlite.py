"""SQLite files whose pages lead to each other: a scan of one table never ends."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

PAGE, WIDE, DEEP = 4096, 300, 6


def make_endless(file: Path, table: str) -> None:
    """Put pages above those of a small table (or the catalogue, sqlite_master): 300⁶ ways lead to its one leaf."""
    con = sqlite3.connect(file)
    asked = "SELECT rootpage FROM sqlite_master WHERE name = ?"
    (root,) = (1,) if table == "sqlite_master" else con.execute(asked, (table,)).fetchone()
    con.close()
    data, head = bytearray(file.read_bytes()), 100 if root == 1 else 0
    old = data[(root - 1) * PAGE : root * PAGE]
    assert old[head] == 13, "the table has more than one page"
    cells = 8 + 2 * int.from_bytes(old[head + 3 : head + 5], "big")
    leaf = bytearray(PAGE) if head else old
    leaf[:cells], leaf[head + cells :] = old[head : head + cells], old[head + cells :]
    first = len(data) // PAGE + 1
    for page in range(DEEP):
        at = head if page == 0 else 0
        made = old[:at] + _inside(first + page, at)
        if page == 0:
            data[(root - 1) * PAGE : root * PAGE] = made
        else:
            data += made
    data += leaf
    data[28:32] = struct.pack(">I", len(data) // PAGE)
    file.write_bytes(data)


def _inside(child: int, at: int) -> bytearray:
    """Return an interior page, from offset ``at`` on, whose cells all name ``child``."""
    page = bytearray(PAGE)
    start = PAGE - 6 * WIDE
    page[at : at + 12] = struct.pack(">BHHHBI", 5, 0, WIDE, start, 0, child)
    for i in range(WIDE):
        page[at + 12 + 2 * i : at + 14 + 2 * i] = struct.pack(">H", start + 6 * i)
        key = i + 128  # a number of two bytes
        page[start + 6 * i : start + 6 * i + 6] = struct.pack(">IBB", child, 0x80 | key >> 7, key & 0x7F)
    return page[at:]
