"""Tests of the README's commands and examples, at the test's addresses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from flask import Flask

from flask_noderpc.extension import mounts
from flask_noderpc.feature import features
from tests.helpers.ports import free_port
from tests.helpers.process import Process, killed
from tests.helpers.until import PATIENCE
from tests.server.node_process import Node, started

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
SHELL = [text for language, text in BLOCKS if language == "sh"]
PYTHON = [text for language, text in BLOCKS if language == "python"]
CHAINS = re.findall(r"^\| [^|]+ \| `([^`]+)` \| `(curl[^`]+)` \|$", README, re.MULTILINE)
CURLS = [
    line
    for text in SHELL
    for line in text.replace("\\\n", "").splitlines()
    if line.startswith("curl")
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    command = re.search(r"noderpc start (.*)", SHELL[0])
    assert command
    with started(tmp_path_factory.mktemp("node"), *command[1].split()) as found:
        found.until_up()
        yield found


@pytest.mark.skipif(which("curl") is None, reason="the README's commands are curl's")
def test_each_curl_is_answered_in_the_order_of_the_readme(node: Node) -> None:
    hosts = {
        "localhost:26657": node.url().removeprefix("http://"),
        "localhost:8545": node.url("EVM JSON-RPC").removeprefix("http://"),
    }
    assert len(CURLS) == 4
    for line in CURLS:
        own = re.sub("|".join(hosts), lambda found: hosts[found[0]], line)
        ran = subprocess.run(
            ["sh", "-c", own], capture_output=True, text=True, timeout=PATIENCE
        )
        assert json.loads(ran.stdout)["result"], own


@pytest.mark.skipif(which("curl") is None, reason="the README's commands are curl's")
@pytest.mark.parametrize(("command", "first"), CHAINS, ids=lambda text: text[:40])
def test_each_chain_of_the_table_answers_its_first_request(
    command: str, first: str, node: Node, tmp_path: Path
) -> None:
    ports = {port: str(free_port()) for port in ("26657", "36657", "8545")}
    own = command.replace("http://localhost:26657", node.url())
    own = own.replace("--home companion", f"--home {tmp_path}")
    for old, new in ports.items():
        own, first = own.replace(old, new), first.replace(old, new)
    program, *arguments = own.split()
    module = {"flask": "flask", "noderpc": "flask_noderpc"}[program]
    log, root = tmp_path / "chain.log", Path(__file__).parents[1]
    words = [sys.executable, "-m", module, *arguments]
    with killed(Process(words, log, environment(tmp_path, ports), cwd=root)) as served:
        served.until(lambda: "result" in answer(first), first)


def environment(folder: Path, ports: Mapping[str, str]) -> dict[str, str]:
    """Return settings that the README's commands leave at their defaults."""
    return {
        "FLASK_NODERPC_DATABASE": str(folder / "chain.db"),
        "HOME": str(folder),
        "NODERPC_API_ADDRESS": "tcp://127.0.0.1:0",
        "NODERPC_JSON_RPC_ADDRESS": f"127.0.0.1:{ports['8545']}",
        "NODERPC_JSON_RPC_WS_ADDRESS": "127.0.0.1:0",
        "NODERPC_RPC_LADDR": f"tcp://127.0.0.1:{ports['26657']}",
        "NODERPC_WORKERS": "1",
    }


def answer(command: str) -> dict[str, Any]:
    """Return the JSON that a curl command prints; empty if nothing listens yet."""
    ran = subprocess.run(
        ["sh", "-c", f"{command} -s"], capture_output=True, text=True, timeout=PATIENCE
    )
    printed: dict[str, Any] = json.loads(ran.stdout or "{}")
    return printed


def test_the_table_has_a_row_for_each_kind_of_chain() -> None:
    commands = [command for command, _ in CHAINS]
    flags = chain.from_iterable(feature.starts for feature in features())

    assert len(commands) == 5
    for each in flags:
        start = f"noderpc start {each}".removesuffix("URL")
        assert any(command.startswith(start) for command in commands), each


@pytest.mark.parametrize(
    ("place", "path"), [(0, "/status"), (1, "/status"), (1, "/comet/status")]
)
def test_the_lines_for_an_app_serve_the_node(place: int, path: str, tmp_path: Path) -> None:
    text = [text for text in PYTHON if "def test_" not in text][place]
    host = Flask("host", instance_path=str(tmp_path))
    host.config["NODERPC_PRODUCE"] = False
    # The examples use this app instead of their own.
    exec(text.replace("app = Flask(__name__)", ""), {"app": host})
    try:
        assert host.test_client().get(path).status_code == 200
    finally:
        for mount in mounts(host).values():
            mount.backend.close()
