"""A release as one zip file: what it may hold, and how it is opened."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Sequence

from core.errors import ProjectError

MODEL = "model.npz"
FILES = ("synthetic.csv", "report.html", "release.json", "project.json", MODEL)
"""What a release hands over; the model only where it may be written."""


def unpacked(data: bytes, names: Sequence[str] = FILES) -> dict[str, bytes]:
    """Files of a zipped release by ``names``; raises :class:`ProjectError` unless it holds :data:`FILES` exactly.

    The model may be missing where ``release.json`` says that there is none. Whoever takes a release writes its files
    under these names, so no other name may come out of an archive: an absolute one, or one that leads out of the
    folder, would let whoever packed it write anywhere.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as held:
            found = [info.filename for info in held.infolist()]
            expected = FILES if MODEL in found else tuple(name for name in FILES if name != MODEL)
            odd = sorted(set(found) ^ set(expected))
            if len(set(found)) < len(found):
                odd.append("one of them twice")
            if not odd and MODEL not in found and json.loads(held.read("release.json")).get("model", MODEL) is not None:
                odd.append(MODEL)
            if odd:
                raise ProjectError(f"it does not hold the files of a release ({odd[0]!r})")
            return {name: held.read(name) for name in names if name in found}
    except (OSError, AttributeError, ValueError, EOFError, NotImplementedError, RuntimeError, zlib.error,
            zipfile.BadZipFile):  # fmt: skip
        raise ProjectError("it is damaged, or no archive") from None
