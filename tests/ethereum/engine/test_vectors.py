"""Tests of state vectors: each leads to the root and the logs that the authors of Ethereum's
tests have found.

``NODERPC_STATE_TESTS`` names a folder of further vectors.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from flask_noderpc.ethereum.domain.forks import FORKS

from .vectors import Vector, run, vectors

GOLDEN = Path(__file__).parents[2] / "golden" / "evm_vectors.json.gz"
# No vectors of these forks were found.
WITHOUT = {"prague", "bpo1", "bpo2"}


def golden(fork: str) -> list[Vector]:
    found = (Vector(**row) for row in json.loads(gzip.decompress(GOLDEN.read_bytes())))
    return [each for each in found if each.fork == fork]


@pytest.mark.parametrize("fork", [name for name in FORKS if name not in WITHOUT])
def test_vectors_of_each_fork_lead_to_the_same_state(fork: str) -> None:
    found = golden(fork)
    assert found
    assert [f"{each.name}: {wrong}" for each in found if (wrong := run(each))] == []


@pytest.mark.skipif(
    "NODERPC_STATE_TESTS" not in os.environ, reason="NODERPC_STATE_TESTS names no folder"
)
def test_the_vectors_of_a_folder_lead_to_the_same_state() -> None:
    found = list(vectors(Path(os.environ["NODERPC_STATE_TESTS"])))
    assert found, "the folder has no vectors of a known fork"
    assert [f"{each.name}: {wrong}" for each in found if (wrong := run(each))] == []
