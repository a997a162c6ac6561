"""Tests of two servers and a follower on one database, with the files of ``deploy/scaled``."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ..helpers.ports import free_port
from ..helpers.postgres import Cluster, Standby
from ..helpers.process import Process
from ..helpers.until import PATIENCE, until
from .fixtures import FILES, SCRIPTS, Way, replaced, running
from .test_nginx import certificate, nginx, nginx_command

SCALED = FILES / "scaled"
ANALYZE = shutil.which("systemd-analyze")
UNITS = ("noderpc-follower.service", "noderpc-server.service")


def command_of(unit: str, names: dict[str, str]) -> list[str]:
    """Return the command of a unit, as systemd parses it."""
    text = replaced((SCALED / unit).read_text(), {"/opt/noderpc/bin": str(SCRIPTS), **names})
    found = re.search(r"^ExecStart=((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert found
    return shlex.split(found[1].replace("\\\n", " "))


def environment_of(primary: Cluster, standby: Standby, upstream: str) -> dict[str, str]:
    """Return the variables of the file for all hosts, with addresses of this machine."""
    database = primary.empty_database().rpartition("/")[2].partition("?")[0]
    ports = [each.options["port"] for each in (primary, standby)]
    text = replaced(
        (SCALED / "noderpc.env").read_text(),
        {
            "http://10.0.0.31:26657,http://10.0.0.32:26657": upstream,
            "10.0.0.21": f"127.0.0.1:{ports[0]}",
            "10.0.0.22": f"127.0.0.1:{ports[1]}",
            "/chain": f"/{database}",
        },
    )
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in lines}


@dataclass
class Scaled:
    way: Way
    direct: list[Way]
    servers: list[Process]
    primary: Cluster
    standby: Standby


@pytest.fixture
def scaled(tmp_path: Path) -> Iterator[Scaled]:
    nginx()
    source, ports, front = free_port(), [free_port(), free_port()], free_port()
    with ExitStack() as stack:
        primary, standby = _databases(stack)
        start = [str(SCRIPTS / "noderpc"), "start", "--home", str(tmp_path / "source")]
        start += ["--rpc.laddr", f"tcp://127.0.0.1:{source}", "--block-interval", "0.2"]
        stack.enter_context(
            running([*start, "--dialect", "comet-0.38"], tmp_path / "source.log")
        )
        environment = environment_of(primary, standby, f"http://127.0.0.1:{source}")
        follow = command_of("noderpc-follower.service", {})
        stack.enter_context(running(follow, tmp_path / "follower.log", environment))
        servers = [
            stack.enter_context(
                running(_serve(tmp_path, port), tmp_path / f"{port}.log", environment)
            )
            for port in ports
        ]
        key, made, tls = certificate(tmp_path)
        site = replaced(
            (SCALED / "nginx.conf").read_text(),
            {
                "listen 443 ssl": f"listen 127.0.0.1:{front} ssl",
                "10.0.0.11:26657": f"127.0.0.1:{ports[0]}",
                "10.0.0.12:26657": f"127.0.0.1:{ports[1]}",
                "/etc/ssl/node.example.pem": str(made),
                "/etc/ssl/private/node.example.key": str(key),
            },
        )
        stack.enter_context(running(nginx_command(tmp_path, site), tmp_path / "nginx.log"))
        direct = [Way(port) for port in ports]
        yield Scaled(Way(front, tls), direct, servers, primary, standby)


def _databases(stack: ExitStack) -> tuple[Cluster, Standby]:
    options = [{"listen_addresses": "127.0.0.1", "port": str(free_port())} for _ in range(2)]
    primary = stack.enter_context(closing(Cluster(**options[0])))
    return primary, stack.enter_context(closing(Standby(primary, **options[1])))


def _serve(folder: Path, port: int) -> list[str]:
    names = {
        "${STATE_DIRECTORY}": str(folder / str(port)),
        "tcp://0.0.0.0:26657": f"tcp://127.0.0.1:{port}",
    }
    return command_of("noderpc-server.service", names)


def height(way: Way) -> int:
    """Return the latest height; 0 if there is no response."""
    try:
        return int(way.get("/status")["sync_info"]["latest_block_height"])
    except (OSError, KeyError, ValueError):
        return 0


def test_servers_and_primary_may_go_one_after_the_other(scaled: Scaled) -> None:
    # Each server is checked by itself: nginx may pass the request to the one that is up.
    ways = (*scaled.direct, scaled.way)
    until(lambda: all(height(way) > 3 for way in ways), "blocks are followed")
    assert scaled.way.get("/block?height=2")["block"]["header"]["height"] == "2"

    assert scaled.servers[0].end() == 0
    before = height(scaled.way)
    assert before
    until(lambda: height(scaled.way) > before, "the other server goes on")

    scaled.standby.catch_up()
    scaled.primary.stop("immediate")
    scaled.standby.promote()
    before = height(scaled.way)
    until(lambda: height(scaled.way) > max(3, before), "follower and server go on")


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_has_nothing_against_the_units(name: str, tmp_path: Path) -> None:
    unit = tmp_path / name
    unit.write_text(replaced((SCALED / name).read_text(), {"/opt/noderpc/bin": str(SCRIPTS)}))
    message = subprocess.run(
        [str(ANALYZE), "verify", str(unit)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert message.returncode == 0, message.stderr
    assert unit.name not in message.stderr


def test_the_compose_file_runs_what_the_units_run() -> None:
    """Both have the same site of nginx."""
    services: dict[str, Any] = _compose()["services"]
    entry, *_ = re.findall(r"^ENTRYPOINT (.+)$", _containerfile(), re.MULTILINE)
    assert {*services} == {"db", "follower", "server1", "server2", "nginx"}
    assert services["follower"]["entrypoint"] == ["noderpc", "follow"]
    for name in ("server1", "server2"):
        command = shlex.split(entry.translate(str.maketrans("[],", "   ")))
        command += services[name]["command"]
        unit = command_of("noderpc-server.service", {})[1:]
        # Both commands serve one machine, whose names nginx knows.
        at = unit.index("--allowed-hosts")
        assert {*command[1:]} - {"/var/lib/noderpc"} == {*(unit[:at] + unit[at + 2 :])} - {
            "${STATE_DIRECTORY}"
        }
    site, ours = _compose()["configs"]["site"]["content"], (SCALED / "nginx.conf").read_text()
    headers = re.findall(r"proxy_set_header .+;", site.replace("$$", "$"))
    assert headers == re.findall(r"proxy_set_header .+;", ours)


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = import_module("yaml").safe_load(
        (SCALED / "compose.yaml").read_text()
    )
    return found


def _containerfile() -> str:
    return (FILES / "Containerfile").read_text()
