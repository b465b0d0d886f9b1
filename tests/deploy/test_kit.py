"""The kit for servers has current files and valid settings, and its service starts as systemd would start it."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from unittest.mock import Mock

import pytest

from deploy import kit
from espalier.core.cli import serve
from espalier.core.server.settings import OF_THE_KIT, SETTINGS, number, unknown
from tests.support.app import ROOT, free_port
from tests.support.installed import environment, wheel

DEPLOY = ROOT / "deploy"


def test_the_generated_files_are_current():
    for path, text in kit.files().items():
        written = path.read_text("utf-8")
        if path.suffix == ".json":  # licences are those that the installed version declares
            text, written = (re.sub(r'(?s),\n   "licenses": .*?\n   \]', "", t) for t in (text, written))
        assert written == text, f"{path.name}: run python -m deploy.kit"


def test_every_variable_that_the_code_reads_is_in_the_table():
    folders = ("core", "pages", "espalier", "verifier", "tests", "deploy", ".ci")
    files = [p for f in folders for p in (ROOT / f).rglob("*") if p.is_file() and p.suffix != ".pyc"]
    named = {n for p in files for n in re.findall(r"\bESPALIER_[A-Z_]*[A-Z]\b", p.read_text("utf-8", "replace"))}
    assert named - OF_THE_KIT - {"ESPALIER_TYPO"} == {s.name for s in SETTINGS}
    assert unknown(variables()) == [], "doctor would refuse the example, and the unit would not start"
    assert unknown({"ESPALIER_TYPO": "1", "ESPALIER_LEDGER": "x", "HOME": "/"}) == ["ESPALIER_TYPO"]


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "many", "1_0", "²"])
def test_a_setting_that_is_no_number_is_refused(wrong):
    with pytest.raises(Exception, match="must be a whole number of at least 1"):
        number("ESPALIER_JOBS", {"ESPALIER_JOBS": wrong})


def test_the_bill_of_materials_lists_what_the_lock_pins():
    made = json.loads((DEPLOY / "sbom.json").read_text("utf-8"))
    pinned = dict(re.findall(r"(?m)^([a-z0-9-]+)==([^\s;\\]+)", (DEPLOY / "requirements.lock").read_text("utf-8")))
    assert {c["name"]: c["version"] for c in made["components"]} == pinned
    assert {"streamlit", "psycopg-binary", "opendp", "duckdb"} <= set(pinned)
    assert set(pinned) <= set(kit.locked())
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")


def unit(key: str) -> list[str]:
    """Return the values of a key of the unit, in their order."""
    text = (DEPLOY / "espalier.service").read_text("utf-8")
    return re.findall(rf"(?m)^{key}=(.*)$", text)


def variables() -> dict[str, str]:
    """Return the environment that the unit sets, with the example's file."""
    lines = (DEPLOY / "environment.example").read_text("utf-8").splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return given | dict(part.split("=", 1) for line in unit("Environment") for part in line.split())


def command(line: str) -> list[str]:
    """Return a command line of the unit, with its variables replaced."""
    return shlex.split(re.sub(r"\$\{(\w+)\}", lambda m: variables()[m[1]], line))


def test_the_command_lines_of_the_unit_are_accepted():
    parser = __import__("argparse").ArgumentParser()
    commands = parser.add_subparsers()
    serve.add(commands)
    (line,) = unit("ExecStart")
    given = parser.parse_args(command(line)[1:])
    assert given.host == ["espalier.hospital.example"]
    assert given.address == "127.0.0.1"
    assert float(unit("TimeoutStopSec")[0]) > number("ESPALIER_DRAIN", {})
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    asked = re.search(r"command: \[(.*)\]", text)[1].replace('"', "").split(", ")
    assert parser.parse_args(asked).address == "0.0.0.0"


def test_a_server_without_an_extra_starts(monkeypatch):
    """The server loads its libraries first. Those of an extra may be absent; all others must load."""
    for absent in ("openpyxl", "psycopg", "pyreadstat"):
        monkeypatch.setitem(sys.modules, absent, None)
    load = Mock(wraps=importlib.import_module)
    monkeypatch.setattr(importlib, "import_module", load)
    serve._load()
    asked = {call.args[0] for call in load.call_args_list}
    assert {"openpyxl", "sklearn.ensemble", "espalier.core.analysis.survival"} <= asked


def test_systemd_accepts_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    text = (DEPLOY / "espalier.service").read_text("utf-8").replace("/opt/espalier/bin/espalier", "/bin/true")
    (tmp_path / "espalier.service").write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / "espalier.service")], capture_output=True)
    wrong = [line for line in done.stderr.decode().splitlines() if "espalier.service" in line and "man" not in line]
    assert not wrong


@pytest.mark.nightly
def test_the_service_runs_as_another_user_on_a_read_only_disk(tmp_path):
    """The unit's own command line runs from an installed wheel as `nobody`, while every file system but its state is
    read-only.
    """
    if os.getuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("another user and a read-only disk need root, unshare and setpriv")
    python = environment(tmp_path / "venv", wheel(tmp_path), "app", "formats", "postgres")
    state, web, ask = tmp_path / "state", free_port(), free_port()
    (state / "tmp").mkdir(parents=True)
    secrets = tmp_path / "secrets.toml"
    secrets.write_text((DEPLOY / "secrets.toml.example").read_text("utf-8"))
    for path in (state, state / "tmp", secrets):
        shutil.chown(path, "nobody")
    for folder in tmp_path.parents:
        if folder != Path("/") and folder.stat().st_mode & 0o055 != 0o055 and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    tmp_path.chmod(0o755)
    (line,) = unit("ExecStart")
    asked = [str(python.with_name("espalier")) if w.startswith("/opt") else w for w in command(line)]
    asked = [str(secrets) if word.startswith("/etc") else word for word in asked]
    script = (
        f"mount --bind {state} {state} && mount -o remount,ro,bind / && mount -o remount,rw,bind {state} && "
        f"exec setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs "
        f"{shlex.join([*asked, f'--port={web}', f'--monitor={ask}'])}"
    )
    given = variables() | {"HOME": str(state), "TMPDIR": str(state / "tmp"), "PATH": os.environ["PATH"]}
    given |= {"ESPALIER_LEDGER": f"{state}/ledger.db", "ESPALIER_AUDIT_LOG": f"{state}/audit.jsonl"}
    given |= {"ESPALIER_SHARED": f"{state}/shared", "ESPALIER_LEDGER_KEY": f"{state}/ledger.key"}
    process = subprocess.Popen(["unshare", "-m", "sh", "-c", script], env=given, cwd="/", stderr=subprocess.PIPE)
    try:
        ready = None
        for _ in range(120):
            assert process.poll() is None, process.stderr.read().decode()[-2000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{web}/_stcore/health", timeout=1).read()
                ready = json.load(urllib.request.urlopen(f"http://127.0.0.1:{ask}/readyz", timeout=10))
                break
            except OSError:
                time.sleep(0.5)
        assert ready == {"ledger": "ok", "disk": "ok", "worker": "ok", "audit": "ok"}
        assert json.loads((state / "audit.jsonl").read_text().splitlines()[0])["event"] == "start"
    finally:
        process.terminate()
        _, said = process.communicate(timeout=60)
    events = [json.loads(line) for line in (state / "audit.jsonl").read_text().splitlines()]
    assert [e["event"] for e in events] == ["start", "stop"]
    assert events[-1]["drained"] is True
    assert b"Traceback" not in said


@pytest.mark.nightly
def test_a_wheelhouse_installs_without_the_internet(tmp_path):
    """`deploy/wheelhouse` runs on a machine with internet access, and `deploy/install` on one without a network."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a machine without a network needs root and unshare")
    built = wheel(tmp_path)
    source = tmp_path / "source"
    shutil.copytree(DEPLOY, source / "deploy", ignore=shutil.ignore_patterns("__pycache__"))
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary", ":all:"]
    lines = (DEPLOY / "wheelhouse").read_text("utf-8")
    assert " ".join(download[3:]) in lines, "the script uses the same download command"
    (source / "wheelhouse").mkdir()
    shutil.move(built, source / "wheelhouse")
    subprocess.run([*download, "-r", "deploy/requirements.lock", "-d", "wheelhouse"], cwd=source, check=True)
    subprocess.run("cd wheelhouse && sha256sum -- *.whl >SHA256SUMS", shell=True, cwd=source, check=True)
    bare = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    to = tmp_path / "espalier"
    asked = ["unshare", "-n", "deploy/install", "wheelhouse", str(to)]
    done = subprocess.run(asked, cwd=source, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("espalier ")
    shown = subprocess.run(
        ["unshare", "-n", str(to / "bin" / "espalier"), "demo", "--sample", "hiring", "--out", str(tmp_path / "demo")],
        env=bare, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr[-2000:]
    assert (tmp_path / "demo" / "synthetic.csv").exists()
    (source / "wheelhouse" / "streamlit-0-py3-none-any.whl").write_bytes(b"")
    with (source / "wheelhouse" / "SHA256SUMS").open("a") as sums:
        sums.write(f"{'0' * 64}  streamlit-0-py3-none-any.whl\n")
    again = subprocess.run(
        [*asked[:-1], str(tmp_path / "other")], cwd=source, env=bare, capture_output=True, check=False
    )
    assert again.returncode != 0, "a wheel that was changed on the way is refused"
