"""Sign-in and roles: who may see a page and who may spend.

Every page calls :func:`enter` first. Until a session has reached ``st.navigation`` in ``app.py``, Streamlit runs any
script directly inside ``pages/`` on its own. Therefore ``pages/`` contains no scripts other than the pages; all other
modules are in its folders.

Without ``[auth]`` in ``.streamlit/secrets.toml`` there is no sign-in: the user who started the server is the steward.
Such a server must listen on this machine only, and on Linux it refuses other users of this machine. With ``[auth]``
(OpenID Connect, ``st.login``), ``[roles]`` lists who may enter::

    [roles]
    steward = ["anna@hospital.example"]                     # may open tables and spend
    viewer = ["ben@partner.example", "@hospital.example"]   # sees releases that are marked for sharing
    vouched = false  # true: trust a provider that does not state whether addresses are verified

An entry that begins with ``@`` admits a whole domain. Everyone else is refused. If the secrets are missing, cannot be
read, or do not make sign-in safe, everyone is refused.
"""

from __future__ import annotations

import os
import string
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn
from urllib.parse import urlsplit

import streamlit as st
from streamlit import runtime
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from espalier.core.server import doors, events, peer
from espalier.pages.common import downloads
from espalier.pages.common.text import name

Role = Literal["steward", "viewer"]

LASTS = 12 * 3600.0
"""Seconds after which a sign-in expires."""

SECRET = 32
"""Minimum length of the cookie secret, in characters. Anyone can obtain text signed with the secret and could guess a
short one.
"""

_SEEN = "espalier-signed-in"
"""Key of a session for the person and role whose sign-in was recorded as an event."""
_FITS = "espalier-visit"
"""Key of a session for the connection whose visitor was checked."""
_LOAD_AGAIN = "<script>if (window !== window.top || window.opener) location.reload()</script>"
"""Script for a page that was sent without the headers of `doors`. It reloads the page with these headers if another
page could control it.
"""
_LOCAL = ("127.0.0.1", "localhost", "::1")
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_asked: set[Path] = set()
"""Secrets files that required a sign-in. If they vanish, no one is let in."""
_ended: dict[tuple[Any, ...], float] = {}
"""Sign-ins that have ended, with their times on the monotonic clock. A session in another tab keeps its own sign-in."""
_STARTED = time.time() - time.monotonic()
"""Wall-clock time at zero of the monotonic clock, measured when this server started."""


def guarded() -> bool:
    """Return whether this server requires sign-in. Stop the page if sign-in would not be safe."""
    if st.secrets.load_if_toml_exists():
        if "auth" in st.secrets:
            _asked.update(path for path in secret_files() if path.exists())
            if len(str(st.secrets["auth"].get("cookie_secret", ""))) < SECRET:
                _shut(f"The cookie_secret in the server's secrets.toml has fewer than {SECRET} characters.")
            if st.get_option("server.trustedUserHeaders"):  # these replace the provider's claims about a person
                _shut("The option server.trustedUserHeaders reads the names of people from request headers.")
            _check_visit(signed=True)
            return True
        if "roles" in st.secrets:
            _shut("The server's secrets.toml lists roles, but has no [auth] section for sign-in.")
    elif any(path.exists() for path in secret_files()):
        _shut("The server's secrets.toml cannot be read.")
    if _asked:
        _shut("The server's secrets.toml no longer contains the sign-in settings.")
    if st.get_option("server.address") not in _LOCAL:
        _shut("This server accepts connections from other machines but has no sign-in.")
    _check_visit(signed=False)
    return False


def _check_visit(*, signed: bool) -> None:
    """Stop the page unless its own address opened this session and, without sign-in, the user who started this server
    did.

    Streamlit also admits pages from other ports of this machine. A proxy is refused without sign-in, because its
    visitors would all be stewards. So is a proxy's header, in which anyone could claim the address of another
    connection. Only Linux can tell users apart. In Streamlit's own tests, there is no connection.
    """
    context = get_script_run_ctx()
    if context is None or not runtime.exists() or st.config.get_option("global.appTest"):
        return
    socket = getattr(runtime.get_instance().get_client(context.session_id), "_websocket", None)
    if socket is not None and not doors.closed(socket.scope):
        st.html(_LOAD_AGAIN, unsafe_allow_javascript=True)
    if _FITS in st.session_state and (socket is None or st.session_state[_FITS] == socket.client):
        return  # a session may be resumed by another connection, which is checked again
    if socket is None or socket.client is None:
        _shut("This browser has disconnected.")
    origin = socket.headers.get("origin")
    # A proxy may change the host, so the operator may list its names.
    own = {socket.headers.get("host"), *(st.get_option("server.allowedHosts") if signed else ())}
    if origin is not None and urlsplit(origin).netloc not in own:
        _shut("A page from another address opened this app.")
    if not signed and peer.known():
        user = None if "x-forwarded-for" in socket.headers else peer.user_at(*socket.client)
        if user != os.getuid():  # programs of the administrator are refused too, because they may connect for others
            _shut("Another user of this machine started this app, or a proxy serves it, and it has no sign-in.")
    st.session_state[_FITS] = socket.client


def _shut(why: str) -> NoReturn:
    st.error(f"{why} For this reason, access is blocked. Correct it and restart the server.")
    st.stop()


def secret_files() -> list[Path]:
    """Return the paths of Streamlit's secrets."""
    return [Path(path) for path in st.config.get_option("secrets.files")]


def signed_in() -> bool:
    """Return whether this person has signed in recently and not signed out since."""
    began = st.user.get("iat")
    return (
        st.user.is_logged_in is True
        and isinstance(began, int | float)
        and abs(_now() - began) < LASTS
        and _sign_in() not in _ended
    )


def _now() -> float:
    """Return the time. Setting the clock back while the server is running does not extend a sign-in."""
    return max(time.time(), _STARTED + time.monotonic())


def _sign_in() -> tuple[Any, ...]:
    return tuple(st.user.get(key) for key in ("iss", "sub", "email", "iat"))


def sign_out() -> None:
    """End this sign-in, in every tab that it opened."""
    events.emit("sign-out", who())
    now = time.monotonic()  # moving the clock forward and back does not revive an ended sign-in
    for old in [key for key, at in _ended.items() if now - at > 2 * LASTS]:
        del _ended[old]
    _ended[_sign_in()] = now
    st.logout()


def role() -> Role | None:
    """Return the role of this person; None without a role or a sign-in. Only the sessions of stewards may upload
    files.
    """
    guards = guarded()
    mine: Role | None = (
        "steward" if not guards else role_of(st.user, st.secrets.get("roles", {})) if signed_in() else None
    )
    _admit(mine == "steward")
    return mine


def _admit(steward: bool) -> None:
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return
    doors.admitted.difference_update(
        one for one in tuple(doors.admitted) if not runtime.get_instance().is_active_session(one)
    )
    (doors.admitted.add if steward else doors.admitted.discard)(context.session_id)


def enter(needed: Role) -> None:
    """Stop unless this person has the role. Every page calls this first. A steward may do everything a viewer may
    do.
    """
    _keep_sizes()
    if not guarded():
        _by_the_front_door()
        return
    if not signed_in():
        st.title("Espalier", anchor=False)
        st.markdown("Sign in to use this server.")
        st.button("Sign in", type="primary", on_click=st.login, icon=":material/login:")
        st.stop()
    mine = role()
    if st.session_state.get(_SEEN) != (who(), mine):
        st.session_state[_SEEN] = who(), mine
        downloads.remember(who())
        events.emit("sign-in" if mine else "refuse", who(), role=mine, what="sign-in")
    with st.sidebar:
        st.caption(f"Signed in as {name(who())}" + (f", {mine}" if mine else ""))
        st.button("Sign out", on_click=sign_out, icon=":material/logout:")
    if mine is None:
        st.title("Espalier", anchor=False)
        st.error(
            "Your address is not on this server's lists. Ask the steward to add it, or sign in with another address."
        )
        st.stop()
    if needed == "steward":
        need_steward()
    if mine == "steward":  # each page still checks the role itself
        _by_the_front_door()


def _by_the_front_door() -> None:
    """Run ``app.py`` first. If the first request to a new server is for a page, Streamlit runs only that script,
    without the app's navigation. Streamlit's own tests always do so.
    """
    if PagesManager.uses_pages_directory and not st.config.get_option("global.appTest"):
        PagesManager.uses_pages_directory = False
        st.rerun()


def _keep_sizes() -> None:
    """Hide the sizes of uploads and sessions, which Streamlit's ``_stcore/metrics`` shows to anyone."""
    if runtime.exists():
        getattr(runtime.get_instance().stats_mgr, "_providers_by_family", {}).clear()


def need_steward() -> None:
    """Stop unless this person may open tables and spend.

    Callbacks that spend call this, because Streamlit runs them before the page checks the role.
    """
    if role() != "steward":
        events.emit("refuse", who(), what="steward")
        st.error("Only a steward may do this. Ask the steward of this server.")
        st.stop()


def who() -> str:
    """Return the address of the person who has signed in; empty without sign-in."""
    return str(st.user.get("email") or "an account without an address") if guarded() else ""


def identity() -> tuple[Any, ...]:
    """Return an identifier of the account that is the same after another sign-in; empty if sign-in is off."""
    return tuple(st.user.get(key) for key in ("iss", "sub", "email")) if guarded() else ()


def role_of(user: Mapping[str, Any], roles: Mapping[str, Any]) -> Role | None:
    """Return the role of an account in the lists; None unless its provider states that the address is verified. Case is
    ignored for the letters A to Z only, because Python would turn the Kelvin sign into a k.
    """
    address, verified = str(user.get("email") or "").translate(_LOWER), user.get("email_verified")
    if verified not in (True, "true") and not (verified is None and roles.get("vouched") is True):
        return None
    local, _, domain = address.partition("@")
    if not local or not domain or "@" in domain or not address.isprintable() or " " in address:
        return None
    for role in ("steward", "viewer"):
        listed = roles.get(role, ())
        if isinstance(listed, Sequence) and not isinstance(listed, str):
            entries = {str(entry).strip().translate(_LOWER) for entry in listed}
            if address in entries or f"@{domain}" in entries:
                return role
    return None
