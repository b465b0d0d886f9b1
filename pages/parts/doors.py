"""Who is at the door: anybody on this machine, or, where the server's secrets ask for it, who has signed in.

Without ``[auth]`` in ``.streamlit/secrets.toml`` there is no ceremony: whoever reaches the server is the steward, and
by default it listens on this machine only. With it (Streamlit's OpenID Connect, ``st.login``), ``[roles]`` says who may
come in::

    [roles]
    steward = ["anna@hospital.example"]                     # may open tables and spend
    viewer = ["ben@partner.example", "@hospital.example"]   # sees what was released and marked for sharing

An entry that begins with ``@`` admits a whole domain. Whoever is on no list stays outside, and so does everybody where
the secrets cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from pages.parts.words import name

Role = Literal["steward", "viewer"]


def guarded() -> bool:
    """Does this server ask people to sign in? Stops the page where its secrets are there but cannot be read."""
    if st.secrets.load_if_toml_exists():
        return "auth" in st.secrets
    if any(path.exists() for path in secret_files()):
        st.error("The server's secrets.toml cannot be read, so nobody is let in. Mend the file and start it again.")
        st.stop()
    return False


def secret_files() -> list[Path]:
    """Where Streamlit looks for secrets."""
    return [Path(path) for path in st.config.get_option("secrets.files")]


def role() -> Role | None:
    """The role of whoever is here; None for who has none or has not signed in."""
    if not guarded():
        return "steward"
    return role_of(st.user, st.secrets.get("roles", {})) if st.user.is_logged_in else None


def enter() -> Role:
    """The role of whoever is here. Nobody without one gets past this call."""
    mine = role()
    if not guarded():
        return "steward"
    if not st.user.is_logged_in:
        st.title("Espalier", anchor=False)
        st.markdown("This server asks who you are before it opens.")
        st.button("Sign in", type="primary", on_click=st.login, icon=":material/login:")
        st.stop()
    with st.sidebar:
        st.caption(f"Signed in as {name(who())}" + (f", {mine}" if mine else ""))
        st.button("Sign out", on_click=st.logout, icon=":material/logout:")
    if mine is None:
        st.title("Espalier", anchor=False)
        st.error("Your address is on no list of this server. Ask its steward to add it, or sign in with another.")
        st.stop()
    return mine


def need_steward() -> None:
    """Stop here unless whoever is here may open tables and spend."""
    if role() != "steward":
        st.error("Only a steward may do this. Ask the steward of this server.")
        st.stop()


def who() -> str:
    """The address of whoever has signed in; empty without sign-in."""
    return str(st.user.get("email") or "an account without an address") if guarded() else ""


def role_of(user: Mapping[str, Any], roles: Mapping[str, Any]) -> Role | None:
    """The role that the lists give an account. An address its provider says is not verified counts as none."""
    address = str(user.get("email") or "").strip().lower()
    if "@" not in address or user.get("email_verified") is False:
        return None
    domain = address[address.rindex("@") :]
    for role in ("steward", "viewer"):
        listed = roles.get(role, ())
        if isinstance(listed, Sequence) and not isinstance(listed, str):
            entries = {str(entry).strip().lower() for entry in listed}
            if address in entries or domain in entries:
                return role  # type: ignore[return-value]
    return None
