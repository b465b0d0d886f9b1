"""Release: spend a plan's budget on a private table, and write the files."""

from espalier.core.analysis.loading import Released, load_release
from espalier.core.release.artefact import Release
from espalier.core.release.spend import release

__all__ = ["Release", "Released", "load_release", "release"]
