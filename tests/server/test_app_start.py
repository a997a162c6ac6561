"""Tests of ``flask noderpc start``: flags of the server, and settings of the app."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.helpers.until import PATIENCE

from ..helpers.http import call
from .node_process import refusal, started


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return the command of an app whose own addresses can't be bound."""
    app = tmp_path / "hosts.py"
    app.write_text(
        "from flask import Flask\n"
        "from flask_noderpc import NodeRPC\n"
        "app = Flask(__name__)\n"
        f"NodeRPC(app, database={str(tmp_path / 'chain.db')!r},"
        " rpc_laddr='tcp://192.0.2.1:1', json_rpc_enable=True,"
        " json_rpc_address='192.0.2.1:2', json_rpc_ws_address='192.0.2.1:3',"
        " application='bank', rest=True, api_address='192.0.2.1:4')\n"
    )
    return [sys.executable, "-m", "flask", "--app", str(app), "noderpc", "start"]


def test_addresses_of_flags_go_before_those_of_the_app(
    tmp_path: Path, command: list[str]
) -> None:
    flags = (
        *("--rpc.laddr", "tcp://127.0.0.1:0"),
        *("--json-rpc.address", "127.0.0.1:0"),
        *("--json-rpc.ws-address", "127.0.0.1:0"),
        *("--api.address", "127.0.0.1:0"),
        *("--workers", "2"),
    )
    with started(tmp_path, *flags, command=command) as node:
        node.until_up()
        assert len(node.children()) == 2
        other = node.get("/status")["node_info"]["other"]
        assert other["rpc_address"] == "tcp://127.0.0.1:0"
        number = call(node.url("EVM JSON-RPC"), "eth_blockNumber", []).result
        assert number.startswith("0x")


def test_a_bad_address_is_named_by_its_flag(command: list[str]) -> None:
    message = refusal("--rpc.laddr", "nonsense", command=command, status=2)
    assert message.startswith("Error: --rpc.laddr / --rpc-laddr: expected tcp://")
    # Without the flag, the app's own address is the one that can't be bound.
    assert "tcp://192.0.2.1:1" in refusal(command=command)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--max-batch", "3"), "it is a setting of the app; set app.config['NODERPC_MAX_"),
        (
            ("--json-rpc.enable",),
            "--json-rpc.enable / --json-rpc-enable can't be given here",
        ),
    ],
)
def test_a_flag_of_another_setting_is_refused_with_its_key(
    command: list[str], flags: tuple[str, ...], words: str
) -> None:
    ended = subprocess.run(
        [*command, *flags], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 2
    assert words in ended.stderr


def test_every_request_of_an_app_goes_through_its_hooks_and_middleware(tmp_path: Path) -> None:
    app = tmp_path / "hooked.py"
    app.write_text(
        "from flask import Flask, g\n"
        "from flask_noderpc import NodeRPC\n"
        "app = Flask(__name__)\n"
        f"NodeRPC(app, database={str(tmp_path / 'chain.db')!r})\n"
        "counts = {'hook': 0, 'middleware': 0}\n"
        "@app.after_request\n"
        "def hook(response):\n"
        "    counts['hook'] += 1\n"
        "    response.headers['Hook'] = str(counts['hook'])\n"
        "    return response\n"
        "def middleware(environ, start_response, inner=app.wsgi_app):\n"
        "    counts['middleware'] += 1\n"
        "    def start(status, headers, *others):\n"
        "        headers = [*headers, ('Middleware', str(counts['middleware']))]\n"
        "        return start_response(status, headers, *others)\n"
        "    return inner(environ, start)\n"
        "app.wsgi_app = middleware\n"
    )
    command = [sys.executable, "-m", "flask", "--app", str(app), "noderpc", "start"]
    with started(tmp_path, "--rpc.laddr", "tcp://127.0.0.1:0", command=command) as node:
        node.until_up()
        seen = []
        for _ in range(3):
            with urllib.request.urlopen(f"{node.url()}/health", timeout=PATIENCE) as answer:
                seen.append((int(answer.headers["Hook"]), int(answer.headers["Middleware"])))
    first = seen[0]
    assert seen == [(first[0] + n, first[1] + n) for n in range(3)]
