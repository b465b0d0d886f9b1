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
    app.add_argument("--port", type=whole, help="default: the first free one from 8501 on")
    app.add_argument("--no-browser", action="store_true", help="only print the address")
    app.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Run Streamlit's own command with the app's script. Its settings are in ``.streamlit`` next to the script."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EspalierError(f"The app needs {', '.join(missing)}: the extra [app]. {wheel_with('app')}", extra="app")
    folder = Path(espalier.__path__[-1])  # in a clone without symbolic links the clone's root, with its own script
    command = ["streamlit", "run", str(folder / "app.py")]
    if opt.port is not None:
        command.append(f"--server.port={opt.port}")
    if opt.no_browser:
        command.append("--server.headless=true")
    sys.argv = command
    runpy.run_module("streamlit", run_name="__main__")
