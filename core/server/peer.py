"""The user of this machine at the other end of a connection, from Linux's table of connections.

Every user of the machine can reach a server that listens only on this machine. Without sign-in, the server therefore
admits only the user who started it.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path

TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
"""Linux's tables of connections, by IP version. Other systems have none."""

ESTABLISHED = "01"


def known() -> bool:
    """Return whether this system lists its connections."""
    return TABLES[4].exists()


def user_at(host: str, port: int) -> int | None:
    """Return the user ID that owns the connection from this address; `None` if no open connection of this machine
    starts there. Linux lists a connection that its user has closed as the administrator's.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    packed = address.packed
    words = (packed[at : at + 4][::-1].hex().upper() for at in range(0, len(packed), 4))
    wanted = f"{''.join(words)}:{port:04X}"
    users = {
        int(fields[7])
        for line in TABLES[address.version].read_text("ascii").splitlines()[1:]
        if (fields := line.split())[1] == wanted and fields[3] == ESTABLISHED
    }
    return users.pop() if len(users) == 1 else None
