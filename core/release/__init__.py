"""From a project and a table to the files that are handed over."""

from espalier.core.release.artefact import Release
from espalier.core.release.loading import Released, load_release
from espalier.core.release.planning import Preview, preview
from espalier.core.release.spend import release

__all__ = ["Preview", "Release", "Released", "load_release", "preview", "release"]
