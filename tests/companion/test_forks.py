"""Tests of replies of chains that are not plain CometBFT: they are decoded, or refused with a
reason."""

from __future__ import annotations

import base64
import json
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from flask_noderpc import DIALECTS, SQLiteBackend
from flask_noderpc.companion.growth import are_proven
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.domain.abci import BlockResults, ExecTxResult
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.testing import SampleChain

from .conftest import HEIGHTS, LIMITS, Serve, import_all, node_of, upstreams_at
from .raw_node import raw_node, results
from .test_lies import Liar

# ConsensusParams in protobuf: bytes and gas of a block, and the key type ed25519.
PARAMS = bytes.fromhex("0a10088080800210ffffffffffffffffff011a090a0765643235353139")


def read_results(shown: dict[str, Any], dialect: str) -> BlockResults:
    """Read the results of block 5 from a node that gives this response."""
    with raw_node(results({"height": "5", **shown})) as url:
        node = Upstream(url, dialect=dialect, limits=LIMITS)
        with closing(node):
            return Reader(node).results(5)


@pytest.mark.parametrize("dialect", ["comet-0.34", "comet-0.37", "comet-0.38"])
def test_zeros_that_are_left_out(dialect: str) -> None:
    """Sei's nodes omit zeros in the members of a transaction's result."""
    failed = {"code": 32, "log": "account sequence mismatch", "codespace": "sdk"}
    shown = {
        "txs_results": [failed, {"data": "CgEB", "log": "[]"}, {}],
        "begin_block_events": None,
        "end_block_events": None,
        "finalize_block_events": None,
        "validator_updates": None,
        "consensus_param_updates": None,
        "app_hash": "",
    }
    found = read_results(shown, dialect)
    assert tuple(replace(each, form=b"") for each in found.tx_results) == (
        ExecTxResult(32, log="account sequence mismatch", codespace="sdk"),
        ExecTxResult(data=b"\n\x01\x01", log="[]"),
        ExecTxResult(),
    )
    answered = json.loads(DIALECTS[dialect].encode(found))
    assert answered == {"height": "5", **shown}


def test_results_in_the_layout_of_an_older_version(
    chain: SampleChain, serve_node: Serve, store: SQLiteBackend
) -> None:
    """dYdX's nodes served this after an upgrade: well-formed results that a header refutes."""
    member = {
        "code": 0, "data": base64.b64encode(PARAMS).decode(), "log": "", "info": "",
        "gas_wanted": "0", "gas_used": "0", "events": [], "codespace": "",
    }  # fmt: skip
    shown = {
        "txs_results": [member],
        "finalize_block_events": [],
        "validator_updates": [],
        "consensus_param_updates": None,
        "app_hash": "",
    }
    found = read_results(shown, "comet-0.38")
    assert found.tx_results[0].data == PARAMS
    above = chain.blocks[5].block.header
    honest = hashes.results_hash([ExecTxResult()])
    assert not are_proven(found, replace(above, last_results_hash=honest))

    node = Liar(node_of(chain))
    node.of_results = lambda results: replace(
        results, tx_results=tuple(replace(each, data=PARAMS) for each in results.tx_results)
    )
    lying = serve_node(node)
    upstreams = upstreams_at(lying, serve_node(node_of(chain)))
    import_all(store, upstreams, 1, HEIGHTS)
    assert set(upstreams.refused) == {lying}
    assert "results" in upstreams.refused[lying]
    assert store.reads.results(5) == chain.blocks[4].results
