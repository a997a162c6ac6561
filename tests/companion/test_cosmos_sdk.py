"""Tests of differences between nodes of the Cosmos SDK and of the kvstore."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flask_noderpc import DIALECTS, MemoryChain, SQLiteBackend
from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.companion.forward import ForwardedApplication
from flask_noderpc.companion.pool import Upstreams
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.domain.genesis import BlockParams, ConsensusParams, ConsensusParamsUpdate
from flask_noderpc.domain.responses import ResultABCIQuery
from flask_noderpc.testing.chains import ChainMaker

from .conftest import HEIGHTS, Serve, import_all, upstreams_at
from .raw_node import raw_node, results
from .test_lies import Liar


@pytest.mark.parametrize("value", [None, "", "Cgh0b2tlbg=="])
@pytest.mark.parametrize("key", [None, "", "a2V5"])
@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"document"}))
def test_a_query_has_the_key_and_the_value_that_its_node_says(
    dialect: str, key: str | None, value: str | None
) -> None:
    """A key is null for the methods of an SDK's modules, and a value may be empty."""
    told = {
        "response": {
            "code": 0,
            "log": "",
            "info": "",
            "index": "0",
            "key": key,
            "value": value,
            "proofOps": None,
            "height": "95396",
            "codespace": "",
        }
    }
    with raw_node(results(told)) as url:
        nodes = Upstreams([Reader(Upstream(url, dialect=dialect))], 0.0)
        path = "/cosmos.bank.v1beta1.Query/Balance"
        found = ForwardedApplication(nodes, lambda: 9).query(path, b"", 0, False)

    assert json.loads(DIALECTS[dialect].encode(ResultABCIQuery(found))) == told


class Repeating(KVStore):
    """An application with an update of the parameters in each block, like the SDK; few of them
    change anything."""

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        made = super().finalize_block(block)
        update = ConsensusParamsUpdate(block=BlockParams(2_000_000 + block.height // 30, -1))
        return replace(made, consensus_param_updates=update)


@pytest.mark.sqlite  # The test reads a table.
def test_parameters_that_each_block_repeats_are_asked_for_once_a_chunk(
    serve_node: Serve, store: SQLiteBackend, tmp_path: Path
) -> None:
    maker = ChainMaker((10, 7, 3), application=Repeating)
    blocks = [maker.block() for _ in range(HEIGHTS)]
    inner = ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state))
    node = Liar(inner)
    asked: list[ConsensusParams] = []

    def counted(params: ConsensusParams) -> ConsensusParams:
        asked.append(params)
        return params

    node.chain, node.of_params = maker.genesis.chain_id, counted
    assert import_all(store, upstreams_at(serve_node(node))) == (1, HEIGHTS - 1)

    # The store reads four chunks, and the height at which it begins.
    assert len(asked) <= 6
    for height in range(1, HEIGHTS):
        assert store.reads.consensus_params(height) == inner.reads.consensus_params(height)
    assert store.verify() == HEIGHTS - 1
    with closing(sqlite3.connect(tmp_path / "copy.db")) as at:
        (kept,) = at.execute("SELECT count(*) FROM consensus_params").fetchone()
    # The chain has four sets of parameters, the genesis' and three others, and each is stored
    # once.
    assert kept == 4
