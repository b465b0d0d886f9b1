"""The user at the other end of a connection."""

from __future__ import annotations

import os
import socket
import time

import pytest

from espalier.core.server import peer


@pytest.mark.skipif(not peer.known(), reason="only Linux states the user of a connection")
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_user_of_a_connection_is_known_by_its_address(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as listening:
        try:
            listening.bind((host, 0))
        except OSError:
            pytest.skip("this machine has no such address")
        listening.listen()
        with socket.create_connection(listening.getsockname()[:2]) as ours:
            place = ours.getsockname()[:2]
            assert peer.user_at(*place) == os.geteuid()
            assert peer.user_at("192.0.2.7", place[1]) is None
            assert peer.user_at(host, 0) is None
    assert peer.user_at("a name", 80) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.skipif(not peer.known(), reason="only Linux states the user of a connection")
def test_a_connection_that_another_user_has_closed_is_no_one_s() -> None:
    """Previously, it was the administrator's, who was admitted, so another user could send requests and hang up."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        os.seteuid(65534)
        try:
            theirs = socket.socket()
        finally:
            os.seteuid(0)
        theirs.connect(listening.getsockname())
        with listening.accept()[0]:
            place = theirs.getsockname()
            assert peer.user_at(*place) == 65534
            theirs.close()
            deadline = time.monotonic() + 10
            while peer.user_at(*place) == 65534 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert peer.user_at(*place) is None
