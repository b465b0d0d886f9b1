"""Write the generated files of the kit: ``python -m deploy.kit``.

- ``ledger-roles.sql``, ``ledger-tables.sql``: from the ledger's own tables;
- ``requirements.lock``: the part of the clone's hashed lock that the app, the formats and PostgreSQL need on Linux;
- ``sbom.json``: the same packages as CycloneDX 1.6; the lock has the hashes of their files;
- ``../docs/environment.md``: every environment variable.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from espalier import __version__
from espalier.core.ledger.grants import ROLES, tables_sql
from espalier.core.server.settings import SETTINGS

HERE = Path(__file__).parent
ROOT = HERE.parent
NEEDS = ("requirements.txt", "requirements-postgres.txt")


def locked() -> dict[str, str]:
    """Return the lines of the clone's lock by package."""
    text = (ROOT / "requirements.lock").read_text("utf-8")
    blocks = re.findall(r"(?m)^([A-Za-z0-9._-]+)==((?:.*\\\n)*.*)$", text)
    return {canonicalize_name(name): f"{name}=={rest}" for name, rest in blocks}


def needed() -> list[str]:
    """Return the packages that a server needs, with their dependencies."""
    waiting = [line for file in NEEDS for line in (ROOT / file).read_text("utf-8").splitlines() if line.strip()]
    found: set[tuple[str, str]] = set()
    work = [Requirement(line) for line in waiting if not line.startswith(("-", "#"))]
    while work:
        asked = work.pop()
        name = canonicalize_name(asked.name)
        for extra in ("", *asked.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            for text in importlib.metadata.requires(name) or ():
                further = Requirement(text)
                if further.marker is None or further.marker.evaluate({"extra": extra}):
                    work.append(further)
    return sorted({name for name, _ in found})


def lock() -> str:
    """Return the hashed lock of a server."""
    lines = locked()
    head = "# Written by python -m deploy.kit: the part of ../requirements.lock that a server needs.\n"
    return head + "".join(lines[name] + "\n" for name in needed())


def sbom() -> dict[str, Any]:
    """Return the bill of materials, CycloneDX 1.6."""
    lines = locked()
    components = []
    for name in needed():
        version = re.match(r"[^=]+==([^\s;\\]+)", lines[name])[1]  # type: ignore[index]
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
        }
        if licence := _licence(name):
            component["licenses"] = [licence]
        components.append(component)
    us = f"pkg:generic/espalier-tables@{__version__}"
    subject = {"type": "application", "bom-ref": us, "name": "espalier-tables", "version": __version__}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**subject, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": us, "dependsOn": [c["bom-ref"] for c in components]}],
    }


def _licence(name: str) -> dict[str, Any] | None:
    """Return the licence that an installed package declares, as an expression or a short name."""
    declared: Any = importlib.metadata.metadata(name)
    if expression := declared.get("License-Expression"):
        return {"expression": expression}
    kinds = [c.split(" :: ")[-1] for c in declared.get_all("Classifier", []) if c.startswith("License ::")]
    text = kinds[0] if kinds else (declared.get("License") or "").strip()
    return {"license": {"name": text}} if text and len(text) < 80 else None


def environment() -> str:
    """Return the page of environment variables."""
    rows = [f"| `{s.name}` | {s.read_by} | {s.default} | {s.meaning} |" for s in SETTINGS]
    return "\n".join(
        [
            "# Environment variables",
            "",
            "`python -m deploy.kit` generates this page from `core/server/settings.py`. Espalier reads no other",
            "variables with the prefix `ESPALIER_`, and `espalier doctor` reports unknown ones.",
            "",
            "| variable | read by | default | meaning |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            "`TMPDIR` is the folder in which encoded rows are stored temporarily. `env:NAME` reads the URL of a table",
            "from the variable `NAME`.",
            "",
        ]
    )


def files() -> dict[Path, str]:
    """Return the generated files and their texts."""
    return {
        HERE / "ledger-roles.sql": ROLES,
        HERE / "ledger-tables.sql": tables_sql(),
        HERE / "requirements.lock": lock(),
        HERE / "sbom.json": json.dumps(sbom(), indent=1) + "\n",
        ROOT / "docs" / "environment.md": environment(),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, "utf-8")
