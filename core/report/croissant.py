"""Machine-readable card of a release for dataset indexes: Croissant JSON-LD (MLCommons, version 1.0)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_TYPES = {"numeric": "sc:Float", "categorical": "sc:Text", "ordinal": "sc:Text", "date": "sc:Date"}


CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""Context of Croissant 1.0, with the vocabulary of its extension for responsible AI (RAI 1.0)."""


def card(facts: Mapping[str, Any], tables: Mapping[str, bytes], claims: Mapping[str, Any] | None = None) -> bytes:
    """Return the card from the facts of ``release.json``, the files of its tables, and the statement's ``claims``."""
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
            "source": {"fileObject": {"@id": file}, "extract": {"column": own}},
        }
        for column in project["schema"]
        if column["kind"] != "identifier" or column.get("invented")
        for file, own in _places(column["name"], tables)
    ]
    made = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": project["name"],
        "description": f"Synthetic rows without any real person. {promise}",
        "datePublished": facts.get("date"),
        "version": "1.0.0",
        "isLiveDataset": False,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "encodingFormat": "text/csv",
                "sha256": hashlib.sha256(table).hexdigest(),
            }
            for name, table in tables.items()
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}],
        **({} if claims is None else _responsible(claims)),
    }
    return (json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode()


def _places(name: str, tables: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Return the file of each column and its name in that file. In linked tables, a column's name begins with the
    table's name.
    """
    if len(tables) == 1:
        return [(file, name) for file in tables]
    found = [(file, file.removesuffix(".csv") + ".") for file in tables]
    return [(file, name.removeprefix(start)) for file, start in found if name.startswith(start)]


def _responsible(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the RAI properties: the origin of the rows, their protection, and the uses they are not suited to."""
    promise, unit = claims["guarantee"], claims["unit"]
    return {
        "rai:dataCollection": "No row was collected. All were drawn from a model fitted to noisy answers.",
        "rai:dataCollectionType": "Synthetic",
        "rai:dataManipulationProtocol": " ".join(claims["post_processing"]),
        "rai:personalSensitiveInformation": [
            promise["sentence"],
            f"{unit['sentence']} {unit['adjacent']}",
            *claims["not_protected"],
        ],
        "rai:dataLimitations": list(claims["assumed"]),
        "rai:dataUseCases": "Planning, teaching, and writing and testing code.",
        "rai:dataReleaseMaintenancePlan": "The table is not updated. Another release spends more budget.",
    }
