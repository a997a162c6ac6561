"""Tests of the history of an address: recorded calls against a scan of all traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.base.location import location_of
from flask_noderpc.chain.from_settings import application_named
from flask_noderpc.ethereum.application.patches import app_state
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.lru import CacheMemory
from flask_noderpc.settings import Settings
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.cosmos_txs import cosmos_evm_message, wrapped
from tests.ethereum.protocol.signing import CHAIN_ID, TO, sender
from tests.helpers.until import PATIENT

from .chain import ethereum_chain, transfer
from .dev.fixtures import chain_of, dev_app
from .trace_chain import RICH, transaction

API = "eth,net,web3,debug,trace,ots,noderpc"
METHOD = "noderpc_getTransactionsByAddress"
SENDERS = [f"0x{key.address.hex()}" for key in DEV_KEYS[:3]]
STRANGERS = [bytes((0xA0 + number,)) * 20 for number in range(3)]


class Node:
    """A chain that makes a block on request."""

    def __init__(self, chain: EmbeddedChain, app: Flask) -> None:
        self.chain, self.app = chain, app
        self._client = app.test_client()

    def ask(self, method: str, *params: Any) -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._client.post("/evm", json=call).get_json()
        return answer["result"] if "result" in answer else answer["error"]["message"]

    def send(self, **tx: Any) -> str:
        """Submit a transaction with much gas; return its hash."""
        sent: str = self.ask("eth_sendTransaction", {"gas": hex(900_000), **tx})
        assert len(sent) == 66, sent
        return sent

    def made(self, **tx: Any) -> dict[str, Any]:
        """Return the receipt of a transaction, in a block of its own."""
        sent = self.send(**tx)
        self.chain.produce()
        found: dict[str, Any] = self.ask("eth_getTransactionReceipt", sent)
        return found

    @property
    def height(self) -> int:
        return int(self.ask("eth_blockNumber"), 16)

    def history(self, address: str, **options: Any) -> list[dict[str, Any]]:
        """Return all transactions of an address, page by page."""
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = self.ask(METHOD, address, {**options, "cursor": cursor})
            found += page["transactions"]
            cursor = page["cursor"]
            if cursor is None:
                return found
            assert len(page["transactions"]) == options["limit"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with development(tmp_path_factory.mktemp("history")) as made:
        yield made


@contextmanager
def development(folder: Path) -> Iterator[Node]:
    app = dev_app(folder, evm_api=API)
    with closing(chain_of(app)) as chain:
        yield Node(chain, app)


# Programs.


def push(value: int | bytes) -> bytes:
    if isinstance(value, int):
        value = value.to_bytes(max(1, (value.bit_length() + 7) // 8))
    return bytes((0x5F + len(value),)) + value


def call(to: bytes, value: int = 0) -> bytes:
    return push(0) * 4 + push(value) + push(to) + b"\x5a\xf1\x50"


def static_call(to: bytes) -> bytes:
    return push(0) * 4 + push(to) + b"\x5a\xfa\x50"


def delegate_call(to: bytes) -> bytes:
    return push(0) * 4 + push(to) + b"\x5a\xf4\x50"


def create(init: bytes, value: int = 0, salt: int | None = None) -> bytes:
    """Create a contract with at most 32 bytes of init code."""
    stored = push(init) + push(0) + b"\x52"
    own = b"" if salt is None else push(salt)
    place = own + push(len(init)) + push(32 - len(init)) + push(value)
    return stored + place + (b"\xf0" if salt is None else b"\xf5") + b"\x50"


def self_destruct(to: bytes) -> bytes:
    return push(to) + b"\xff"


REVERT, INVALID = push(0) * 2 + b"\xfd", b"\xfe"


def deploying(code: bytes) -> bytes:
    """Return init code that returns a contract's code."""
    size = len(code).to_bytes(2)
    # PUSH2 size, PUSH1 length of this, PUSH1 0, CODECOPY; PUSH2 size, PUSH1 0, RETURN.
    head = b"\x61" + size + b"\x60\x0d" + b"\x60\x00\x39\x61" + size + b"\x60\x00\xf3"
    return head.replace(b"\x60\x0d", bytes((0x60, len(head)))) + code


targets = st.sampled_from([*STRANGERS, bytes(19) + b"\x04", DEV_KEYS[2].address])
values = st.sampled_from([0, 0, 1, 1 << 200])
# The third one is CALLER, SELFDESTRUCT.
inits = st.sampled_from([push(0), REVERT, b"\x33\xff", self_destruct(STRANGERS[1])])
pieces = st.one_of(
    st.builds(call, targets, values),
    st.builds(static_call, targets),
    st.builds(delegate_call, targets),
    st.builds(create, inits, st.sampled_from([0, 1])),
    st.builds(create, inits, st.just(0), st.integers(1, 1 << 60)),
    st.builds(self_destruct, targets),
    st.sampled_from([REVERT, INVALID]),
)
programs = st.lists(pieces, max_size=5).map(b"".join)


def traced(node: Node, first: int) -> dict[str, list[str]]:
    """Return the hashes of the transactions of each address in the traces of all blocks."""
    found: dict[str, list[str]] = {}
    for height in range(first, node.height + 1):
        for trace in node.ask("trace_block", hex(height)):
            action, result = trace["action"], trace.get("result") or {}
            named = [action.get(name) for name in ("from", "to", "address", "refundAddress")]
            for address in {*named, result.get("address")} - {None}:
                hashes = found.setdefault(address, [])
                if trace["transactionHash"] not in hashes:
                    hashes.append(trace["transactionHash"])
    return found


def checked(node: Node, first: int, limit: int) -> None:
    """Check the history of each address in the traces since a height."""
    for address, hashes in traced(node, first).items():
        options = {"fromBlock": hex(first), "limit": limit}
        found = node.history(address, **options, order="asc")
        assert [each["transaction"]["hash"] for each in found] == hashes
        assert node.history(address, **options) == found[::-1]
        direct = node.history(address, **options, order="asc", internal=False)
        assert direct == [each for each in found if not each["internal"]]
        for each in found:
            _check_operations(node, address, each)
        _check_filter(node, address, first)


def _check_filter(node: Node, address: str, first: int) -> None:
    """Check that ``trace_filter`` finds what is in the traces of the blocks."""
    wanted = {"fromBlock": hex(first), "fromAddress": [address], "toAddress": [address]}
    found = node.ask("trace_filter", wanted)
    # Without addresses all blocks are read.
    every = node.ask("trace_filter", {"fromBlock": hex(first)})
    assert found == [trace for trace in every if address in _parties(trace)]


def _parties(trace: dict[str, Any]) -> list[str | None]:
    """Return the sender and the recipient of a call, a creation or a self-destruction."""
    action, result = trace["action"], trace.get("result") or {}
    recipient = action.get("to") or action.get("refundAddress") or result.get("address")
    return [action.get("from") or action.get("address"), recipient]


def _check_operations(node: Node, address: str, found: dict[str, Any]) -> None:
    tx_hash = found["transaction"]["hash"]
    kinds = ["CALL", "SELFDESTRUCT", "CREATE", "CREATE2"]
    assert found["operations"] == [
        {**each, "type": kinds[each["type"]]}
        for each in node.ask("ots_getInternalOperations", tx_hash)
        if address in (each["from"], each["to"])
    ]


@settings(max_examples=15, deadline=None)
@given(
    inner=programs,
    outer=programs,
    created=programs,
    sent=st.sampled_from([0, 5]),
    change=st.sampled_from(["nothing", "reorg", "rollback", "revert"]),
    limit=st.integers(1, 4),
)
@pytest.mark.hypothesis
def test_a_history_equals_a_scan_of_all_traces(
    node: Node, inner: bytes, outer: bytes, created: bytes, sent: int, change: str, limit: int
) -> None:
    first = node.height + 1
    deployed = node.made(**{"from": SENDERS[0]}, data=f"0x{deploying(inner).hex()}")
    target = bytes.fromhex(deployed["contractAddress"][2:])
    program = deploying(call(target) + outer + call(target, 1))
    caller = node.made(**{"from": SENDERS[1]}, data=f"0x{program.hex()}")["contractAddress"]
    snapshot = node.ask("evm_snapshot")
    for each in SENDERS:
        node.send(**{"from": each, "to": caller, "value": hex(sent)})
    node.send(**{"from": SENDERS[0], "value": hex(sent)}, data=f"0x{(push(0) + created).hex()}")
    node.chain.produce()
    node.made(**{"from": SENDERS[2], "to": SENDERS[1]}, value="0x1")
    if change == "reorg":
        node.ask("anvil_reorg", 2, [])
    elif change == "rollback":
        node.ask("anvil_rollback", 1)
    elif change == "revert":
        node.ask("evm_revert", snapshot)
    checked(node, first, limit)


def test_a_filter_by_address_covers_more_blocks(node: Node) -> None:
    first = node.height + 1
    lonely = "0x" + "1e" * 20
    hashes = [node.made(**{"from": SENDERS[0], "to": lonely})["transactionHash"]]
    node.ask("anvil_mine", hex(310))
    hashes.append(node.made(**{"from": SENDERS[0], "to": lonely})["transactionHash"])
    wanted = {"fromBlock": hex(first), "toAddress": [lonely]}
    found = node.ask("trace_filter", wanted)
    assert [trace["transactionHash"] for trace in found] == hashes
    assert "block range too large" in node.ask("trace_filter", {"fromBlock": hex(first)})
    assert "at most 300 addresses" in node.ask("trace_filter", {"fromAddress": [lonely] * 301})


def test_a_plain_transfer_records_nothing(node: Node) -> None:
    receipt = node.made(**{"from": SENDERS[0], "to": SENDERS[1], "value": "0x1"})
    height = int(receipt["blockNumber"], 16)
    (result,) = node.chain.reads.results(height).tx_results
    assert [event.type for event in result.events] == ["ethereum_tx", "tx_log", "message"]


def test_calls_are_found_by_event_queries(node: Node) -> None:
    code = deploying(call(STRANGERS[0]))
    deployed = node.made(**{"from": SENDERS[0]}, data=f"0x{code.hex()}")
    receipt = node.made(**{"from": SENDERS[0], "to": deployed["contractAddress"]})
    stranger = f"0x{STRANGERS[0].hex()}"
    height = int(receipt["blockNumber"], 16)
    query = f"\"evm_calls.account='{stranger}' AND tx.height={height}\""
    found = node.app.test_client().get("/tx_search", query_string={"query": query})
    assert found.get_json()["result"]["total_count"] == "1"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"limit": 0}, "limit: expected a number from 1 to 100, got '0'"),
        ({"limit": 101}, "limit: expected a number from 1 to 100, got '101'"),
        ({"limit": "latest"}, "limit: expected a number from 1 to 100, got 'latest'"),
        ({"limit": True}, "limit: expected a number from 1 to 100, got 'True'"),
        ({"order": "newest"}, "order: expected asc or desc, got 'newest'"),
        ({"cursor": "7"}, "cursor: expected the cursor of an earlier page, such as 120.3"),
        ({"cursor": 7}, "cannot unmarshal number into Go value of type string"),
        ({"page": 2}, "expected options from cursor, limit, order"),
        ({"internal": "no"}, "cannot unmarshal string into Go value of type bool"),
        ([], "cannot unmarshal array into Go value of type HistoryOptions"),
    ],
)
def test_a_wrong_option_is_refused(node: Node, options: Any, text: str) -> None:
    assert text in node.ask(METHOD, SENDERS[0], options)


def test_an_address_without_transactions(node: Node) -> None:
    found = node.ask(METHOD, "0x" + "1b" * 20)
    assert found["transactions"] == []
    assert (found["cursor"], found["missing"], found["fromBlock"]) == (None, [], "0x1")
    beyond = node.ask(METHOD, SENDERS[0], {"fromBlock": hex(1 << 40), "cursor": "99.1"})
    assert beyond["transactions"] == []


def test_what_was_pruned_is_named(tmp_path: Path) -> None:
    with development(tmp_path) as node:
        pair = {"from": SENDERS[0], "to": SENDERS[1]}
        hashes = [node.made(**pair)["transactionHash"] for _ in range(4)]
        node.ask("anvil_mine", hex(260))
        node.chain.store.prune(262)
        page = node.ask(METHOD, SENDERS[1], {"order": "asc"})
        assert [each["transaction"]["hash"] for each in page["transactions"]] == hashes[2:]
        pruned = {"fromBlock": "0x1", "toBlock": "0x2", "reason": "pruned"}
        assert page["missing"] == [pruned]
        assert node.ask(METHOD, SENDERS[1], {"fromBlock": "0x3"})["missing"] == []
        before = node.ask("ots_searchTransactionsBefore", SENDERS[1], 0, 5)
        assert [each["hash"] for each in before["txs"]] == hashes[:1:-1]
        assert node.ask("ots_searchTransactionsAfter", SENDERS[1], 0, 5)["txs"] == before["txs"]


@contextmanager
def recording(folder: Path, *, on: bool) -> Iterator[Node]:
    """Yield a chain without development methods that records internal calls or not."""
    path = folder / "noderpc.db"
    own = Settings().changed(evm_record_calls=on, evm_chain_id=CHAIN_ID)
    application = application_named("evm", own, location_of(path).path, CacheMemory())
    state = app_state({sender(): RICH})
    with closing(
        EmbeddedChain(path, application=application, app_state=state, produce=False)
    ) as chain:
        chain.start()
        settings = {**PATIENT, "evm_chain_id": CHAIN_ID}
        apis = tuple(API.split(","))
        yield Node(chain, app_for(chain, json_rpc_enable=True, evm_api=apis, **settings))


def test_what_was_not_recorded_is_named(tmp_path: Path) -> None:
    code = f"0x{deploying(call(STRANGERS[0])).hex()}"
    stranger, reason = f"0x{STRANGERS[0].hex()}", "internal calls not recorded"

    def of_stranger(node: Node) -> tuple[int, list[list[str]]]:
        page = node.ask(METHOD, stranger)
        missing = page["missing"]
        assert all(each["reason"].startswith(reason) for each in missing)
        return len(page["transactions"]), [[m["fromBlock"], m["toBlock"]] for m in missing]

    def called(node: Node, **fields: Any) -> dict[str, Any]:
        nonce = int(node.ask("eth_getTransactionCount", f"0x{sender().hex()}", "latest"), 16)
        raw = transaction(nonce, **fields)
        sent = node.ask("eth_sendRawTransaction", f"0x{raw.hex()}")
        node.chain.produce()
        found: dict[str, Any] = node.ask("eth_getTransactionReceipt", sent)
        return found

    with recording(tmp_path, on=False) as node:
        deployed = called(node, data=code)["contractAddress"]
        called(node, to=bytes.fromhex(deployed[2:]))
        assert of_stranger(node) == (0, [["0x1", "0x2"]])
        direct = node.ask(METHOD, f"0x{sender().hex()}", {"internal": False})
        assert (len(direct["transactions"]), direct["missing"]) == (2, [])
        creator = node.ask("ots_getContractCreator", deployed)["creator"]
        assert creator == f"0x{sender().hex()}"
        (creation,) = node.ask(METHOD, deployed, {"order": "asc", "limit": 1})["transactions"]
        assert creation["contractAddress"] == deployed
    with recording(tmp_path, on=True) as node:
        called(node, to=bytes.fromhex(deployed[2:]))
        assert of_stranger(node) == (1, [["0x1", "0x2"]])
    with recording(tmp_path, on=False) as node:
        called(node, to=bytes.fromhex(deployed[2:]))
        assert of_stranger(node) == (1, [["0x1", "0x4"]])


# Otterscan.


def test_otterscan_methods_agree_with_the_traces(node: Node) -> None:
    code = deploying(
        call(STRANGERS[0], 1)
        + static_call(STRANGERS[1])
        + create(b"\x33\xff", 1)
        + create(push(0), 0, 7)
        + create(REVERT, 2)
    )
    deployed = node.made(**{"from": SENDERS[0]}, data=f"0x{code.hex()}")
    contract = deployed["contractAddress"]
    receipt = node.made(
        **{"from": SENDERS[0], "to": contract, "value": "0x9"}, data="0x01020304"
    )
    tx_hash, height = receipt["transactionHash"], int(receipt["blockNumber"], 16)

    assert node.ask("ots_getApiLevel") == 8
    assert node.ask("ots_hasCode", contract, "latest") is True
    assert node.ask("ots_hasCode", contract, height - 2) is False
    assert node.ask("ots_hasCode", SENDERS[0]) is False
    creator = {"hash": deployed["transactionHash"], "creator": SENDERS[0]}
    assert node.ask("ots_getContractCreator", contract) == creator
    calls = node.ask("ots_traceTransaction", tx_hash)
    assert [(each["type"], each["depth"], each["value"]) for each in calls] == [
        ("CALL", 0, "0x9"),
        ("CALL", 1, "0x1"),
        ("STATICCALL", 1, None),
        ("CREATE", 1, "0x1"),
        ("SELFDESTRUCT", 2, "0x1"),
        ("CREATE2", 1, "0x0"),
        ("CREATE", 1, "0x2"),
    ]
    operations = node.ask("ots_getInternalOperations", tx_hash)
    assert [(each["type"], each["value"]) for each in operations] == [
        (0, "0x1"),
        (2, "0x1"),
        (1, "0x1"),
        (3, "0x0"),
    ]
    for operation in operations:
        if operation["type"] >= 2:
            made = node.ask("ots_getContractCreator", operation["to"])
            assert made == {"hash": tx_hash, "creator": contract}
    nonce = node.ask("eth_getTransactionByHash", tx_hash)["nonce"]
    assert node.ask("ots_getTransactionBySenderAndNonce", SENDERS[0], nonce) == tx_hash
    assert node.ask("ots_getTransactionBySenderAndNonce", SENDERS[0], hex(10**6)) is None
    assert node.ask("ots_getTransactionError", tx_hash) == "0x"
    for method in ("TransactionError", "InternalOperations"):
        assert node.ask(f"ots_get{method}", "0x" + "00" * 32) == "transaction not found"


def test_the_data_of_a_revert(node: Node) -> None:
    # MSTORE8 of 0xab at 0, then REVERT with that byte; and an invalid opcode.
    reverting = bytes.fromhex("60ab60005360016000fd")
    receipt = node.made(**{"from": SENDERS[0]}, data=f"0x{reverting.hex()}")
    assert node.ask("ots_getTransactionError", receipt["transactionHash"]) == "0xab"
    receipt = node.made(**{"from": SENDERS[0]}, data="0xfe")
    assert node.ask("ots_getTransactionError", receipt["transactionHash"]) == "0x"


def test_blocks_as_otterscan_shows_them(node: Node) -> None:
    pair = {"from": SENDERS[0], "to": SENDERS[1]}
    hashes = [node.send(**pair, data="0x0102030405") for _ in range(5)]
    node.chain.produce()
    height = node.height
    whole = node.ask("eth_getBlockByNumber", hex(height), True)
    details = node.ask("ots_getBlockDetails", height)
    assert details == node.ask("ots_getBlockDetailsByHash", whole["hash"])
    receipts = node.ask("eth_getBlockReceipts", hex(height))
    fees = sum(int(r["gasUsed"], 16) * int(r["effectiveGasPrice"], 16) for r in receipts)
    assert details["totalFees"] == hex(fees)
    assert details["issuance"] == dict.fromkeys(
        ("blockReward", "uncleReward", "issuance"), "0x0"
    )
    expected = {**whole, "logsBloom": None, "transactionCount": 5}
    del expected["transactions"]
    assert details["block"] == expected

    shown: list[str] = []
    for number in range(4):
        page = node.ask("ots_getBlockTransactions", height, number, "0x2")
        assert page["fullblock"]["transactionCount"] == 5
        txs = page["fullblock"]["transactions"]
        assert {tx["input"] for tx in txs} <= {"0x01020304"}
        assert [r["transactionHash"] for r in page["receipts"]] == [tx["hash"] for tx in txs]
        assert all(r["logs"] is r["logsBloom"] is None for r in page["receipts"])
        shown = [tx["hash"] for tx in txs] + shown
    # The first page has the last transactions.
    assert shown == hashes
    for method in ("Details", "Transactions"):
        more = (0, 25) if method == "Transactions" else ()
        assert node.ask(f"ots_getBlock{method}", hex(1 << 50), *more) is None
    assert "pageSize: expected a number" in node.ask("ots_getBlockTransactions", 1, 0, 1000)


def test_searches_around_a_block(node: Node) -> None:
    first = node.height + 1
    pair = {"from": SENDERS[2], "to": "0x" + "5e" * 20}
    hashes: list[str] = []
    for _ in range(3):
        hashes += [node.send(**pair) for _ in range(2)]
        node.chain.produce()
    newest = hashes[::-1]

    def searched(way: str, block: int, size: int) -> tuple[list[str], bool, bool]:
        found = node.ask(f"ots_searchTransactions{way}", pair["to"], block, size)
        assert [each["transactionHash"] for each in found["receipts"]] == [
            each["hash"] for each in found["txs"]
        ]
        assert all(int(each["timestamp"], 16) > 0 for each in found["receipts"])
        return [e["hash"] for e in found["txs"]], found["firstPage"], found["lastPage"]

    # The last block of a page is complete, so a page of 3 has 4 transactions.
    assert searched("Before", 0, 3) == (newest[:4], True, False)
    assert searched("Before", first + 1, 3) == (newest[4:], False, True)
    assert searched("After", 0, 1) == (newest[4:], False, True)
    assert searched("After", first, 3) == (newest[:4], True, False)
    assert searched("Before", 0, 100) == (newest, True, True)
    assert searched("After", first + 2, 3) == ([], True, False)


def test_a_chain_like_ethermint_has_direct_transactions(chain: EmbeddedChain) -> None:
    app = app_for(chain, json_rpc_enable=True, evm_api=tuple(API.split(",")))
    node = Node(chain, app)
    raws = [raw for height in (2, 3) for raw in chain.reads.block(height)[1].txs]
    hashes = [f"0x{decode(raw).hash.hex()}" for raw in raws]
    mine, theirs = node.ask(METHOD, f"0x{sender().hex()}"), node.ask(METHOD, TO)
    assert [each["transaction"]["hash"] for each in mine["transactions"]] == hashes[::-1]
    assert [each["transaction"]["hash"] for each in theirs["transactions"]] == hashes[:1]
    (missing,) = mine["missing"]
    assert (missing["fromBlock"], missing["toBlock"]) == ("0x1", "0x3")
    assert missing["reason"].startswith("internal calls may not be recorded")
    assert node.ask(METHOD, TO, {"internal": False})["missing"] == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_pages_of_several_transactions_in_one(tmp_path: Path, limit: int) -> None:
    """Transactions of the Cosmos SDK with several of Ethereum are divided among pages."""
    with closing(ethereum_chain(tmp_path)) as chain:
        for first, count in ((3, 3), (6, 2), (8, 1)):
            messages = [cosmos_evm_message(transfer(first + each)) for each in range(count)]
            chain.mempool.submit(wrapped(*messages))
            chain.produce()
        node = Node(chain, app_for(chain, json_rpc_enable=True, evm_api=tuple(API.split(","))))
        own = f"0x{sender().hex()}"
        found = node.history(own, limit=limit, order="asc")
        nonces = [int(each["transaction"]["nonce"], 16) for each in found]
        assert nonces == list(range(9))
        assert node.history(own, limit=limit) == found[::-1]


def test_a_deep_transaction_has_its_calls(node: Node) -> None:
    # Call this contract itself with the gas that is left, until the gas does not suffice.
    code = bytes.fromhex("60006000600060006000305af100")
    deployed = node.made(**{"from": SENDERS[0]}, data=f"0x{deploying(code).hex()}")
    receipt = node.made(
        **{"from": SENDERS[0], "to": deployed["contractAddress"], "gas": hex(14_000_000)}
    )
    calls = node.ask("ots_traceTransaction", receipt["transactionHash"])
    depths = [each["depth"] for each in calls]
    assert depths == list(range(len(calls)))
    assert len(calls) > 300
    assert node.ask("ots_getInternalOperations", receipt["transactionHash"]) == []
