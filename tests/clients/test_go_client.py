"""Tests of CometBFT's own HTTP client in Go with our node; its calls are in go/rpc."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ..chain.fixtures import write_home
from ..faults.servers import serving
from ..helpers.until import PATIENCE

LAST_STEPS = ["events of a round", "more events of a round", "changes of validators"]
"""Steps whose absence shows that the program ended early."""


@pytest.mark.parametrize(
    ("kind", "dialect"),
    [("werkzeug", "comet-0.38"), ("gevent", "comet-0.38"), ("gevent", "comet-0.40")],
)
def test_the_client_of_cometbft_understands_every_answer(
    kind: str, dialect: str, tmp_path: Path, go_programs: Path
) -> None:
    # Enough validators for two pages.
    write_home(tmp_path, {1: 10, 2: 9, 3: 8}, [1, 2, 3])

    with serving(kind, tmp_path / "chain.db", dialect=dialect) as server:
        ended = run_go_client(go_programs, server.url)

    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line for line in lines if "error" in line] == []
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [line["step"] for line in lines][-3:] == LAST_STEPS


def test_the_client_of_cometbft_does_not_understand_the_document_s_shapes(
    noderpc_url: str, go_programs: Path
) -> None:
    ended = run_go_client(go_programs, noderpc_url)

    assert ended.returncode == 1
    assert "error unmarshalling" in json.loads(ended.stdout.splitlines()[-1])["error"]


def run_go_client(programs: Path, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [programs / "rpc", url], capture_output=True, text=True, timeout=PATIENCE
    )
