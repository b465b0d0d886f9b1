"""``espalier serve``: the app for several people, behind a proxy that terminates TLS."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import pkgutil
import signal
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from espalier import core
from espalier.core.cli import app
from espalier.core.cli.number_types import whole
from espalier.core.errors import EspalierError
from espalier.core.server import events
from espalier.core.server.settings import number

WORKS_IN = "ESPALIER_DRAIN"
LIBRARIES = (
    "duckdb",
    "fairlearn.metrics",
    "ibis",
    "networkx",
    "opendp.prelude",
    "openpyxl",
    "pandas",
    "plotly.graph_objects",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.ensemble",
)
"""Libraries that sessions load on first use; some belong to an extra."""


def add(commands: Any) -> None:
    """Declare the command."""
    serve = commands.add_parser("serve", help="start the app for several people, behind a proxy")
    serve.add_argument(
        "--host", action="append", required=True, metavar="NAME", help="public name of the server; may be repeated"
    )
    serve.add_argument("--address", default="127.0.0.1", help="address to listen on (default: this machine only)")
    serve.add_argument("--port", type=whole, default=8501, help="port of the app (default: 8501)")
    serve.add_argument("--secrets", type=Path, metavar="FILE", help="the file secrets.toml with [auth] and [roles]")
    serve.add_argument("--monitor", type=whole, default=8502, help="port of /readyz and /metrics, on this machine only")
    serve.set_defaults(run=run)


def run(opt: argparse.Namespace) -> None:
    """Check the settings, serve the monitoring port, and run the app until it is stopped.

    On SIGTERM, the server accepts no new jobs, gives running jobs ``ESPALIER_DRAIN`` seconds to finish, and stops the
    app.
    """
    app.need_extra()
    if opt.secrets is not None and not os.access(opt.secrets, os.R_OK):
        raise EspalierError(f"the secrets {opt.secrets} cannot be read")
    patience = number(WORKS_IN)
    from espalier.core.server import monitor  # reads the queue's settings, which may be invalid

    _log_as_json()
    _load()
    monitor.serve(opt.monitor)
    _drain_first(patience)
    events.emit("start", port=opt.port)
    hosts = ",".join(opt.host)
    app.start(
        f"--server.address={opt.address}",
        f"--server.port={opt.port}",
        f"--server.allowedHosts={hosts}",
        f"--browser.serverAddress={opt.host[0]}",
        "--server.headless=true",
        secrets=opt.secrets,
    )


def _load() -> None:
    """Import all of `core` and `LIBRARIES`, so that no visitor waits for them."""
    for module in pkgutil.walk_packages(core.__path__, f"{core.__name__}."):
        importlib.import_module(module.name)
    for name in LIBRARIES:
        with suppress(ModuleNotFoundError):  # this library belongs to an extra that is not installed
            importlib.import_module(name)


def _log_as_json() -> None:
    """Write every log line of the root logger, Streamlit and its web server as JSON to standard error."""
    handler = events.log_as_json()
    streamlit_logger: Any = importlib.import_module("streamlit.logger")  # core uses the app's library only to start it

    def plain(logger: logging.Logger) -> None:
        logger.handlers[:] = [handler]

    streamlit_logger.setup_formatter = plain
    for logger in streamlit_logger._loggers.values():
        plain(logger)


def _drain_first(patience: float) -> None:
    """Let running jobs finish before Streamlit's SIGTERM handler stops the server. A second signal stops it at once."""
    from espalier.core.server.queue import QUEUE

    bootstrap: Any = importlib.import_module("streamlit.web.bootstrap")
    set_up = bootstrap._set_up_signal_handler

    def with_draining(server: Any) -> None:
        set_up(server)
        stop: Any = signal.getsignal(signal.SIGTERM)
        asked = threading.Event()

        def end() -> None:
            drained = QUEUE.drain(patience)
            events.emit("stop", drained=drained)
            os.kill(os.getpid(), signal.SIGTERM)

        def handle(number: int, frame: FrameType | None) -> None:
            if asked.is_set():
                stop(number, frame)
                return
            asked.set()
            threading.Thread(target=end, name="drain", daemon=True).start()

        signal.signal(signal.SIGTERM, handle)

    bootstrap._set_up_signal_handler = with_draining
