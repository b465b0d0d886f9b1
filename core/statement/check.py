"""Result of the independent checker as one sentence."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from espalier.verifier.check import verify
from espalier.verifier.folder import Unreadable


def checked_folder(folder: Path) -> tuple[bool, str]:
    """Return whether a release folder passes all applicable checks, and a sentence that states the result."""
    try:
        found = verify(folder)
    except Unreadable as error:
        return False, f"The release cannot be checked: {error}."
    failed = [f for f in found if f.holds is False]
    if failed:
        count = f"{len(failed)} check{'s' * (len(failed) > 1)} of the release fail{'s' * (len(failed) == 1)}"
        return False, f"{count}: {failed[0].text}. Run `espalier verify` on its folder, and contact its publisher."
    signed = next((f.text for f in found if f.check == 1 and "signed" in f.text), "not signed")
    untested = "; ".join(f.text for f in found if f.holds is None and f.check in (3, 4))
    return True, f"Checked: the release passes all checks that apply ({signed}{f'; {untested}' if untested else ''})."


def checked_files(files: Mapping[str, bytes]) -> tuple[bool, str]:
    """Return the result of `checked_folder` for the files of a release."""
    with tempfile.TemporaryDirectory() as place:
        for name, data in files.items():
            path = Path(place) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return checked_folder(Path(place))
