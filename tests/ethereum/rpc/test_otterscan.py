"""Requests that the explorer Otterscan sends, page by page, and the members that it reads.

https://github.com/otterscan/otterscan, version 2.10: src/useProvider.ts, src/useErigonHooks.ts,
src/search/search.ts and src/utils/formatter.ts. Heights, nonces and page sizes are JSON numbers
where it sends a request itself, and hex strings where ethers does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from .dev.fixtures import chain_of, dev_app
from .test_address_history import (
    REVERT,
    SENDERS,
    STRANGERS,
    Node,
    call,
    create,
    delegate_call,
    deploying,
    push,
    static_call,
)

API = "eth,net,web3,trace,ots,erigon"
PAGE = 25
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
# keccak("Error(string)")[:4], and the arguments that ABI encodes.
REASON = "0x08c379a0" + f"{32:064x}{2:064x}" + b"no".hex().ljust(64, "0")
Reader = Callable[[Any], object]


# Values as Otterscan converts them.


def number(value: Any) -> int:
    return value if isinstance(value, int) else int(value, 16)


def of_size(size: int) -> Reader:
    def read(value: Any) -> None:
        assert value.startswith("0x")
        assert len(bytes.fromhex(value[2:])) == size

    return read


def data(value: Any) -> bytes:
    assert value.startswith("0x")
    return bytes.fromhex(value[2:])


def optional(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def several(read: Reader) -> Reader:
    return lambda value: [read(each) for each in value]


def members(readers: Mapping[str, Reader]) -> Reader:
    """Return a reader of an object: a missing member is read as null."""

    def read(value: Any) -> None:
        for name, read_member in readers.items():
            read_member(value.get(name))

    return read


address, digest = of_size(20), of_size(32)
HEADER = {
    **dict.fromkeys(("hash", "parentHash", "receiptsRoot", "stateRoot"), digest),
    **dict.fromkeys(("number", "timestamp", "difficulty", "gasLimit", "gasUsed"), number),
    **dict.fromkeys(("nonce", "extraData"), data),
    "miner": address,
    "baseFeePerGas": number,
}
header = members(HEADER)
details = members({**HEADER, "size": number, "sha3Uncles": digest, "transactionCount": number})
authorization = members(
    {
        **dict.fromkeys(("chainId", "nonce", "yParity", "r", "s"), number),
        "address": address,
    }
)
transaction = members(
    {
        **dict.fromkeys(("hash", "blockHash"), digest),
        **dict.fromkeys(("type", "gas", "gasPrice", "value", "nonce", "chainId"), number),
        **dict.fromkeys(("blockNumber", "transactionIndex", "r", "s", "v"), number),
        **dict.fromkeys(("maxFeePerGas", "maxPriorityFeePerGas"), optional(number)),
        "authorizationList": optional(several(authorization)),
        "from": address,
        "to": optional(address),
        "input": data,
    }
)
log = members(
    {
        **dict.fromkeys(("transactionHash", "blockHash"), digest),
        **dict.fromkeys(("transactionIndex", "blockNumber", "logIndex"), number),
        "topics": several(digest),
        "address": address,
        "data": data,
    }
)
RECEIPT = {
    **dict.fromkeys(("blockHash", "transactionHash"), digest),
    **dict.fromkeys(("to", "contractAddress"), optional(address)),
    **dict.fromkeys(("transactionIndex", "blockNumber", "cumulativeGasUsed", "type"), number),
    **dict.fromkeys(("gasUsed", "effectiveGasPrice", "status"), number),
    "from": address,
}
receipt = members({**RECEIPT, "logs": several(log), "logsBloom": data})
# The receipts of lists have no logs.
short_receipt = members(RECEIPT)
call_frame = members(
    {
        **dict.fromkeys(("from", "to"), address),
        **dict.fromkeys(("input", "output"), data),
        "value": optional(number),
    }
)
operation = members({**dict.fromkeys(("from", "to"), address), "value": number})


@dataclass(frozen=True, slots=True)
class Story:
    """A development chain, and what happened on it."""

    node: Node
    deployed: dict[str, Any]
    called: dict[str, Any]
    reverted: dict[str, Any]
    delegated: dict[str, Any]
    transfers: list[list[str]]
    """Hashes of the transfers to an address, of each of its blocks."""

    def ask(self, method: str, *params: Any) -> Any:
        return self.node.ask(method, *params)


RECIPIENT = "0x" + "c0" * 20


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder: Path = tmp_path_factory.mktemp("story")
    app = dev_app(folder, evm_api=API)
    with closing(chain_of(app)) as chain:
        yield told(Node(chain, app))


def told(node: Node) -> Story:
    """Return the story of a chain."""
    first, second, third = SENDERS
    # A log of a token's transfer of 7 from one stranger to another.
    topics = push(STRANGERS[1]) + push(STRANGERS[0]) + push(bytes.fromhex(TRANSFER[2:]))
    logs = push(7) + push(0) + b"\x52" + topics + push(32) + push(0) + b"\xa3"
    code = (
        call(STRANGERS[0], 1)
        + static_call(STRANGERS[1])
        + delegate_call(STRANGERS[2])
        # This contract destroys itself.
        + create(b"\x33\xff", 1)
        + create(push(0), 0, 7)
        + create(REVERT, 2)
        # There is not enough ether for this one, so it never runs.
        + create(push(0), 1 << 200)
        + logs
    )
    deployed = node.made(**{"from": first}, data=f"0x{deploying(code).hex()}")
    contract = {"from": first, "to": deployed["contractAddress"]}
    called = node.made(**contract, value="0x9", data="0x0102030405")
    transfers = []
    for count in (30, 1, 20, 20):
        transfer = {"from": second, "to": RECIPIENT, "value": "0x1", "gas": hex(21_000)}
        transfers.append([node.send(**transfer) for _ in range(count)])
        node.chain.produce()
    words = [bytes.fromhex(REASON[2:])[start : start + 32] for start in range(0, 100, 32)]
    stored = b"".join(
        push(word.ljust(32, b"\0")) + push(32 * place) + b"\x52"
        for place, word in enumerate(words)
    )
    reverts = stored + push(len(REASON) // 2 - 1) + push(0) + b"\xfd"
    reverted = node.made(**{"from": first}, data=f"0x{reverts.hex()}")
    # No account has this signature, so the transaction only pays for the authorization.
    one = {"chainId": "0x0", "address": first, "nonce": "0x0", "yParity": "0x0"}
    delegated = node.made(
        **{"from": third, "to": third, "authorizationList": [{**one, "r": "0x1", "s": "0x1"}]}
    )
    return Story(node, deployed, called, reverted, delegated, transfers)


def test_connect(story: Story) -> None:
    # ethers sends as a batch what is requested at once.
    calls: list[tuple[str, list[Any]]] = [
        ("eth_blockNumber", []),
        ("erigon_getHeaderByNumber", ["latest"]),
        ("ots_getApiLevel", []),
        ("eth_chainId", []),
    ]
    batch = [
        {"jsonrpc": "2.0", "id": place, "method": method, "params": params}
        for place, (method, params) in enumerate(calls)
    ]
    answers = story.node.app.test_client().post("/evm", json=batch).get_json()
    height, newest, level, chain_id = (each["result"] for each in answers)
    header(newest)
    assert newest["number"] == height
    assert level >= 8
    assert number(chain_id) > 0


def test_home(story: Story) -> None:
    height = number(story.ask("eth_blockNumber"))
    for place in (height, height - 1):
        found = story.ask("erigon_getHeaderByNumber", place)
        header(found)
        assert number(found["number"]) == place


@pytest.mark.parametrize("place", ["genesis", "empty", "full"])
def test_block(story: Story, place: str) -> None:
    full = number(story.called["blockNumber"]) + 1
    if place == "empty":
        story.ask("anvil_mine", 1)
    newest = number(story.ask("eth_blockNumber"))
    height = {"genesis": 0, "empty": newest, "full": full}[place]
    found = story.ask("ots_getBlockDetails", height)
    details(found["block"])
    assert found["block"]["transactionCount"] == (30 if place == "full" else 0)
    assert number(found["block"]["number"]) == height
    assert {number(found["issuance"][name]) for name in ("blockReward", "uncleReward")} == {0}
    assert (number(found["totalFees"]) > 0) == (place == "full")
    assert story.ask("ots_getBlockDetailsByHash", found["block"]["hash"]) == found
    # A page of the next block that does not exist yet.
    assert story.ask("ots_getBlockDetails", newest + 1) is None
    assert story.ask("ots_getBlockDetailsByHash", "0x" + "12" * 32) is None


def test_block_transactions(story: Story) -> None:
    height = number(story.called["blockNumber"]) + 1
    pages = []
    for page in (0, 1):
        found = story.ask("ots_getBlockTransactions", height, page, PAGE)
        block = found["fullblock"]
        header(block)
        assert block["transactionCount"] == 30
        several(transaction)(block["transactions"])
        several(short_receipt)(found["receipts"])
        pages.append([each["hash"] for each in block["transactions"]])
        for tx, each in zip(block["transactions"], found["receipts"], strict=True):
            assert each["transactionHash"] == tx["hash"]
            # Otterscan computes the price of type 2.
            fee, base = number(tx["maxFeePerGas"]), number(block["baseFeePerGas"])
            price = min(fee, base + number(tx["maxPriorityFeePerGas"]))
            assert number(each["effectiveGasPrice"]) == price
    assert [len(page) for page in pages] == [25, 5]
    assert pages[1] + pages[0] == story.transfers[0]
    empty = story.ask("ots_getBlockTransactions", 0, 0, PAGE)
    assert (empty["fullblock"]["transactions"], empty["receipts"]) == ([], [])


@pytest.mark.parametrize("name", ["deployed", "called", "reverted", "delegated"])
def test_transaction(story: Story, name: str) -> None:
    made = getattr(story, name)
    tx_hash = made["transactionHash"]
    tx = story.ask("eth_getTransactionByHash", tx_hash)
    transaction(tx)
    assert (tx.get("authorizationList") is not None) == (name == "delegated")
    shown = story.ask("eth_getTransactionReceipt", tx_hash)
    receipt(shown)
    assert number(shown["status"]) == (name != "reverted")
    details(story.ask("ots_getBlockDetails", number(shown["blockNumber"]))["block"])
    has_code = story.ask("ots_hasCode", tx["to"] or shown["contractAddress"], "latest")
    assert has_code is (name in ("deployed", "called"))
    error = story.ask("ots_getTransactionError", tx_hash)
    assert error == (REASON if name == "reverted" else "0x")
    operations = story.ask("ots_getInternalOperations", tx_hash)
    several(operation)(operations)
    kinds = [each["type"] for each in operations]
    assert kinds == ([0, 2, 1, 3] if name == "called" else [])


def test_an_unknown_transaction(story: Story) -> None:
    for method in ("eth_getTransactionByHash", "eth_getTransactionReceipt"):
        assert story.ask(method, "0x" + "12" * 32) is None


@pytest.mark.parametrize("name", ["deployed", "called", "reverted"])
def test_trace(story: Story, name: str) -> None:
    tx_hash = getattr(story, name)["transactionHash"]
    calls = story.ask("ots_traceTransaction", tx_hash)
    several(call_frame)(calls)
    # A tree is made of the depths.
    assert calls[0]["depth"] == 0
    steps = pairwise(each["depth"] for each in calls)
    assert all(1 <= after <= before + 1 for before, after in steps)
    if name == "called":
        kinds = ["CALL", "CALL", "STATICCALL", "DELEGATECALL", "CREATE", "SELFDESTRUCT"]
        assert [each["type"] for each in calls] == [*kinds, "CREATE2", "CREATE", "CREATE"]

    traced = story.ask("trace_replayTransaction", tx_hash, ["vmTrace"])["vmTrace"]
    endings = list(last_operations(traced))
    assert endings[-1] == ("REVERT" if name == "reverted" else endings[-1])

    state = story.ask("trace_replayTransaction", tx_hash, ["stateDiff"])["stateDiff"]
    for account, changes in state.items():
        address(account)
        storage = changes.pop("storage")
        for change in [*changes.values(), *storage.values()]:
            check_change(change)


def last_operations(trace: dict[str, Any]) -> Iterator[str]:
    """Yield the last operation of each call in a vmTrace, callees first."""
    data(trace["code"])
    for step in trace["ops"]:
        assert isinstance(step["pc"], int)
        if step["sub"]:
            yield from last_operations(step["sub"])
    yield trace["ops"][-1]["op"] if trace["ops"] else ""


def check_change(change: Any) -> None:
    """Check that a change of the state is equality, or has a single kind."""
    if change != "=":
        ((kind, value),) = change.items()
        assert kind in "+-*"
        assert kind != "*" or {"from", "to"} == set(value)


def searched(story: Story, way: str, account: str, height: int) -> dict[str, Any]:
    """Return a page of the history of an address."""
    found: dict[str, Any] = story.ask(f"ots_searchTransactions{way}", account, height, PAGE)
    several(transaction)(found["txs"])
    several(receipt)(found["receipts"])
    for tx, each in zip(found["txs"], found["receipts"], strict=True):
        assert tx["hash"] == each["transactionHash"]
        assert number(each["timestamp"]) > 0
    return found


def hashes(page: dict[str, Any]) -> list[str]:
    return [tx["hash"] for tx in page["txs"]]


def test_address(story: Story) -> None:
    contract = story.deployed["contractAddress"]
    for account in (contract, RECIPIENT):
        number(story.ask("eth_getBalance", account, "latest"))
        number(story.ask("eth_getTransactionCount", account, "latest"))
        creator = story.ask("ots_getContractCreator", account)
        made = {"hash": story.deployed["transactionHash"], "creator": SENDERS[0]}
        assert creator == (made if account == contract else None)
    page = searched(story, "Before", contract, 0)
    own = [story.called["transactionHash"], story.deployed["transactionHash"]]
    assert (hashes(page), page["firstPage"], page["lastPage"]) == (own, True, True)
    # An address that is only in an internal call.
    stranger = f"0x{STRANGERS[0].hex()}"
    assert hashes(searched(story, "Before", stranger, 0)) == own[:1]


def test_the_history_of_an_address_in_both_directions(story: Story) -> None:
    newest = [each for block in reversed(story.transfers) for each in reversed(block)]
    # "First", and then "next" from the last transaction that is shown.
    page = searched(story, "Before", RECIPIENT, 0)
    assert page["firstPage"] is True
    found = hashes(page)
    while not page["lastPage"]:
        page = searched(story, "Before", RECIPIENT, number(page["txs"][-1]["blockNumber"]))
        assert page["firstPage"] is False
        found += hashes(page)
    assert found == newest
    # "Last", and then "previous" from the first transaction that is shown.
    page = searched(story, "After", RECIPIENT, 0)
    assert page["lastPage"] is True
    found = hashes(page)
    while not page["firstPage"]:
        page = searched(story, "After", RECIPIENT, number(page["txs"][0]["blockNumber"]))
        assert page["lastPage"] is False
        found = hashes(page) + found
    assert found == newest


@pytest.mark.parametrize("place", [0, 1, 3])
def test_the_history_around_a_transaction(story: Story, place: int) -> None:
    # A link to a page names the transaction at its border.
    tx = story.ask("eth_getTransactionByHash", story.transfers[place][0])
    height = number(tx["blockNumber"])
    block = story.transfers[place][::-1]
    older = searched(story, "Before", RECIPIENT, height + 1)
    assert hashes(older)[: len(block)] == block
    newer = searched(story, "After", RECIPIENT, height - 1)
    assert hashes(newer)[-len(block) :] == block
    # The last block of a page is complete, even if the page becomes longer than 25.
    assert newer["firstPage"] is (place > 0)
    assert older["lastPage"] is (place < 3)


def test_nonces(story: Story) -> None:
    sender = SENDERS[1]
    sent = [each for block in story.transfers for each in block]
    count = number(story.ask("eth_getTransactionCount", sender, "latest"))
    assert count == len(sent)
    # The neighbors of the second transaction, and the newest one.
    for nonce in (0, 2, count - 1):
        found = story.ask("ots_getTransactionBySenderAndNonce", sender, nonce)
        assert found == sent[nonce]
    assert story.ask("ots_getTransactionBySenderAndNonce", sender, count) is None


def test_contract(story: Story) -> None:
    contract = story.deployed["contractAddress"]
    assert len(story.ask("eth_getCode", contract, "latest")) > 2
    # Reading at an older block also asks whether the contract was there.
    assert story.ask("eth_call", {"to": contract, "data": "0x06fdde03"}, "0x0") == "0x"
    assert story.ask("ots_hasCode", contract, "0x0") is False
    assert story.ask("ots_hasCode", contract, "latest") is True
    # ethers reads the name of a token.
    (shown,) = story.called["logs"]
    assert shown["topics"][0] == TRANSFER
    assert (
        story.ask("eth_call", {"to": shown["address"], "data": "0x06fdde03"}, "latest") == "0x"
    )
