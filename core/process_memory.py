"""Memory of this process: the amount in use, the amount still available, and the return of free memory to the
system.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
MANY_CELLS = 5_000_000
"""Number of cells in a table above which memory is returned to the system. This takes a tenth of a second."""
UNLIMITED = 1 << 60
"""A reported limit above this number means that a process group has no limit."""


def used() -> int:
    """Return the number of bytes that this process has in memory; 0 if the system does not report it."""
    return _status("VmRSS")


def peak() -> int:
    """Return the largest number of bytes that this process has had in memory; 0 if the system does not report it."""
    return _status("VmHWM")


def available() -> int | None:
    """Return the number of bytes still available to this process; `None` if the system does not report it.

    This is the smallest of three amounts: the machine's free memory, the rest of the process group's limit (a
    container, a service), and the rest of the process's own limits.
    """
    return min((*_of_machine(), *_of_groups(), *_of_limits()), default=None)


def give_back() -> None:
    """Collect garbage, and return free memory to the system."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _of_machine() -> Iterator[int]:
    for line in _lines(_PROC / "meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) << 10


def _of_groups() -> Iterator[int]:
    """Yield the memory left for each group of this process. Cached files that can be dropped from memory count as
    free."""
    for line in _lines(_PROC / "self" / "cgroup"):
        _, kind, place = line.split(":", 2)
        if kind and "memory" not in kind.split(","):
            continue
        root, names = (_GROUPS, ("memory.max", "memory.current", "inactive_file"))
        if kind:
            root, names = _GROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        for folder in (root / place.lstrip("/"), root):  # in a container, the container's own group is the root
            most, now = (next(iter(_lines(folder / name)), "") for name in names[:2])
            if most.isdigit() and now.isdigit() and int(most) < UNLIMITED:
                kept = (x.split() for x in _lines(folder / "memory.stat"))
                yield max(0, int(most) - int(now) + sum(int(n) for name, n in kept if name == names[2]))
                break


def _of_limits() -> Iterator[int]:
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(kind)[0]
        if most != resource.RLIM_INFINITY:
            yield max(0, most - _status(name))


def _status(name: str) -> int:
    for line in _lines(_PROC / "self" / "status"):
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
