"""Tests of filter objects, their ranges and matches, compared with geth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc import MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.errors import ResultNotFound
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.signing import transfer
from tests.helpers.stores import make_store

from .transcript import Exchange, exchanges
from .transports import TRANSPORTS, Say, talking

A, B = b"\xaa" * 32, b"\xbb" * 32


@cache
def sample() -> SampleChain:
    """Return the chain of ``transcripts/log_topics.txt``."""
    maker = ChainMaker(application=EthermintDouble)

    def call(nonce: int, number: int, *topics: tuple[bytes, ...]) -> bytes:
        data = log_calldata(*map(EmittedLog, topics))
        to = to_checksum(log_contract(number))
        return transfer(nonce, to=to, value=0, data=data, gas=200_000)

    blocks = (
        maker.block(),
        maker.block(call(0, 1, (), (A,)), call(1, 1, (A, B))),
        maker.block(call(2, 2, (B, A)), call(3, 1, (A, B, B, A))),
    )
    return SampleChain(maker.genesis, maker.state, blocks)


def scanned() -> ChainBackend:
    chain = sample()
    return ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))


@pytest.fixture(scope="module", params=["scanned", "indexed"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FlaskClient]:
    if request.param == "scanned":
        yield client_of(scanned())
        return
    with closing(indexed(tmp_path_factory.mktemp("logs"))) as backend:
        yield client_of(backend)


@pytest.fixture(scope="module", params=TRANSPORTS)
def say(request: pytest.FixtureRequest, client: FlaskClient) -> Iterator[Say]:
    with talking(client.application, request.param) as talk:
        yield talk


def indexed(folder: Path) -> ChainStore:
    chain = sample()
    backend: ChainStore = make_store(folder / "chain.db")
    backend.init_chain(chain.genesis, chain.state)
    backend.append_block(*chain.blocks)
    return backend


def client_of(backend: Any, **settings: Any) -> FlaskClient:
    return app_for(backend, json_rpc_enable=True, **settings).test_client()


def ask(client: FlaskClient, method: str, *params: object) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = client.post("/evm", json=body).get_json()
    return answer.get("result", answer.get("error"))


def hashes(client: FlaskClient) -> dict[str, str]:
    """Return the hashes that the transcripts name."""
    return {
        f"HASH{height}": ask(client, "eth_getBlockByNumber", hex(height), False)["hash"]
        for height in (0, 2)
    }


def reduced(answer: str) -> str:
    """Return the response with each log replaced by its block and its index there."""
    reply = json.loads(answer)
    if isinstance(reply.get("result"), list):
        reply["result"] = [
            f"{int(log['blockNumber'], 16)}:{int(log['logIndex'], 16)}"
            for log in reply["result"]
        ]
    return json.dumps(reply, separators=(",", ":"))


@pytest.mark.parametrize(
    "exchange",
    [
        *exchanges("filter_objects"),
        *exchanges("log_ranges"),
        *exchanges("log_topics"),
    ],
    ids=lambda exchange: exchange.name,
)
def test_a_filter_is_read_and_answered_as_geth_does(
    client: FlaskClient, say: Say, exchange: Exchange
) -> None:
    sent = exchange.sent
    for name, own in hashes(client).items():
        sent = sent.replace(name, own)

    assert reduced(say(sent)) == exchange.answer


@pytest.mark.parametrize("count", [1_001, 70_000])
@pytest.mark.parametrize("method", ["eth_getLogs", "eth_newFilter"])
def test_too_many_alternatives_are_refused(
    client: FlaskClient, method: str, count: int
) -> None:
    for expected in (
        {"address": ["0x" + "12" * 20] * count},
        {"topics": [None, ["0x" + "aa" * 32] * count]},
    ):
        refused = ask(client, method, expected)
        assert refused == {
            "code": -32602,
            "message": "invalid argument 0: exceed max addresses or topics per search position",
        }


def test_a_thousand_alternatives_are_taken(client: FlaskClient) -> None:
    expected = {
        "fromBlock": "0x0",
        "address": ["0x" + "12" * 20] * 999 + ["0x" + log_contract(2).hex()],
        "topics": [["0x" + "cc" * 32] * 999 + ["0x" + B.hex()], None],
    }

    assert len(ask(client, "eth_getLogs", expected)) == 1


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"evm_block_range_cap": 2}, "exceed maximum block range 2"),
        ({"evm_logs_cap": 4}, "query returned more than 4 results"),
        ({"search_timeout": 1e-9}, "the search was not done within"),
    ],
)
def test_a_log_query_beyond_the_limit_is_refused(
    tmp_path: Path, settings: dict[str, Any], text: str
) -> None:
    (setting,) = settings
    with closing(indexed(tmp_path)) as stored:
        for backend in (stored, scanned()):
            refused = ask(client_of(backend, **settings), "eth_getLogs", {"fromBlock": "0x0"})
            assert refused["message"].startswith(text)
            assert f"NODERPC_{setting.upper()}" in refused["message"]


def test_a_cap_counts_the_difference(client: FlaskClient) -> None:
    expected = {"fromBlock": "0x0"}

    assert len(ask(client_of(scanned(), evm_block_range_cap=3), "eth_getLogs", expected)) == 5
    assert len(ask(client_of(scanned(), evm_logs_cap=5), "eth_getLogs", expected)) == 5


class Pruned(MemoryChain):
    """A node that has pruned its first two blocks."""

    def base_height(self) -> int:
        return 3


class Late(MemoryChain):
    """A foreign node that gets the results of its last block late."""

    is_late = True

    def results(self, height: int) -> BlockResults:
        if self.is_late and height == self.latest_height():
            raise ResultNotFound("not yet")
        return super().results(height)


@pytest.mark.parametrize("last", ["0x1", "0x3"])
def test_logs_of_pruned_blocks_are_an_error_and_not_omitted(last: str) -> None:
    pruned = ChainBackend(Pruned(sample().genesis, sample().blocks, state=sample().state))

    refused = ask(client_of(pruned), "eth_getLogs", {"fromBlock": "0x0", "toBlock": last})

    assert refused == {"code": 4444, "message": "pruned history unavailable"}


def test_logs_that_can_not_be_read_yet_are_not_left_out() -> None:
    late = ChainBackend(Late(sample().genesis, sample().blocks, state=sample().state))

    refused = ask(client_of(late), "eth_getLogs", {"fromBlock": "0x0"})

    assert refused["code"] == -32000
    assert refused["message"].endswith("can't be read yet; try again")


def test_a_filter_waits_for_logs_that_can_not_be_read_yet() -> None:
    maker = ChainMaker(application=EthermintDouble)
    late = Late(maker.genesis, [maker.block()], state=maker.state)
    client = client_of(ChainBackend(late))
    request_id = ask(client, "eth_newFilter", {})
    logs = log_calldata(EmittedLog((A,)))
    call = transfer(0, to=to_checksum(log_contract(1)), value=0, data=logs, gas=200_000)

    late.append_block(maker.block(call))
    assert ask(client, "eth_getFilterChanges", request_id)["code"] == -32000
    late.is_late = False
    assert len(ask(client, "eth_getFilterChanges", request_id)) == 1


def test_a_chain_that_begins_later_has_no_logs_before() -> None:
    maker = ChainMaker(application=EthermintDouble, initial_height=50)
    client = client_of(
        ChainBackend(MemoryChain(maker.genesis, [maker.block()], state=maker.state))
    )

    assert ask(client, "eth_getLogs", {"fromBlock": "0x0", "toBlock": "0x5"}) == []
    assert ask(client, "eth_getLogs", {"fromBlock": "earliest"}) == []


@pytest.mark.parametrize("first", ["earliest", "0x0", "0x9", hex(1_000_000)])
def test_only_heights_that_have_blocks_count_for_a_range(first: str) -> None:
    maker = ChainMaker(application=EthermintDouble, initial_height=1_000_000)
    logs = log_calldata(EmittedLog((A,)))
    call = transfer(0, to=to_checksum(log_contract(1)), value=0, data=logs, gas=200_000)
    blocks = [maker.block(call), maker.block(), maker.block()]
    client = client_of(
        ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state)),
        evm_block_range_cap=3,
    )
    expected = {"fromBlock": first, "toBlock": hex(1_000_002)}

    (log,) = ask(client, "eth_getLogs", expected)
    request_id = ask(client, "eth_newFilter", expected)

    assert log["blockNumber"] == hex(1_000_000)
    assert ask(client, "eth_getFilterLogs", request_id) == [log]
    assert ask(client, "eth_getBlockByNumber", "earliest", False)["number"] == "0x0"
    too_long = {"fromBlock": first, "toBlock": hex(1_000_099)}
    assert "exceed maximum" in ask(client, "eth_newFilter", too_long)["message"]
