"""Records the library versions under which the reader tests passed: `python -m tests.support.reader_versions`.

It runs the row-by-row test and the noninterference test, and writes ``tests/tables/reader_versions.json`` if both pass.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests" / "tables" / "reader_versions.json"
TESTS = ("tests/tables/test_row_by_row.py", "tests/test_noninterference.py")
LIBRARIES = (
    "pyarrow",
    "duckdb",
    "ibis-framework",
    "sqlglot",
    "opendp",
    "numpy",
    "pandas",
    "scipy",
    "openpyxl",
    "pyreadstat",
    "psycopg",
    "pymysql",
    "pyspark",
)
"""Libraries that touch private rows."""


def installed() -> dict[str, str]:
    """Return the version of each library that is installed here."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main() -> int:
    """Run the tests, and record the versions if they pass."""
    tests = [name for name in TESTS if (ROOT / name).is_file()]
    status = subprocess.run([sys.executable, "-m", "pytest", *tests], cwd=ROOT, check=False).returncode
    if status == 0:
        recorded = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
        RECORD.write_text(json.dumps({**recorded, **installed()}, indent=1) + "\n")
        print(f"{RECORD.relative_to(ROOT)} is written. Put the same versions in requirements*.txt.")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
