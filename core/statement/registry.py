"""Entry for the public registry of deployments of differential privacy, tier 3, generated from a statement.

The file is JSON, which is valid YAML. The only numbers of rows in it are public ones and those of synthetic rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

SOURCE = "Version and digests are in statement.json."


def entry(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry. It follows ``deployments-schema.yaml`` of the registry."""
    made, unit, promise, spent = claims["release"], claims["unit"], claims["guarantee"], claims["spent"]
    ledger, approved = claims["ledger"], claims["approved"]
    who = str(approved.get("approved_by") or "not named")
    noise = "Gaussian" if promise["delta"] else "Laplace"
    kinds = sorted({d["recipe"] for d in claims["draws"]})
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", f"{made['name']}-{made['date']}".lower()).strip("-") or "release",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": made["name"] or "release",
                "data_curators": [who],
                "intended_use": "To be stated by the curator.",
                "data_product_type": "Synthetic data",
                "data_product_region": "To be stated by the curator.",
                "description": f"{made['rows']:,} synthetic rows in {len(made['columns'])} columns, made by "
                f"{made['method_title']} (Espalier).",
                "publication_date": made["date"],
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if promise["delta"] else "Pure DP",
                "data_domain": "All tables of the declared columns: " + ", ".join(made["columns"]) + ".",
                "unprotected_quantities": " ".join(claims["not_protected"]),
            },
            "privacy_loss": {
                "privacy_unit": unit["sentence"],
                "privacy_unit_details": f"{unit['adjacent']} {unit['stated']}",
                "privacy_parameters": {
                    "epsilon": promise["epsilon"],
                    "delta": promise["delta"],
                    "rho": spent["rho"],
                },
                "privacy_parameters_details": promise["sentence"],
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "A curator's program reads the private table and writes the release.",
                "actors": " ".join(claims["assumed"]),
                "release_type": "Many releases" if ledger else "One release",
                "release_type_details": f"Recorded in a ledger with a total of ε = {ledger['total']['epsilon']:g} at "
                f"δ = {ledger['total']['delta']:g}. The budget does not reset."
                if ledger
                else "No ledger counts this release together with others from the same people.",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": " ".join(claims["post_processing"]),
                "composition": " ".join(p["rule"] for p in claims["composition"].values() if p)
                + f" {claims['accounting']['conversion']}",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "The schema is declared, confirmed as public, or bought "
                "from the budget. Options are chosen before anything is read.",
                "mechanisms": f"Discrete {noise} noise and the exponential mechanism of OpenDP, on whole numbers, from "
                f"the operating system's generator. Recipes: {', '.join(kinds)}. {SOURCE}",
                "justification": "Each sensitivity is proved next to its code, enumerated over small neighbouring "
                "tables, and audited; docs/privacy-checklist.md lists the evidence for each claim.",
            },
            "administrative": {"registry_authors": [who], "notes": "Generated from statement.json."},
        },
    }


def text(claims: Mapping[str, Any]) -> bytes:
    """Return ``registry.yaml``. YAML 1.1 reads 1e-06 as text and 1.0e-06 as a number, so numbers get a point.

    Characters that JSON allows in text but YAML forbids or folds are escaped.
    """
    made = json.dumps(entry(claims), indent=1, ensure_ascii=False)
    made = re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda odd: f"\\u{ord(odd[0]):04x}", made)
    return (re.sub(r'(?m)^( *"\w+": \d+)(?=e-?\d+,?$)', r"\1.0", made) + "\n").encode()
