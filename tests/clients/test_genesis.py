"""Tests that CometBFT's own readers say of genesis documents what the recording has."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.comet.genesis_cases import COMETBFT, GOLDEN, ask
from tests.helpers.require import require_program

GO = Path(__file__).parent / "go"


@pytest.mark.parametrize("version", COMETBFT)
def test_the_recorded_readings_are_those_of_cometbft(tmp_path: Path, version: str) -> None:
    go, flags = require_program("go"), tuple[str, ...]()
    if version != "0.38":
        if os.environ.get("NODERPC_CAMPAIGN") != "long":
            pytest.skip("builds another CometBFT: NODERPC_CAMPAIGN=long")
        flags = (f"-modfile=cometbft-{version}.mod",)
    program = tmp_path / "genesis"
    subprocess.run(
        [go, "build", *flags, "-buildvcs=false", "-o", program, "./genesis"],
        cwd=GO,
        check=True,
        timeout=600,
    )

    found = ask(str(program))

    recorded = json.loads(gzip.decompress(GOLDEN.read_bytes()))["readers"][version]
    assert found == recorded
