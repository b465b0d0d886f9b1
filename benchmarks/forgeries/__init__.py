"""Forged releases that attack the verifier; `python -m benchmarks.forgeries` runs them all."""

from benchmarks.forgeries import attacks, budget, crafted, files, ledger, loopholes, model, noise, rows, texts
from benchmarks.forgeries.case import KINDS, METHODS, Case, Files, Kind, checked, public_pem, signer, table, written

GROUPS = (budget, noise, model, rows, texts, ledger, files, attacks, loopholes, crafted)
"""The files that list the kinds."""
__all__ = ["GROUPS", "KINDS", "METHODS", "Case", "Files", "Kind", "checked", "public_pem", "signer", "table", "written"]
