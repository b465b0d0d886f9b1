"""Privacy label: one page for people, generated from a statement.

It states what is protected, the strength of the protection, what is not protected, and who is responsible. This order
follows the published proposals for differential privacy labels (Cummings, Kaptchuk and Redmiles 2021; Smart,
Nanayakkara and others 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from espalier.core.display import in_order
from espalier.core.privacy.accounting import round_up

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}"
    "section.label{border:3px solid;padding:1rem 1.5rem}section.label table{border-collapse:collapse;width:100%}"
    "section.label th{text-align:left;vertical-align:top;width:11rem;padding:.4rem 1rem .4rem 0;font-weight:600}"
    "section.label td{padding:.4rem 0}section.label tr{border-top:1px solid #8886}section.label ul{margin:0;"
    "padding-left:1.1rem}"
)


def label(claims: Mapping[str, Any]) -> str:
    """Return the label as a section of a page, with every name escaped."""
    made, unit, promise = claims["release"], claims["unit"], claims["guarantee"]
    chance = round_up(100 * promise["guess_right"], 3)
    lines = [
        (
            "What it is",
            f"{made['rows']:,} synthetic rows, made on {escape(str(made['date']))}. No row is a real person.",
        ),
        ("Who is protected", escape(unit["sentence"]) + " " + escape(unit["stated"])),
        (
            "How strongly",
            f"ε = {round_up(promise['epsilon'])}, δ = {round_up(promise['delta'])}. Someone who must guess which of "
            f"two versions of a person's record was used is right half the time without this release, and at most "
            f"{chance} % of the time with it.",
        ),
        ("Spent", f"{len(claims['draws']):,} noisy answers, together ρ = {round_up(claims['spent']['rho'])}."),
        ("Not protected", _bullets(claims["not_protected"])),
        ("Assumed", _bullets(claims["assumed"])),
        ("Spent before", _before(claims["ledger"])),
        ("Approved by", escape(str(claims["approved"].get("approved_by", "no one is named")))),
        ("Signature", signed_by(claims["signer"])),
        ("How to check it", "<code>espalier verify FOLDER</code> recomputes these claims from the files."),
    ]
    rows = "".join(f"<tr><th>{head}</th><td>{text}</td></tr>" for head, text in lines)
    return f'<section class="label"><h2>Privacy label: {escape(made["name"])}</h2><table>{rows}</table></section>'


def signed_by(signer: Mapping[str, str] | None) -> str:
    """Return a sentence that names the signer, as HTML."""
    if signer is None:
        return "This release was not signed when it was made."
    return f"Ed25519, by the key with the fingerprint <code>{escape(signer['fingerprint'])}</code>."


def page(claims: Mapping[str, Any]) -> bytes:
    """``label.html``."""
    name = escape(claims["release"]["name"])
    return in_order(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Privacy label: {name}</title>'
        f"<style>{STYLE}</style></head>\n<body>{label(claims)}</body></html>\n"
    ).encode()


def _bullets(lines: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _before(ledger: Mapping[str, Any] | None) -> str:
    if ledger is None:
        return "Unknown: this release is not recorded in a ledger."
    before, total = ledger["before"], ledger["total"]
    return (
        f"From the same people: ε = {round_up(before['epsilon'])} before this release, of ε = {total['epsilon']:g} at "
        f"δ = {total['delta']:g} in all (ledger entry {escape(ledger['entry'])})."
    )
