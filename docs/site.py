"""Build the documentation site: `python -m docs.site [FOLDER]` writes HTML that opens from a file, without a server."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(folder: Path) -> int:
    """Write the site into ``folder``; a warning, such as a broken link, fails. Returns Sphinx's exit status."""
    from sphinx.cmd.build import build_main

    return build_main(["-q", "-W", "--keep-going", "-c", str(ROOT / "docs"), "-b", "html", str(ROOT), str(folder)])


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    status = build(out)
    if status == 0:
        print(out / "docs" / "index.html")
    sys.exit(status)
