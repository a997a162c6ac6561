"""Tests that a companion reads a node's genesis document like that version of CometBFT."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.upstream import NotDecoded, Upstream
from flask_noderpc.domain.genesis import ConsensusParams, Genesis
from flask_noderpc.domain.time import SECOND

PARAMS = {
    "block": {"max_bytes": "22020096", "max_gas": "-1"},
    "evidence": {
        "max_age_num_blocks": "100000",
        "max_age_duration": "172800000000000",
        "max_bytes": "1048576",
    },
    "validator": {"pub_key_types": ["ed25519"]},
}


def read(dialect: str = "comet-0.38", **changes: Any) -> Genesis:
    whole = {
        "genesis_time": "1970-01-01T00:00:09Z",
        "chain_id": "theirs",
        "initial_height": "3",
        "consensus_params": PARAMS,
        "app_hash": "",
    }
    document = json.dumps({**whole, **changes}).encode()
    return Reader(Upstream("http://127.0.0.1:1", dialect=dialect)).genesis_of(document)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"app_hash": None},
        {"validators": None},
        {"consensus_params": None},
        {"consensus_params": {**PARAMS, "version": None, "abci": None}},
    ],
)
def test_null_is_what_it_is_for_the_node(changes: dict[str, Any]) -> None:
    expected = Genesis("theirs", 9 * SECOND, 3, ConsensusParams())

    assert read(**changes) == expected


def test_the_version_is_that_of_the_node() -> None:
    feature = {"vote_extensions_enable_height": "7", "pbts_enable_height": "0"}
    params = {**PARAMS, "feature": feature}

    heights = [
        read(dialect, consensus_params=params).consensus_params.vote_extensions_enable_height
        for dialect in ("comet-0.38", "comet-1.0")
    ]

    assert heights == [0, 7]


def test_what_the_node_could_not_have_read_is_not_decoded() -> None:
    with pytest.raises(NotDecoded, match=r"genesis_chunked: .*app_hash: expected hexadecimal"):
        read(app_hash="xyz")
