"""Tests of nginx in front of each server, with the configuration of ``deploy/``."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ..helpers.ports import free_port
from ..helpers.process import Process
from ..helpers.require import skip_or_fail
from ..helpers.until import until
from .fixtures import (
    FILES,
    SCRIPTS,
    Way,
    call,
    converse,
    gunicorn_command,
    replaced,
    running,
    says_ready,
    unit_command,
)

QUICK = {"EMPTY_BLOCKS": "true", "BLOCK_INTERVAL": "0.1", "LOG_CALLS": "true"}


@dataclass
class Behind:
    """A server behind nginx, and the way to reach it."""

    way: Way
    server: Process


def certificate(folder: Path) -> tuple[Path, Path, ssl.SSLContext]:
    key, made = folder / "key.pem", folder / "certificate.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=node.example -addext"
    names = "subjectAltName=DNS:node.example,DNS:evm.example,IP:127.0.0.1"
    out = ["-keyout", str(key), "-out", str(made)]
    subprocess.run(["openssl", *words.split(), names, *out], check=True, capture_output=True)
    return key, made, ssl.create_default_context(cafile=made)


def nginx_command(folder: Path, site: str) -> list[str]:
    (folder / "site.conf").write_text(site)
    # A master process of root drops its rights, and then can't enter the test's folder.
    user = "user root;" if os.geteuid() == 0 else ""
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; {user} pid {folder}/nginx.pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary} include {folder}/site.conf; }}\n"
    )
    return [nginx(), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]


def nginx() -> str:
    # Debian installs nginx in a folder that only root has in its PATH.
    path = os.pathsep.join((os.environ["PATH"], "/usr/sbin"))
    return shutil.which("nginx", path=path) or skip_or_fail("nginx is not installed")


def site_of(folder: Path, port: int, evm: tuple[int, int]) -> tuple[str, ssl.SSLContext]:
    """Return the configuration with the paths and ports of the test, and the TLS context of its
    clients."""
    key, made, tls = certificate(folder)
    names = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/run/noderpc/node.sock": f"{folder}/node.sock",
        "127.0.0.1:8545": f"127.0.0.1:{evm[0]}",
        "127.0.0.1:8546": f"127.0.0.1:{evm[1]}",
        "/etc/ssl/node.example.pem": str(made),
        "/etc/ssl/private/node.example.key": str(key),
    }
    return replaced((FILES / "nginx.conf").read_text(), names), tls


@pytest.fixture(scope="module", params=["start", "gevent", "gthread"])
def behind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Behind]:
    nginx()
    kind: str = request.param
    folder = tmp_path_factory.mktemp(kind)
    port, evm, evm_ws = free_port(), free_port(), free_port()
    site, tls = site_of(folder, port, (evm, evm_ws))
    if kind == "start":
        command = unit_command(folder, folder, (evm, evm_ws))
        environment = {f"NODERPC_{name}": value for name, value in QUICK.items()}
    else:
        command = gunicorn_command("-k", kind, "--bind", f"unix:{folder}/node.sock")
        environment = {f"FLASK_NODERPC_{name}": value for name, value in QUICK.items()}
        environment["FLASK_NODERPC_DATABASE"] = str(folder / "noderpc.db")
    with ExitStack() as stack:
        server = stack.enter_context(running(command, folder / "server.log", environment))
        proxy = stack.enter_context(running(nginx_command(folder, site), folder / "nginx.log"))
        way = Way(port, tls, source="127.0.0.77")
        proxy.until_answered(lambda: way.asked("/health"))
        until(lambda: says_ready(folder / "node.sock"), f"an answer of {kind}")
        yield Behind(way, server)


def test_all_calls_and_events_go_through(behind: Behind) -> None:
    converse(behind.way, "root")


def test_below_a_prefix_too(behind: Behind) -> None:
    way = replace(behind.way, prefix="/rpc")
    converse(way, "prefix")
    page = way.asked("/")[1]
    assert 'href="/rpc/status"' in page
    assert 'href="/status"' not in page


def test_the_metrics_are_only_for_this_machine(behind: Behind) -> None:
    here = replace(behind.way, source="127.0.0.1")

    for path in ("/metrics", "/rpc/metrics"):
        status, text = behind.way.asked(path)
        assert (status, "nginx" in text) == (403, True), path
    # The node has no metrics without NODERPC_METRICS.
    assert here.asked("/metrics")[0] == 404


# gunicorn has no separate addresses for the EVM layer.
@pytest.mark.parametrize("behind", ["start"], indirect=True)
def test_ethereum_s_clients_have_one_address_for_both(behind: Behind) -> None:
    way = replace(behind.way, host="evm.example")
    assert way.post(call("eth_chainId", []))["result"] == hex(9000)
    with way.websocket("/") as events:
        events.send('{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}')
        assert hex(9000) in str(events.recv())


def test_the_client_is_the_peer_of_nginx_despite_forged_headers(behind: Behind) -> None:
    lies = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Prefix": "/elsewhere"}
    way = replace(behind.way, headers=lies)
    assert way.get("/genesis")
    page = way.asked("/")[1]
    assert 'href="/status"' in page
    with way.websocket() as events:
        events.send('{"jsonrpc":"2.0","id":1,"method":"num_unconfirmed_txs"}')
        events.recv()

    def logged() -> bool:
        message = behind.server.log.read_text()
        return "genesis" in message and "num_unconfirmed_txs" in message

    until(logged, "the lines of both calls")
    lines = [
        line
        for line in behind.server.log.read_text().splitlines()
        if "method=genesis" in line or "method=num_unconfirmed_txs" in line
    ]
    assert len(lines) == 2
    assert all(line.endswith("client=127.0.0.77") for line in lines), lines


def test_oversized_bodies_through_nginx_get_the_error_of_the_node(behind: Behind) -> None:
    # The client reads the response only if its own sending was not cut off, which is a race.
    for _ in range(20):
        status, text = behind.way.asked("/", call("x" * 1_100_000))
        assert status != 502
        assert "NODERPC_MAX_BODY_BYTES" in text
    evm = replace(behind.way, headers={"Content-Type": "application/json"})
    for _ in range(5):
        status, text = evm.asked("/evm", call("x" * 5_300_000))
        assert status != 502
        assert "NODERPC_EVM_MAX_BODY_BYTES" in text


def test_pages_of_the_site_itself_may_write(behind: Behind) -> None:
    way = behind.way
    own = replace(way, headers={"Origin": f"https://{way.host}:{way.port}"})
    others = replace(way, headers={"Origin": "https://evil.example"})
    body = call("broadcast_tx_sync", {"tx": "b3duPTE="})
    assert "NODERPC_WRITE_ORIGINS" in others.asked("/", body)[1]
    assert "result" in own.post(body)


@pytest.mark.parametrize("behind", ["start"], indirect=True)
def test_names_that_are_not_listed_are_refused(behind: Behind) -> None:
    refused = replace(behind.way, host="evil.example").asked("/health")
    assert refused[0] == 403
    assert "NODERPC_ALLOWED_HOSTS" in refused[1]


def test_one_of_two_nodes_after_the_other_may_be_replaced(tmp_path: Path) -> None:
    nginx()
    port = free_port()
    site, tls = site_of(tmp_path, port, (free_port(), free_port()))
    first = f"server unix:{tmp_path}/node.sock max_fails=0;"
    site = replaced(site, {first: first + first.replace("node.sock", "other.sock")})
    way = Way(port, tls)
    quick = {f"NODERPC_{name}": value for name, value in QUICK.items()}

    def node(name: str) -> Process:
        home = ["--home", str(tmp_path), "--rpc.laddr", f"unix://{tmp_path}/{name}"]
        command = [str(SCRIPTS / "noderpc"), "start", *home]
        return stack.enter_context(running(command, tmp_path / "log", quick))

    with ExitStack() as stack:
        nodes = {name: node(name) for name in ("node.sock", "other.sock")}
        proxy = stack.enter_context(
            running(nginx_command(tmp_path, site), tmp_path / "nginx.log")
        )
        proxy.until_answered(lambda: way.asked("/health"))
        for name in nodes:
            until(lambda s=name: says_ready(tmp_path / s), name)  # type: ignore[misc]
        for name, each in nodes.items():
            before = int(way.get("/status")["sync_info"]["latest_block_height"])
            assert each.end() == 0

            # Other clients must not notice.
            def goes_on(before: int = before) -> bool:
                status, text = way.asked("/status")
                assert status == 200, text
                info = json.loads(text)["result"]["sync_info"]
                return int(info["latest_block_height"]) > before + 3

            until(goes_on, "blocks of the other")
            node(name)
            until(lambda s=name: says_ready(tmp_path / s), name)  # type: ignore[misc]
