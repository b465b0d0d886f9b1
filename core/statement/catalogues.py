"""Exports of a statement in the vocabularies of data catalogues: DCAT with HealthDCAT-AP, W3C DPV, and SPDX 3, all as
JSON-LD.

They are written outside the release folder, from a finished statement with the digests of its files.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from espalier.core.statement.claims import canonical

Statement = Mapping[str, Any]
_TYPES = {
    "csv": ("text/csv", "CSV"),
    "json": ("application/json", "JSON"),
    "html": ("text/html", "HTML"),
    "parquet": ("application/vnd.apache.parquet", "PARQUET"),
    "yaml": ("application/yaml", "YAML"),
}
_FILE_TYPES = "http://publications.europa.eu/resource/authority/file-type/"
_THEME = "http://publications.europa.eu/resource/authority/data-theme/"


def address(statement: Statement) -> str:
    """Return the identifier of the release, which is the digest of its statement as a URN."""
    return f"urn:sha256:{hashlib.sha256(canonical(statement)).hexdigest()}"


def dcat(statement: Statement) -> dict[str, Any]:
    """Return the release as a DCAT dataset with the properties of HealthDCAT-AP."""
    made = statement["release"]
    return {
        "@context": {
            "dcat": "http://www.w3.org/ns/dcat#",
            "dct": "http://purl.org/dc/terms/",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "adms": "http://www.w3.org/ns/adms#",
            "spdx": "http://spdx.org/rdf/terms#",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
            "healthdcatap": "http://healthdataportal.eu/ns/health#",
            "dpv": "https://w3id.org/dpv#",
        },
        "@id": address(statement),
        "@type": "dcat:Dataset",
        "dct:title": {"@value": made["name"], "@language": "en"},
        "dct:description": {"@value": _description(statement), "@language": "en"},
        "dct:identifier": address(statement),
        "dct:issued": {"@value": made["date"], "@type": "xsd:date"},
        "dct:publisher": {"@type": "foaf:Agent", "foaf:name": _who(statement)},
        "dct:accessRights": {"@id": "http://publications.europa.eu/resource/authority/access-right/PUBLIC"},
        "dct:provenance": {"@type": "dct:ProvenanceStatement", "dct:description": _promise(statement)},
        "dcat:keyword": ["synthetic data", "differential privacy"],
        "dcat:theme": {"@id": f"{_THEME}TECH"},
        "healthdcatap:numberOfRecords": {"@value": str(made["rows"]), "@type": "xsd:nonNegativeInteger"},
        "dpv:hasTechnicalMeasure": {"@id": "dpv:DifferentialPrivacy"},
        "dcat:distribution": [
            {
                "@type": "dcat:Distribution",
                "dct:title": name,
                "dcat:accessURL": {"@id": f"{address(statement)}#{name}"},
                "dcat:downloadURL": {"@id": f"{address(statement)}#{name}"},
                "dcat:mediaType": _media(name),
                **({"dct:format": {"@id": _FILE_TYPES + kind}} if (kind := _kind(name)) else {}),
                "dcat:byteSize": {"@value": str(facts["bytes"]), "@type": "xsd:nonNegativeInteger"},
                "spdx:checksum": {
                    "@type": "spdx:Checksum",
                    "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
                    "spdx:checksumValue": {"@value": facts["sha256"], "@type": "xsd:hexBinary"},
                },
            }
            for name, facts in statement["files"].items()
        ],
    }


def dpv(statement: Statement) -> dict[str, Any]:
    """Return a W3C DPV description of the processing: the measure, its parameters, and the protected unit."""
    private = statement["private"]
    made: dict[str, Any] = {
        "@context": {
            "dpv": "https://w3id.org/dpv#",
            "tech": "https://w3id.org/dpv/tech#",
            "dct": "http://purl.org/dc/terms/",
        },
        "@id": address(statement),
        "@type": "dpv:Process",
        "dct:title": statement["release"]["name"],
        "dpv:hasProcessing": [{"@id": "dpv:Derive"}, {"@id": "dpv:MakeAvailable"}],
        "dpv:hasData": {
            "@type": "dpv:SyntheticData" if private else "dpv:PersonalData",
            "dct:description": _description(statement),
        },
    }
    if private:
        promise, unit = statement["guarantee"], statement["unit"]
        made["dpv:hasTechnicalMeasure"] = {
            "@type": "dpv:DifferentialPrivacy",
            "dct:description": f"{promise['sentence']} {unit['sentence']} {unit['adjacent']}",
        }
        made["dpv:hasLimitation"] = list(statement["not_protected"])
        made["dpv:hasAssumption"] = list(statement["assumed"])
    return made


def spdx(statement: Statement) -> dict[str, Any]:
    """Return the release as an SPDX 3.0.1 dataset package with its files."""
    made, root = statement["release"], address(statement)
    space = f"https://spdx.org/spdxdocs/{uuid.uuid5(uuid.NAMESPACE_URL, root)}"
    creation = "_:creation"

    def element(kind: str, mark: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "spdxId": f"{space}#{mark}", "creationInfo": creation, **more}

    files = [
        element(
            "software_File",
            f"file-{i}",
            name=name,
            verifiedUsing=[{"type": "Hash", "algorithm": "sha256", "hashValue": facts["sha256"]}],
        )
        for i, (name, facts) in enumerate(statement["files"].items(), 1)
    ]
    who = element("Agent", "creator", name=_who(statement))
    package = element(
        "dataset_DatasetPackage",
        "dataset",
        name=made["name"],
        description=_description(statement),
        builtTime=f"{made['date']}T00:00:00Z",
        releaseTime=f"{made['date']}T00:00:00Z",
        originatedBy=[who["spdxId"]],
        software_primaryPurpose="data",
        software_packageVersion=root,
        software_downloadLocation=root,
        dataset_datasetType=["structured"],
        dataset_datasetAvailability="directDownload",
        dataset_datasetSize=sum(f["bytes"] for f in statement["files"].values()),
        dataset_hasSensitivePersonalInformation="no" if statement["private"] else "yes",
        dataset_anonymizationMethodUsed=[_promise(statement)],
        dataset_dataCollectionProcess="Drawn from a model that was fitted to noisy answers.",
        dataset_intendedUse="To be stated by the curator.",
    )
    contains = element("Relationship", "contains", relationshipType="contains", to=[f["spdxId"] for f in files]) | {
        "from": package["spdxId"]
    }
    document = element(
        "SpdxDocument", "document", rootElement=[package["spdxId"]], profileConformance=["core", "software", "dataset"]
    )
    info = {
        "type": "CreationInfo",
        "@id": creation,
        "specVersion": "3.0.1",
        "created": f"{made['date']}T00:00:00Z",
        "createdBy": [who["spdxId"]],
    }
    return {
        "@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld",
        "@graph": [info, who, document, package, *files, contains],
    }


EXPORTS: Mapping[str, Callable[[Statement], dict[str, Any]]] = {"dcat": dcat, "dpv": dpv, "spdx": spdx}


def dumps(made: Mapping[str, Any]) -> str:
    """Return an export as the text of a file."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _description(statement: Statement) -> str:
    made = statement["release"]
    if not statement["private"]:
        return str(statement["sentence"])
    return f"{made['rows']:,} synthetic rows in {len(made['columns'])} columns. No row is a real person."


def _promise(statement: Statement) -> str:
    if not statement["private"]:
        return str(statement["sentence"])
    return f"{statement['guarantee']['sentence']} {statement['unit']['sentence']}"


def _who(statement: Statement) -> str:
    return str((statement.get("approved") or {}).get("approved_by") or "not named")


def _media(name: str) -> str:
    return _TYPES.get(name.rpartition(".")[2], ("application/octet-stream", ""))[0]


def _kind(name: str) -> str:
    return _TYPES.get(name.rpartition(".")[2], ("", ""))[1]
