"""Tests of the README's commands and examples, at the test's addresses."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from flask import Flask

from flask_noderpc.extension import mounts
from tests.helpers.until import PATIENCE
from tests.server.node_process import Node, started

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
SHELL = [text for language, text in BLOCKS if language == "sh"]
PYTHON = [text for language, text in BLOCKS if language == "python"]
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
