"""Tests of the systemd unit and the Containerfile, as far as they can run without either."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ..helpers.ports import free_port
from ..helpers.until import PATIENCE, until
from .fixtures import (
    FILES,
    ROOT,
    SCRIPTS,
    Way,
    replaced,
    running,
    says_ready,
    unit_command,
)

ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_systemd_has_nothing_against_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "noderpc.service"
    text = (FILES / "noderpc.service").read_text()
    unit.write_text(replaced(text, {"/opt/noderpc/bin": str(SCRIPTS)}))
    message = subprocess.run(
        [str(ANALYZE), "verify", str(unit)], capture_output=True, text=True, timeout=PATIENCE
    )
    # Messages about other units of the machine do not count.
    assert message.returncode == 0, message.stderr
    assert unit.name not in message.stderr


def test_the_command_of_the_systemd_unit_serves_and_stops(tmp_path: Path) -> None:
    command = unit_command(tmp_path, tmp_path, (free_port(), free_port()))
    path = tmp_path / "node.sock"
    with running(command, tmp_path / "log") as server:
        until(lambda: says_ready(path), "an answer")
        assert (tmp_path / "data" / "noderpc.db").exists()
        assert server.end() == 0


def instructions() -> dict[str, list[str]]:
    """Return the instructions of the Containerfile, by their keywords."""
    text = (FILES / "Containerfile").read_text().replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    for word, rest in re.findall(r"^([A-Z]+) +(.+)$", text, re.MULTILINE):
        found.setdefault(word, []).append(rest)
    return found


def test_files_copied_by_the_container_exist() -> None:
    for line in instructions()["COPY"]:
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists(), source


def test_the_container_s_command_serves_is_healthy_and_ends(tmp_path: Path) -> None:
    received, way = instructions(), Way(free_port(), host="localhost")
    # In exec form, no shell can intercept SIGTERM.
    entry, extra = json.loads(received["ENTRYPOINT"][0]), json.loads(received["CMD"][0])
    check = json.loads(received["HEALTHCHECK"][0].partition("CMD ")[2])
    names = {
        "noderpc": str(SCRIPTS / "noderpc"),
        "/var/lib/noderpc": str(tmp_path),
        "tcp://0.0.0.0:26657": f"tcp://127.0.0.1:{way.port}",
    }
    assert names.keys() <= {*entry}
    evm = ["--json-rpc.address", "127.0.0.1:0", "--json-rpc.ws-address", "127.0.0.1:0"]
    check = [str(SCRIPTS / check[0]), check[1], replaced(check[2], {"26657": str(way.port)})]
    command = [names.get(word, word) for word in entry] + extra + evm
    with running(command, tmp_path / "log") as server:
        server.until_answered(lambda: way.get("/health"))
        assert subprocess.run(check, timeout=PATIENCE).returncode == 0
        assert server.end() == 0
    assert subprocess.run(check, timeout=PATIENCE, stderr=subprocess.DEVNULL).returncode == 1
