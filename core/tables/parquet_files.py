"""Parquet files as rows to encode. PyArrow reads one file, or all files of a folder, each with its own types.

The list of files is made once, when the table is opened. No query engine reads the files, and no statistics stored in a
file are used. Files of a folder may differ in columns that a release does not read, but a column that it reads must
have one type in all files.

A folder named ``year=2024`` below the table's folder gives its files a text column ``year`` whose cells are ``2024``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from espalier.core.errors import TableError
from espalier.core.limited_file import walked
from espalier.core.tables.arrow_text import value_type
from espalier.core.tables.parquet_pages import check_pages, opened
from espalier.core.tables.text_table import check_names
from espalier.core.tables.unpacking import Facts, open_ordinary, state, unshared

BATCH_ROWS, BATCH_CELLS = 1 << 18, 1 << 23
"""Maximum number of rows, and of cells, in a batch."""
PLACES, PLACE_ROWS = 20, 1 << 12
"""Number of places of a sample, and of rows at each place."""
SUFFIX = ".parquet"
HOLDING = (b"PAR1", b"PARE", b"\x1f\x8b")
"""First bytes of files that may hold rows of a table: Parquet, Parquet with an encrypted footer, and gzip."""
FOOTERS = ("_metadata", "_common_metadata")
"""Names of files without rows that programs write into the folder of a table."""
LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders with the list of the files that hold a table's current rows."""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Folder name that Hive and Spark use for rows whose partition column is null."""


@dataclass(frozen=True)
class _File:
    """A file with its Arrow schema, its number of rows, and the cells that its folder names state.

    ``longest`` is the result of :func:`espalier.core.tables.parquet_pages.check_pages` for the file in this ``state``.
    """

    path: Path
    types: Any
    rows: int
    folders: tuple[tuple[str, str], ...]
    longest: int
    state: Facts


class ParquetFiles:
    """Rows of a Parquet file, or of a folder's Parquet files, as a feed (`espalier.core.tables.relation.Feed`)."""

    unclear = frozenset[str]()

    def __init__(self, path: Path) -> None:
        """List the files and read their footers. Raise :class:`TableError` if they are not a table."""
        self._path, self._shown = path, str(path)
        if not path.is_dir():
            check_logs(path)
        found = _listed(path) if path.is_dir() else [path]
        self._files = [_footer(file, path if path.is_dir() else file.parent) for file in found]
        self.files = tuple(found)
        """Files to read."""
        self.states = tuple(file.state for file in self._files)
        first = self._files[0]
        for file in self._files:
            if [name for name, _ in file.folders] != [name for name, _ in first.folders]:
                raise TableError(
                    f"{self._shown}: the folders of {_in(file.path, path)} and of {_in(first.path, path)} name "
                    "different columns; use the same folder levels for each file, such as year=2024"
                )

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the first file's columns."""
        first = self._files[0]
        return {field.name: str(value_type(field.type)) for field in first.types} | {
            name: "string" for name, _ in first.folders
        }

    @property
    def rows(self) -> int:
        """Number of rows according to the footers; used for progress only."""
        return sum(file.rows for file in self._files)

    def schema(self, names: Sequence[str]) -> Any:
        """Return the Arrow schema of these columns. Raise :class:`TableError` if files disagree on a column."""
        import pyarrow as pa

        first, folders = self._files[0], dict(self._files[0].folders)
        kinds = {name: pa.string() if name in folders else _type(first.types, name) for name in names}
        for file in self._files[1:]:
            for name in names:
                if name in folders:
                    continue
                where = f"{self._shown}: column {name!r}"
                if name not in file.types.names:
                    raise TableError(
                        f"{where} is missing from the file {file.path.name}, but is in {first.path.name}; write all "
                        "files with the same columns",
                        column=name,
                    )
                if (kind := _type(file.types, name)) != kinds[name]:
                    raise TableError(
                        f"{where} is {kind} in the file {file.path.name}, but {kinds[name]} in {first.path.name}; "
                        "write all files with the same type",
                        column=name,
                    )
        return pa.schema(list(kinds.items()))

    def batches(self, names: Sequence[str], most: int | None = None) -> Generator[Any]:  # noqa: ARG002
        """Yield the columns ``names`` of all rows, file by file; refuse a file that was added to the folder in the
        meantime.
        """
        for file in self._files:
            yield from _batches(file, names)
        if self._path.is_dir() and tuple(_listed(self._path)) != self.files:
            raise TableError(f"{self._shown} changed while it was being read; start again after it has been written")

    def spread(self, names: Sequence[str], rows: int) -> Generator[Any]:  # noqa: ARG002
        """Yield `PLACE_ROWS` rows at each of `PLACES` places, which are spread evenly over all files."""
        total = self.rows or 0
        wanted, start = [int((i + 0.5) / PLACES * total) for i in range(PLACES)], 0
        for file in self._files:
            inside = [at - start for at in wanted if start <= at < start + file.rows]
            start, done = start + file.rows, 0
            for batch in _batches(file, names, PLACE_ROWS) if inside else ():
                while inside and inside[0] < done:
                    inside.pop(0)
                done += batch.num_rows
                if inside and inside[0] < done:
                    yield batch
                if not inside or inside[-1] < done:
                    break

    def statements(self, names: Sequence[str]) -> list[str]:
        """Return an SQL comment that lists the columns read; without an engine there are no statements."""
        files = f"{len(self.files):,} Parquet files" if len(self.files) > 1 else "the Parquet file"
        return [f"-- Espalier reads these columns of {files} in batches: {', '.join(map(repr, names))}"]

    def close(self) -> None:
        """Do nothing, because no file stays open."""


def _listed(folder: Path) -> list[Path]:
    """Return the Parquet files in a folder and its subfolders, sorted by name."""
    found = list[Path]()
    check_logs(folder)
    for where, folders, names in walked(folder, _unreadable):
        for file in (Path(where, name) for name in names):
            if _is_part(file.name):
                found.append(file)
            elif file.name not in FOOTERS and _start(file).startswith(HOLDING):
                raise TableError(
                    f"the folder {folder} contains {_in(file, folder)}, a Parquet or gzip file whose name does not end "
                    f"in {SUFFIX}. Its rows would be left out; unpack it, rename it, or remove it",
                    path=str(folder),
                )
        _check_log(folder, Path(where))
        if Path(where) != folder and "release.json" in names and any(_is_part(name) for name in names):
            raise TableError(
                f"the folder {folder} contains {_in(Path(where), folder)}, a release, whose synthetic rows would be "
                "read as rows of the table. Move it elsewhere",
                path=str(folder),
            )
        for name in folders:
            if (inside := Path(where, name)).is_symlink():
                raise TableError(
                    f"the folder {folder} contains {_in(inside, folder)}, a link to another folder. Its rows would be "
                    "left out; replace the link with the folder",
                    path=str(folder),
                )
    found.sort()
    if not found:
        raise TableError(f"cannot read the folder {folder}: it contains no Parquet file", path=str(folder))
    for file in found:
        if not file.is_file():
            raise TableError(f"cannot read {file}: it is a broken link or a pipe; remove it", path=str(folder))
        if any(part[0] in "._" and "=" not in part for part in file.relative_to(folder).parts):
            raise TableError(
                f"the folder {folder} contains {_in(file, folder)}: names with a leading '.' or '_' usually mark "
                "unfinished files. Remove it, or rename it if it belongs to the table",
                path=str(folder),
            )
    return found


def check_logs(path: Path) -> None:
    """Refuse a file or folder if a folder above it contains a list of the files that hold a table's current rows."""
    for above in path.absolute().parents:
        _check_log(path, above)


def _check_log(path: Path, where: Path) -> None:
    """Refuse ``path`` if ``where`` contains a list of the files that hold a table's current rows."""
    kinds = [kind for name, kind in LOGS.items() if (where / name).is_dir()]
    if any((where / "metadata").glob("*.metadata.json")):
        kinds.append("Iceberg")
    if kinds:
        raise TableError(
            f"{path} belongs to a {kinds[0]} table, whose files also contain rows that have since been changed or "
            "deleted. Write its current rows into new Parquet files",
            path=str(path),
        )


def is_parquet(path: Path) -> bool:
    """Return whether ``path`` is an ordinary file that begins like a Parquet file."""
    return _start(path) == b"PAR1"


def _start(path: Path) -> bytes:
    """Return the first four bytes of an ordinary file; no bytes of anything else."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(4)


def _is_part(name: str) -> bool:
    return Path(name).suffix.lower() == SUFFIX


def _unreadable(error: OSError) -> None:
    raise TableError(f"cannot read {error.filename}: {error.strerror}", path=str(error.filename)) from None


def _in(file: Path, folder: Path) -> str:
    return str(file.relative_to(folder)) if file != folder else file.name


def _footer(path: Path, root: Path) -> _File:
    with _open(path, ()) as (source, file):
        types, rows, now = file.schema_arrow, file.metadata.num_rows, state(source)
        longest = check_pages(source, file.metadata, str(path))
    try:
        folders = tuple(_cell(part) for part in path.relative_to(root).parts[:-1] if "=" in part)
    except UnicodeDecodeError:
        raise TableError(
            f"cannot read {path}: the name of its folder is not UTF-8; rename it", path=str(path)
        ) from None
    check_names([*types.names, *(name for name, _ in folders)], str(path))
    return _File(path, types, rows, folders, longest, now)


def _cell(folder: str) -> tuple[str, str]:
    name, _, value = folder.partition("=")
    return unquote(name, errors="strict"), "" if value == NO_VALUE else unquote(value, errors="strict")


@contextmanager
def _open(path: Path, texts: Sequence[str]) -> Iterator[tuple[IO[bytes], Any]]:
    """Open a Parquet file; return the file and PyArrow's reader for it. PyArrow gets an open file, because a path such
    as file:/a may look like the URL of another file, and because the file might be replaced. A column in ``texts`` is
    read as a dictionary, which stores repeated text once.
    """
    with _whole(path):
        source = open_ordinary(path)
    with source:
        with _whole(path):
            reader = opened(source, read_dictionary=list(texts), coerce_int96_timestamp_unit="us")
        with reader:
            yield source, reader


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Raise :class:`TableError` for a file that cannot be opened."""
    import pyarrow as pa

    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise TableError(f"cannot read {path}: {error.strerror}", path=str(path)) from None
        raise TableError(f"{path} is a damaged Parquet file") from None
    except (pa.ArrowException, ValueError):
        raise TableError(f"{path} is a damaged Parquet file") from None


def _batches(file: _File, names: Sequence[str], most: int = BATCH_ROWS) -> Generator[Any]:
    import pyarrow as pa

    folders = dict(file.folders)
    stored = [name for name in names if name not in folders]
    texts = [name for name in stored if pa.types.is_string(_type(file.types, name))]
    done = 0
    for listed in [[]] if file.longest else [texts, []]:  # Arrow cannot read every encoding as a dictionary
        with _open(file.path, listed) as (source, reader):
            start = 0
            if state(source) != file.state:
                raise TableError(f"{file.path} was changed after it was opened; open it again")
            try:
                if listed == texts and not file.longest:
                    size = max(1, min(most, BATCH_CELLS // max(len(stored), 1)))
                    batches = reader.iter_batches(size, columns=stored)
                else:
                    batches = unshared(reader, file.longest, file.state.size, str(file.path), stored)
                for batch in batches:
                    skipped, start = min(max(done - start, 0), batch.num_rows), start + batch.num_rows
                    if rows := batch.num_rows - skipped:
                        done += rows
                        part = batch.slice(skipped) if skipped else batch
                        yield pa.record_batch(
                            {n: _repeated(folders[n], rows) if n in folders else part.column(n) for n in names}
                        )
                return
            except (pa.ArrowException, OSError, ValueError):  # the text of the error may quote a cell
                if not listed:
                    raise TableError(f"{file.path} is a damaged Parquet file") from None


def _type(types: Any, name: str) -> Any:
    return value_type(types.field(name).type)


def _repeated(text: str, rows: int) -> Any:
    """Return a column with one text in every row, or null if the text is empty."""
    import pyarrow as pa

    if not text:
        return pa.nulls(rows, pa.string())
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([text]))
