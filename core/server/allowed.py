"""A server's allow-list: the folders and the names of connections that stewards may open.

``ESPALIER_SERVER_TABLES`` lists them, separated by commas: absolute paths of folders, and ``env:NAME`` for a connection
whose URL is in the environment or the secrets. A path is resolved before it is compared, and the resolved path is
opened. A symbolic link that leads out of the allowed folders is therefore refused, wherever it is in the path. Every
file in an opened folder is resolved in the same way. Links may change at any moment, so the files that were opened are
then looked up again from the listed folders, without following links.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from espalier.core.errors import TableError
from espalier.core.limited_file import walked
from espalier.core.tables.frames import resolved
from espalier.core.tables.relation import Relation, is_url, open_relation

VARIABLE = "ESPALIER_SERVER_TABLES"
_REFUSED = (
    "This server does not allow that table. Name a file in a folder that its operator has listed, or a connection as "
    "env:NAME"
)


@dataclass(frozen=True)
class Allowed:
    """Resolved folders, and names of environment variables. ``wrong`` lists the entries that are neither."""

    folders: tuple[Path, ...] = ()
    connections: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything may be opened."""
        return bool(self.folders or self.connections)

    def place(self, where: str) -> str:
        """Return the resolved path or the connection to open for ``where``; raises :class:`TableError` if it is not
        allowed.

        Missing and forbidden files are refused with the same message, which reveals nothing about the server's other
        folders.
        """
        if where.startswith("env:"):
            if where[4:] not in self.connections:
                raise TableError(_REFUSED)
            return where
        if is_url(where) or "\0" in where or not os.path.isabs(where):
            raise TableError(_REFUSED)
        path = Path(os.path.realpath(where))
        if not self._holds(path) or not path.exists():
            raise TableError(_REFUSED)
        if path.is_dir():
            for folder, folders, files in walked(path):
                if not all(self._holds(Path(os.path.realpath(os.path.join(folder, n)))) for n in (*folders, *files)):
                    raise TableError("This folder contains a link that leads out of the allowed folders")
        return str(path)

    def new(self, where: str) -> str:
        """Return the resolved path of a folder to be created; raises :class:`TableError` if it is not allowed."""
        path = Path(os.path.realpath(where)) if os.path.isabs(where) and "\0" not in where else Path()
        if not path.is_absolute() or not self._holds(path):
            raise TableError(_REFUSED)
        return str(path)

    def open(self, where: str, relation: str | None) -> Relation:
        """Open a table that is allowed; raises :class:`TableError`."""
        place = self.place(where)
        opened = open_relation(resolved(place), relation)
        feed = opened.feed
        for path, state in zip(feed.files, feed.states, strict=True) if feed is not None else ():
            if state is None or self._identity(path) != (state.device, state.inode):
                raise TableError(_REFUSED)  # a link has replaced the file; from here on, the feed reads no other file
        return opened

    def _identity(self, path: Path) -> tuple[int, int] | None:
        """Return the device and inode numbers of the file at ``path`` in a listed folder; `None` if there is no such
        file. Each folder in the path is opened relative to its parent, and none of them may be a link.
        """
        real = Path(os.path.realpath(path))
        folder = next((folder for folder in self.folders if real == folder or folder in real.parents), None)
        if folder is None:
            return None
        try:
            if os.open not in os.supports_dir_fd:  # Windows
                return _numbers(real.lstat())
            *way, name = (str(folder), *real.relative_to(folder).parts)
            with ExitStack() as held:
                at: int | None = None
                for part in way:
                    at = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                    held.callback(os.close, at)
                return _numbers(os.stat(name, dir_fd=at, follow_symlinks=False))
        except OSError:
            return None

    def _holds(self, path: Path) -> bool:
        return any(path == folder or folder in path.parents for folder in self.folders)


def _numbers(of: os.stat_result) -> tuple[int, int]:
    return of.st_dev, of.st_ino


def allowed(environment: Mapping[str, str] = os.environ) -> Allowed:
    """Return the allow-list from this server's environment."""
    entries = [e.strip() for e in environment.get(VARIABLE, "").split(",") if e.strip()]
    names = [e[4:] for e in entries if e.startswith("env:") and e[4:]]
    paths = [e for e in entries if os.path.isabs(e) and os.path.realpath(e) != os.path.sep]
    wrong = [e for e in entries if e not in paths and not (e.startswith("env:") and e[4:])]
    return Allowed(tuple(Path(os.path.realpath(p)) for p in paths), tuple(names), tuple(wrong))
