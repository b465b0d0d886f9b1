"""``espalier app``: start the app in the browser."""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import sys
from pathlib import Path
from typing import Any

import espalier
from espalier.core.cli.number_types import whole
from espalier.core.errors import EspalierError, wheel_with

NEEDED = ("streamlit", "pyvis", "plotly")


def add(commands: Any) -> None:
    """Declare the command."""
    app = commands.add_parser("app", help="start the app in the browser, for this machine only")
    app.add_argument("--port", type=whole, help="default: the first free port at or above 8501")
    app.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")
    app.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Run the app. Its settings are in ``.streamlit`` next to its script.

    Secrets are read from there and from the user's home, and not from the current folder, which someone else may have
    made: Streamlit turns them into environment variables.
    """
    need_extra()
    options = [f"--server.port={opt.port}"] if opt.port is not None else []
    settings = (_folder() / ".streamlit" / "config.toml").resolve().parent  # in a checkout, a link leads to them
    options += [f"--secrets.files={one / 'secrets.toml'}" for one in (Path.home() / ".streamlit", settings)]
    start(*options, *(["--server.headless=true"] if opt.no_browser else []))


def need_extra() -> None:
    """Raise :class:`EspalierError` if a library of the app is missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EspalierError(
            f"The app needs {', '.join(missing)}, from the extra [app]. {wheel_with('app')}", extra="app"
        )


def start(*options: str) -> None:
    """Run Streamlit's own command with the app's script and further options."""
    sys.argv = ["streamlit", "run", str(_folder() / "app.py"), *options]
    runpy.run_module("streamlit", run_name="__main__")


def _folder() -> Path:
    """Return the folder of the app's script: in a checkout without symbolic links, the root of the checkout."""
    return Path(espalier.__path__[-1])
