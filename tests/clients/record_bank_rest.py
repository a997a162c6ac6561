"""Record the gateway of the Cosmos SDK, with which the REST of ``bank`` is compared.

``python -m tests.clients.record_bank_rest PROGRAM``, after tests.clients.record_bank: a node of
the same program gets the genesis of that recording and the transactions of its scenario
``queries``, one in a block after the other, and then stands still. The gateway asks gRPC, as a
node does by default. Heights, times and hashes of blocks are of this one chain. The recording
is gzipped JSON:

``txs``
    ``[{hash, height}]``: in which block each transaction of the scenario is.
``height``
    Of the last block.
``requests``
    ``[{name, method, path, body, status, type, reply}]``, in the order in which they were sent;
    reply is the text of the response.
``queries``
    ``[{name, path, data, reply}]``: what abci_query answers where the node itself is asked;
    data is hex, reply the JSON of CometBFT's ``response``.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..differential.http_client import Ask, ask
from ..differential.sides import Side, running
from ..helpers.ports import free_port
from ..helpers.until import until
from .record_bank import RECORDING as BANK

RECORDING = BANK.with_name("bank_rest_0.53.8.json.gz")
JSON = (("Content-Type", "application/json"),)
ABSENT = "cosmos1ttfcxp94xhpfslday3jhcxs3hzzfsnlk8kvv7y"
OTHER = "other1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqpldp57"
AUTH, BANKING = "/cosmos/auth/v1beta1", "/cosmos/bank/v1beta1"
TX, BASE = "/cosmos/tx/v1beta1", "/cosmos/base/tendermint/v1beta1"
STAKING = "/cosmos/staking/v1beta1"

Request = tuple[str, str, str, str]


def main(program: Path) -> None:
    """Make a chain, send it the recorded transactions, and record its gateway."""
    bank = json.loads(gzip.decompress(BANK.read_bytes()))
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        home.mkdir()
        genesis = Path(scratch) / "genesis.json"
        genesis.write_text(json.dumps(bank["genesis"]))
        with _chain(program, home, "-genesis", str(genesis)) as (node, _):
            txs = [_send(node, tx["bytes"]) for tx in _history(bank)]
            last = node.height() + 1
            until(lambda: node.height() >= last, "a block more")
        # A program that was started serves from its first block on.
        with _chain(program, home, "-commit", "20s") as (node, api):
            until(lambda: node.height() > last and _stands_still(node), "no round begins")
            replies = [_asked(api, each) for each in _requests(bank, txs, node.height())]
            assert node.height() == last + 1, "another block has come meanwhile"
            found = {
                "txs": txs,
                "height": node.height(),
                "requests": replies,
                "queries": list(_queries(node, txs)),
            }
    text = json.dumps(found, indent=1, ensure_ascii=False).encode()
    RECORDING.write_bytes(gzip.compress(text, mtime=0))
    print(f"{len(replies)} requests, {RECORDING.stat().st_size} bytes")


class _Running:
    """A running node with its gateway."""

    def __init__(self, program: Path, home: Path, flags: tuple[str, ...]) -> None:
        self._api, rpc, grpc = (free_port() for _ in range(3))
        self._home = home
        self._side = Side(f"http://127.0.0.1:{rpc}")
        self._command = [
            *(str(program), "-home", str(home), "-rpc", f"tcp://127.0.0.1:{rpc}"),
            *("-api", f"tcp://127.0.0.1:{self._api}", "-grpc", f"127.0.0.1:{grpc}"),
            *flags,
        ]
        self._open = running(self._command, home, self._side, "block")

    def __enter__(self) -> tuple[Side, str]:
        side = self._open.__enter__()
        url = f"http://127.0.0.1:{self._api}"
        until(lambda: _is_up(url), "the gateway")
        return side, url

    def __exit__(self, *ended: Any) -> None:
        self._open.__exit__(*ended)


def _chain(program: Path, home: Path, *flags: str) -> _Running:
    return _Running(program, home, flags)


def _is_up(url: str) -> bool:
    try:
        return ask(url, Ask("up", path=f"{BASE}/syncing")).status == 200
    except OSError:
        return False


def _stands_still(node: Side) -> bool:
    state = node.call("consensus_state")["round_state"]["height/round/step"]
    return bool(state == f"{node.height() + 1}/0/1")


def _history(bank: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for scenario in bank["scenarios"]:
        if scenario["name"] == "queries":
            for block in scenario["blocks"]:
                yield from block["txs"]


def _send(node: Side, tx: str) -> dict[str, Any]:
    sent = node.call("broadcast_tx_sync", tx=tx)
    assert sent["code"] == 0, sent
    search = {"query": f"tx.hash='{sent['hash']}'"}
    until(lambda: bool(node.call("tx_search", **search)["txs"]), "the transaction in a block")
    (found,) = node.call("tx_search", **search)["txs"]
    return {"hash": sent["hash"], "height": int(found["height"])}


def _asked(api: str, request: Request) -> dict[str, Any]:
    name, method, path, body = request
    reply = ask(api, Ask(name, method, path, body, JSON if body else ()))
    return {
        "name": name,
        "method": method,
        "path": path,
        "body": body,
        "status": reply.status,
        "type": reply.headers.get("Content-Type", ""),
        "reply": reply.body,
    }


def _requests(
    bank: dict[str, Any], txs: list[dict[str, Any]], height: int
) -> Iterator[Request]:
    for path in [*_accounts(bank), *_balances(bank), *_chain_paths(bank, txs, height)]:
        yield path, "GET", path, ""
    yield from _posts(bank)


def _accounts(bank: dict[str, Any]) -> Iterator[str]:
    own = bank["accounts"]
    module = next(
        account["base_account"]["address"]
        for account in bank["scenarios"][0]["state"]["accounts"]
        if account.get("name") == "fee_collector"
    )
    for of in [
        *(own[name]["address"] for name in sorted(own)),
        module,
        ABSENT,
        OTHER,
        "nobody",
        "",
    ]:
        yield f"{AUTH}/accounts/{of}"
        yield f"{AUTH}/account_info/{of}"
    yield f"{AUTH}/accounts"
    yield from _paged(f"{AUTH}/accounts")
    for path in (
        "params",
        "module_accounts",
        "module_accounts/fee_collector",
        "module_accounts/none",
        "bech32",
        "address_by_id/1",
    ):
        yield f"{AUTH}/{path}"


def _paged(path: str) -> Iterator[str]:
    for query in (
        "pagination.limit=2",
        "pagination.limit=2&pagination.count_total=true",
        "pagination.offset=1&pagination.limit=1",
        "pagination.reverse=true&pagination.limit=1",
        "pagination.key=c3Rha2U=",
        "pagination.key=c3Rha2U%3D",
        "pagination.key=!",
        "pagination.limit=x",
        "pagination.limit=-1",
        "pagination.key=c3Rha2U%3D&pagination.offset=1",
        "pagination.none=1",
        "none=1",
        "pagination.limit=1&pagination.limit=2",
    ):
        yield f"{path}?{query}"


def _balances(bank: dict[str, Any]) -> Iterator[str]:
    bob = bank["accounts"]["bob"]["address"]
    for kind in ("balances", "spendable_balances"):
        yield from (
            f"{BANKING}/{kind}/{of}" for of in (bob, ABSENT, OTHER, "nobody", "test", "")
        )
        yield from _paged(f"{BANKING}/{kind}/{bob}")
        for denom in ("stake", "nocoin", "!", ""):
            yield f"{BANKING}/{kind}/{bob}/by_denom?denom={denom}"
        yield f"{BANKING}/{kind}/{bob}/by_denom"
        yield f"{BANKING}/{kind}/nobody/by_denom?denom=stake"
        yield f"{BANKING}/{kind}/{bob}/none"
    yield f"{BANKING}/balances/{bob}?resolve_denom=true"
    yield f"{BANKING}/balances/{bob}?resolve_denom=x"
    yield f"{BANKING}/balances/{bob}/"
    for path in ("supply", "denoms_metadata", "denom_owners/token"):
        yield f"{BANKING}/{path}"
        yield from _paged(f"{BANKING}/{path}")
    for denom in ("stake", "nocoin", "!", ""):
        yield f"{BANKING}/supply/by_denom?denom={denom}"
        yield f"{BANKING}/denoms_metadata/{denom}"
        yield f"{BANKING}/denoms_metadata_by_query_string?denom={denom}"
    yield f"{BANKING}/denoms_metadata/token"
    yield f"{BANKING}/params"
    yield f"{BANKING}/send_enabled"
    yield f"{BANKING}/send_enabled?denoms=frozen&denoms=stake"


def _chain_paths(bank: dict[str, Any], txs: list[dict[str, Any]], height: int) -> Iterator[str]:
    sender = bank["accounts"]["bob"]["address"]
    for sent in txs:
        yield f"{TX}/txs/{sent['hash']}"
        yield f"{TX}/txs/block/{sent['height']}"
    yield f"{TX}/txs/{txs[0]['hash'].lower()}"
    yield f"{TX}/txs/0x{txs[0]['hash']}"
    for none in ("00" * 32, "00", "x", ""):
        yield f"{TX}/txs/{none}"
    yield f"{TX}/txs/block/1"
    yield f"{TX}/txs/block/{height + 9}"
    yield f"{TX}/txs"
    for query in (
        f"message.sender='{sender}'",
        "message.action='/cosmos.bank.v1beta1.MsgSend'",
        f"message.sender='{sender}' AND tx.height>{txs[0]['height']}",
        "tx.height=1",
        "none.none='x'",
        "tx.height",
        "x",
        "",
    ):
        for more in (
            "",
            "&order_by=ORDER_BY_DESC",
            "&limit=1",
            "&page=2&limit=1",
            "&pagination.limit=1&pagination.offset=1",
            "&page=9",
        ):
            yield f"{TX}/txs?query={quote(query)}{more}"
        yield f"{TX}/txs?events={quote(query)}"
    yield f"{TX}/txs?query=tx.height%3E0&order_by=NONE"
    for path in (
        "node_info",
        "syncing",
        "blocks/latest",
        "blocks/1",
        "blocks/2",
        f"blocks/{txs[0]['height']}",
        f"blocks/{height + 9}",
        "blocks/0",
        "blocks/-1",
        "blocks/x",
        "validatorsets/latest",
        "validatorsets/2",
        f"validatorsets/{height + 9}",
        "none",
        "abci_query?path=/app/version",
        "abci_query",
    ):
        yield f"{BASE}/{path}"
    for path in (
        "validators",
        "validators?status=BOND_STATUS_BONDED",
        "validators?status=none",
        "pool",
        "params",
        "validators/none",
        f"delegations/{sender}",
    ):
        yield f"{STAKING}/{path}"
    validator = "cosmosvaloper19rl4cm2hmr8afy4kldpxz3fka4jguq0ae5egnx"
    yield f"{STAKING}/validators/{validator}"
    for path in (
        "/",
        "/none",
        "/cosmos",
        "/cosmos/none/v1/none",
        f"{BANKING}/none",
        "/ibc/apps/transfer/v1/params",
        "/feemarket/v1/params",
        "/cosmos/mint/v1beta1/params",
        "/cosmos/distribution/v1beta1/params",
        "/cosmos/base/node/v1beta1/config",
        "/cosmos/base/node/v1beta1/status",
    ):
        yield path


def _posts(bank: dict[str, Any]) -> Iterator[Request]:
    simulated = {
        each["name"].removeprefix("simulate "): each["request"]["tx_bytes"]
        for each in bank["queries"]
        if each["path"].endswith("/Simulate") and each.get("request", {}).get("tx_bytes")
    }
    simulate = f"{TX}/simulate"
    for name, raw in simulated.items():
        yield f"simulate {name}", "POST", simulate, json.dumps({"tx_bytes": raw})
    url_safe = simulated["signed"].replace("+", "-").replace("/", "_").rstrip("=")
    for name, body in (
        ("without bytes", "{}"),
        ("an empty text", '{"tx_bytes":""}'),
        ("no base64", '{"tx_bytes":"!"}'),
        ("base64 for URLs", json.dumps({"tx_bytes": url_safe})),
        ("no JSON", "x"),
        ("half of JSON", '{"tx_bytes":'),
        ("a list", "[]"),
        ("a number", '{"tx_bytes":1}'),
        ("null", '{"tx_bytes":null}'),
        ("another name", json.dumps({"txBytes": simulated["signed"]})),
        ("an unknown name", json.dumps({"tx_bytes": simulated["signed"], "none": 1})),
    ):
        yield f"simulate {name}", "POST", simulate, body
        yield f"send {name}", "POST", f"{TX}/txs", body
    yield from _broadcasts(bank, simulated)
    for path in (simulate, f"{TX}/txs", f"{BANKING}/params", "/none"):
        yield f"no body to {path}", "POST", path, ""
    for method in ("PUT", "DELETE", "OPTIONS", "HEAD"):
        yield f"{method} of params", method, f"{BANKING}/params", ""
    yield "GET of simulate", "GET", simulate, ""


def _broadcasts(bank: dict[str, Any], simulated: dict[str, str]) -> Iterator[Request]:
    first = next(_history(bank))["bytes"]
    sync = "BROADCAST_MODE_SYNC"
    for name, raw, mode in (
        ("signed wrongly", simulated["signed wrongly"], sync),
        ("one of an old sequence", first, sync),
        ("garbage", base64.b64encode(b"garbage").decode(), sync),
        ("unknown type", simulated["unknown type"], sync),
        ("without mode", simulated["signed"], ""),
        ("mode of blocks", simulated["signed"], "BROADCAST_MODE_BLOCK"),
        ("unknown mode", simulated["signed"], "NONE"),
        ("mode as a number", simulated["signed, amino"], 2),
        ("good", simulated["signed"], sync),
        ("good again", simulated["signed"], sync),
        ("later one", simulated["several keys"], "BROADCAST_MODE_ASYNC"),
    ):
        body = {"tx_bytes": raw, "mode": mode} if mode else {"tx_bytes": raw}
        yield f"send {name}", "POST", f"{TX}/txs", json.dumps(body)


def _field(number: int, value: str | int) -> bytes:
    """Return a field whose number and length take a byte each."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def _queries(node: Side, txs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    service, base = "/cosmos.tx.v1beta1.Service", "/cosmos.base.tendermint.v1beta1.Service"
    action = "message.action='/cosmos.bank.v1beta1.MsgSend'"
    for name, path, data in (
        ("transaction", f"{service}/GetTx", _field(1, txs[0]["hash"])),
        ("failed transaction", f"{service}/GetTx", _field(1, txs[-1]["hash"])),
        ("no transaction", f"{service}/GetTx", _field(1, "00" * 32)),
        ("transaction of a short hash", f"{service}/GetTx", _field(1, "00")),
        ("transaction without hash", f"{service}/GetTx", b""),
        ("transactions", f"{service}/GetTxsEvent", _field(6, action)),
        ("transactions backwards", f"{service}/GetTxsEvent", _field(6, action) + _field(3, 2)),
        ("one transaction", f"{service}/GetTxsEvent", _field(6, action) + _field(5, 1)),
        (
            "second page",
            f"{service}/GetTxsEvent",
            _field(6, action) + _field(4, 2) + _field(5, 1),
        ),
        ("page after the last", f"{service}/GetTxsEvent", _field(6, action) + _field(4, 9)),
        ("transactions without query", f"{service}/GetTxsEvent", b""),
        ("transactions of no query", f"{service}/GetTxsEvent", _field(6, "x")),
        ("block with transactions", f"{service}/GetBlockWithTxs", _field(1, txs[0]["height"])),
        ("broadcast", f"{service}/BroadcastTx", b""),
        ("node info", f"{base}/GetNodeInfo", b""),
        ("syncing", f"{base}/GetSyncing", b""),
        ("latest block", f"{base}/GetLatestBlock", b""),
        ("block", f"{base}/GetBlockByHeight", _field(1, 2)),
        ("block that is not there", f"{base}/GetBlockByHeight", _field(1, 120)),
        ("validators", f"{base}/GetLatestValidatorSet", b""),
    ):
        reply = node.call("abci_query", path=path, data=data.hex())
        yield {"name": name, "path": path, "data": data.hex(), "reply": reply["response"]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
