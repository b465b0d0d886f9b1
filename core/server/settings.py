"""Table of every environment variable that Espalier reads, shared by the documents, the doctor and a test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from espalier.core.errors import EspalierError

PREFIX = "ESPALIER_"


@dataclass(frozen=True)
class Setting:
    """An environment variable: its name, its reader, its default as text, and its meaning."""

    name: str
    read_by: str
    default: str
    meaning: str


SETTINGS = (
    Setting("ESPALIER_LEDGER", "all", "in the user's data folder", "the ledger: a SQLite file or a PostgreSQL URL"),
    Setting("ESPALIER_LEDGER_KEY", "all", "next to the ledger", "the key file of the ledger's fingerprints"),
    Setting("ESPALIER_SHARED", "app", "in the user's data folder", "the folder of shared releases"),
    Setting("ESPALIER_SIGNING_KEY", "all", "none: unsigned", "the private key that signs each release's statement"),
    Setting("ESPALIER_KEY_PASSPHRASE", "all", "none", "the passphrase of that key"),
    Setting(
        "ESPALIER_SERVER_TABLES",
        "app",
        "none: uploads only",
        "folders and `env:NAME` entries that stewards may open on the server, separated by commas",
    ),
    Setting("ESPALIER_JOBS", "app", "2", "jobs that run at the same time"),
    Setting("ESPALIER_JOB_MEMORY", "app", "4096", "memory limit of each release, in MB"),
    Setting("ESPALIER_JOB_DISK", "app", "20480", "maximum size of each temporary file of a release, in MB"),
    Setting("ESPALIER_JOB_MINUTES", "app", "30", "maximum running time of each job, in minutes"),
    Setting("ESPALIER_DRAIN", "app", "120", "seconds that a stopping server waits for running jobs"),
    Setting(
        "ESPALIER_AUDIT_LOG",
        "app",
        "none: standard error",
        "file to which events are appended, one JSON object per line",
    ),
    Setting("ESPALIER_AUDIT_NAMES", "app", "0", "if 1, events name tables, files and columns"),
    Setting(
        "ESPALIER_STATEMENT_SECONDS", "all", "3600", "maximum running time of a statement in PostgreSQL, in seconds"
    ),
    Setting("ESPALIER_PICTURES", "tests", "none", "folder for screenshots from the browser tests"),
    Setting("ESPALIER_REPEAT", "tests", "300", "repetitions of each test that draws noise, in `.ci/nightly`"),
    Setting("ESPALIER_REPEAT_FOR", "tests", "no limit", "maximum time, in seconds, for repeating one test"),
    Setting("ESPALIER_LARGE", "tests", "0", "if 1, `.ci/nightly` adds tables of 10⁸ rows"),
)

NUMBERS = (
    *("ESPALIER_JOBS", "ESPALIER_JOB_MEMORY", "ESPALIER_JOB_DISK", "ESPALIER_JOB_MINUTES", "ESPALIER_DRAIN"),
    "ESPALIER_STATEMENT_SECONDS",
)
"""Settings that are whole numbers of at least 1."""


def number(name: str, environment: Mapping[str, str] = os.environ) -> int:
    """Return a setting that is a whole number of at least 1; raises :class:`EspalierError`."""
    setting = next(s for s in SETTINGS if s.name == name)
    text = environment.get(name) or setting.default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10**9:
        raise EspalierError(f"the environment variable {name} must be a whole number of at least 1")
    return int(text)


OF_THE_KIT = {"ESPALIER_HOST", "ESPALIER_NAME"}
"""Variables that only the files of the deployment kit read, such as the server's public name."""


def unknown(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return variables with Espalier's prefix that Espalier does not read; they are probably misspelt."""
    known = {s.name for s in SETTINGS} | OF_THE_KIT
    return sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
