"""CometBFT's own reader says of genesis documents what is recorded of it."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

from tests.comet.genesis_cases import GOLDEN, ask
from tests.helpers.require import require_program

GO = Path(__file__).parent / "go"


def test_the_recorded_readings_are_those_of_cometbft(tmp_path: Path) -> None:
    go = require_program("go")
    program = tmp_path / "genesis"
    subprocess.run(
        [go, "build", "-buildvcs=false", "-o", program, "./genesis"],
        cwd=GO,
        check=True,
        timeout=600,
    )

    found = ask(str(program))

    recorded = json.loads(gzip.decompress(GOLDEN.read_bytes()))["readers"]["0.38"]
    assert found == recorded
