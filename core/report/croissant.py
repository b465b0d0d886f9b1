"""Machine-readable card of a release for data-set indexes: Croissant JSON-LD (MLCommons, version 1.0)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_TYPES = {"numeric": "sc:Float", "categorical": "sc:Text", "ordinal": "sc:Text", "date": "sc:Date"}


def card(facts: Mapping[str, Any], table: bytes) -> bytes:
    """Return the card from the facts of ``release.json`` and the text of ``synthetic.csv``."""
    project = facts["project"]
    spent = facts.get("spent") or {}
    private = facts["private"]
    promise = (
        f"(ε, δ)-differentially private: ε = {facts['asked']['epsilon']:g}, δ = {facts['asked']['delta']:g}, "
        f"{spent['neighbors']}, at most {spent['rows_per_person']} rows per person."
        if private
        else "Not private."
    )
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{column['name']}",
            "name": column["name"],
            "dataType": "sc:Integer" if column.get("integer") else _TYPES.get(column["kind"], "sc:Text"),
            "source": {"fileObject": {"@id": "synthetic.csv"}, "extract": {"column": column["name"]}},
        }
        for column in project["schema"]
        if column["kind"] != "identifier" or column.get("invented")
    ]
    made = {
        "@context": {
            "@language": "en",
            "@vocab": "https://schema.org/",
            "sc": "https://schema.org/",
            "cr": "http://mlcommons.org/croissant/",
            "conformsTo": "http://purl.org/dc/terms/conformsTo",
        },
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": project["name"],
        "description": f"Synthetic rows, no real person among them. {promise}",
        "datePublished": facts.get("date"),
        "version": "1.0.0",
        "isLiveDataset": False,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "synthetic.csv",
                "name": "synthetic.csv",
                "contentUrl": "synthetic.csv",
                "encodingFormat": "text/csv",
                "sha256": hashlib.sha256(table).hexdigest(),
            }
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}],
    }
    return (json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode()
