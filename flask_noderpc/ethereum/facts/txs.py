"""Ethereum transactions in words: fields, fee, method, transfers and internal calls.

Fields are decoded from the bytes of the transaction. The rest is left out, or a note tells the
reason, if the node does not have the state or refuses the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ...backends.base.backend import ChainBackend
from ...domain.abci import ExecTxResult
from ...domain.facts import Fact, LogFacts, MessageFacts, Table, TxFacts
from ...errors import NodeRPCError
from ...protocol.secp256k1eth import to_checksum
from ..application.patches import is_patch
from ..domain.records import Transaction
from ..engine.base import reason
from ..protocol import abi
from ..protocol.ethermint import Outcome, outcomes
from ..protocol.execution import ethereum_transactions
from ..state import EVM_STATE
from .assignments import assignments, ether
from .internal_calls import Calls, calls_of
from .lines import failure, method, recipient
from .tokens import Ask, transfers

_SHOWN = 10
"""Maximum number of Ethereum transactions to show of one node transaction."""
_SHOWN_CHANGES = 100
_TYPES = ("legacy", "access list", "dynamic fee", "blob", "set code")
_NO_RECEIPT: dict[str, Any] = {}


def tx_facts(
    backend: ChainBackend,
    query: object,
    ask: Ask | None,
    tx: bytes,
    result: ExecTxResult | None,
) -> TxFacts | None:
    """Return the Ethereum transactions in a transaction, or what a command of a development
    chain sets; ``None`` if it has neither. ``ask`` calls a method of Ethereum's JSON-RPC."""
    if is_patch(tx):
        facts = [fact for each in assignments(tx)[:_SHOWN_CHANGES] for fact in each.facts()]
        return TxFacts((), (MessageFacts("Development command", "", tuple(facts)),))
    found = ethereum_transactions(tx, most=_SHOWN)
    if not found:
        return None
    if result is None:
        return TxFacts((), tuple(_pending(each) for each in found))
    # A foreign chain may emit fewer events.
    ends = [*outcomes(result.events), *(Outcome() for _ in found)]
    return TxFacts(
        (),
        tuple(
            _executed(backend, ask, each, result, end, is_alone=len(found) == 1)
            for each, end in zip(found, ends, strict=False)
        ),
    )


def _pending(tx: Transaction) -> MessageFacts:
    facts = (*_fields(tx), *_price_limits(tx))
    return _message(tx, facts, tuple(_method_table(tx)))


def _executed(
    backend: ChainBackend,
    ask: Ask | None,
    tx: Transaction,
    result: ExecTxResult,
    end: Outcome,
    *,
    is_alone: bool,
) -> MessageFacts:
    receipt = _receipt(ask, tx) if ask else _NO_RECEIPT
    failed = end.failed or result.code != 0
    calls = Calls(output=end.revert_data or b"")
    if receipt and ask:
        calls = calls_of(backend, ask, tx.hash, receipt, result if is_alone else None, end)
    facts = [*_fields(tx), *_charges(backend, ask, receipt)]
    facts.append(Fact("Status", "Failed" if failed else "Success"))
    if failed:
        why = failure(end.error, calls.output) if end.failed else result.log
        facts.append(Fact("Reason", why))
    logs = tuple(map(_log, receipt.get("logs", ())))
    tables = [*_method_table(tx), *transfers(logs, ask)]
    if calls.rows or calls.note:
        tables.append(Table("Internal calls", calls.rows, calls.note))
    error = b"" if reason(calls.output) else calls.output
    return _message(tx, tuple(facts), tuple(tables), error, logs)


def _message(
    tx: Transaction,
    facts: tuple[Fact, ...],
    tables: tuple[Table, ...],
    error: bytes = b"",
    logs: tuple[LogFacts, ...] = (),
) -> MessageFacts:
    contract = to_checksum(tx.to) if tx.to else ""
    return MessageFacts(
        "Ethereum transaction", "", facts, tables, contract, tx.data, error, logs
    )


def _receipt(ask: Ask, tx: Transaction) -> dict[str, Any]:
    """Return the receipt of a transaction; empty if the node does not have it."""
    with suppress(NodeRPCError):
        return ask("eth_getTransactionReceipt", f"0x{tx.hash.hex()}") or _NO_RECEIPT
    return _NO_RECEIPT


def _fields(tx: Transaction) -> Iterator[Fact]:
    yield Fact("Hash", f"0x{tx.hash.hex()}")
    yield Fact("From", to_checksum(tx.sender), is_account=True)
    title = "Creates" if tx.to is None else "To"
    yield Fact(title, to_checksum(recipient(tx)), is_account=True)
    yield Fact("Value", ether(tx.value))
    if tx.to is not None and tx.data:
        yield Fact("Method", method(tx.data))
    yield Fact("Nonce", f"{tx.nonce:,}")
    yield Fact("Type", f"{tx.type}, {_TYPES[tx.type]}")
    yield Fact("Gas limit", f"{tx.gas:,}")


def _price_limits(tx: Transaction) -> Iterator[Fact]:
    if tx.gas_price is not None:
        yield Fact("Gas price", f"{tx.gas_price:,} wei")
        return
    yield Fact("Maximum gas price", f"{tx.fee_cap:,} wei")
    yield Fact("Maximum tip", f"{tx.tip_cap:,} wei of it")


def _charges(backend: ChainBackend, ask: Ask | None, receipt: dict[str, Any]) -> Iterator[Fact]:
    if not receipt:
        return
    gas, price = int(receipt["gasUsed"], 16), int(receipt["effectiveGasPrice"], 16)
    yield Fact("Gas used", f"{gas:,} at {price:,} wei")
    blobs = int(receipt.get("blobGasUsed", "0x0"), 16)
    blob_fee = blobs * int(receipt.get("blobGasPrice", "0x0"), 16)
    yield Fact("Fee", ether(gas * price + blob_fee))
    # Ethermint pays the base fee to validators.
    if ask and EVM_STATE.find(backend) is not None:
        with suppress(NodeRPCError):
            block = ask("eth_getBlockByNumber", receipt["blockNumber"], False)
            burnt = gas * int(block["baseFeePerGas"], 16) + blob_fee
            yield Fact("Burnt", f"{ether(burnt)} of the fee")


def _log(given: dict[str, Any]) -> LogFacts:
    return LogFacts(
        int(given["logIndex"], 16),
        to_checksum(bytes.fromhex(given["address"][2:])),
        tuple(bytes.fromhex(each[2:]) for each in given["topics"]),
        bytes.fromhex(given["data"][2:]),
    )


def _method_table(tx: Transaction) -> Iterator[Table]:
    """Yield the arguments of a well-known method, if the transaction calls one."""
    called = abi.function(tx.data) if tx.to is not None else None
    if called is None:
        return
    rows = tuple(
        (
            Fact("Parameter", f"{each.name} {each.type}"),
            Fact("Value", each.text, is_account=each.type == "address"),
        )
        for each in abi.arguments(called, tx.data)
    )
    if rows:
        yield Table(f"Call of {called.name}", rows)
