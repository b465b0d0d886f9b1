"""Spending a plan's budget on a private table, and the files handed over."""

from core.release.artefact import Release, Released, load_release
from core.release.spend import release

__all__ = ["Release", "Released", "load_release", "release"]
