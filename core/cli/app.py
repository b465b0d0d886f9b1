"""``espalier app``: start the app in the browser."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import runpy
import sys
from pathlib import Path
from typing import Any

import espalier
from espalier.core.cli.number_types import whole
from espalier.core.errors import EspalierError, wheel_with
from espalier.core.server import doors

NEEDED = ("streamlit", "pyvis", "plotly")


def add(commands: Any) -> None:
    """Declare the command."""
    app = commands.add_parser("app", help="start the app in the browser, for this machine only")
    app.add_argument("--port", type=whole, help="port of the app (default: the first free port at or above 8501)")
    app.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")
    app.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Run the app."""
    need_extra()
    options = [f"--server.port={opt.port}"] if opt.port is not None else []
    start(*options, *(["--server.headless=true"] if opt.no_browser else []))


def need_extra() -> None:
    """Raise :class:`EspalierError` if a library of the app is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EspalierError(
            f"The app needs {', '.join(missing)}, from the extra [app]. {wheel_with('app')}", extra="app"
        )


def start(*options: str, secrets: Path | None = None) -> None:
    """Run Streamlit's command with the app's script and further options.

    Settings are read from the user's home and from ``.streamlit`` next to the app's script, and so are secrets, unless
    their file is named. Neither is read from the current folder, which may belong to someone else: settings could give
    other websites access to the app, and Streamlit turns secrets into environment variables.
    """
    settings = (_folder() / ".streamlit" / "config.toml").resolve().parent  # in a checkout, this file is a link
    files: Any = importlib.import_module("streamlit.file_util")
    files.get_project_streamlit_file_path = lambda *names: str(settings.joinpath(*names))
    kept = [secrets] if secrets else [one / "secrets.toml" for one in (Path.home() / ".streamlit", settings)]
    options = (*options, *(f"--secrets.files={one}" for one in kept))
    doors.close()
    sys.argv = ["streamlit", "run", str(_folder() / "app.py"), *options]
    runpy.run_module("streamlit", run_name="__main__")


def _folder() -> Path:
    """Return the folder of the app's script: the root of the checkout, in a checkout without symbolic links."""
    return Path(espalier.__path__[-1])
