"""From a project and a table to the files that are handed over."""

from core.release.spend import Release, Released, load_release, release

__all__ = ["Release", "Released", "load_release", "release"]
