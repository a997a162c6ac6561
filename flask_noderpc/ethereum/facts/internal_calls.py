"""Internal calls of a transaction that moved ether or created contracts, and its output.

A chain that records the calls has them in its results. Transactions of other chains are traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...backends.base.backend import ChainBackend
from ...domain.abci import ExecTxResult
from ...domain.facts import Fact
from ...errors import NodeRPCError
from ...protocol.secp256k1eth import to_checksum
from ..domain.execution import REVERTED, Operation
from ..protocol.ethermint import Outcome, operations
from ..state import EVM_STATE
from .assignments import ether
from .tokens import Ask

_SHOWN = 100
_TRANSFER_GAS = 21_000
"""Gas of a transfer between accounts of keys, which calls nothing."""
_KINDS = ("CALL", "CREATE", "CREATE2", "SELFDESTRUCT")


@dataclass(frozen=True, slots=True)
class Calls:
    """Internal calls as rows of a table, and the output of a transaction that reverted."""

    rows: tuple[tuple[Fact, ...], ...] = ()
    note: str = ""
    """Reason why there are no calls, or why there are more."""
    output: bytes = b""


def calls_of(
    backend: ChainBackend,
    ask: Ask,
    digest: bytes,
    receipt: dict[str, Any],
    result: ExecTxResult | None,
    end: Outcome,
) -> Calls:
    """Return the internal calls of an Ethereum transaction, from ``result`` if it has them, or
    the output of one that reverted, unless ``end`` has it."""
    failed = receipt["status"] != "0x1"
    if failed and (end.revert_data is not None or end.error not in ("", REVERTED)):
        return Calls(output=end.revert_data or b"")
    state = EVM_STATE.find(backend)
    since = state.calls_recorded_since() if state else None
    height = int(receipt["blockNumber"], 16)
    is_recorded = result is not None and since is not None and since <= height
    if result and not failed and (is_recorded or operations(result.events)):
        return _shown(operations(result.events))
    if int(receipt["gasUsed"], 16) <= _TRANSFER_GAS:
        return Calls()
    try:
        top = ask("debug_traceTransaction", f"0x{digest.hex()}", {"tracer": "callTracer"})
        return _traced(top, failed=failed)
    except NodeRPCError as error:
        why = f"The transaction can't be traced here: {error}"
    except (AttributeError, KeyError, TypeError, ValueError):
        # Another node can respond with anything.
        why = "The node's trace of the transaction is malformed."
    # The page shows the failure of a transaction even without its reason.
    return Calls(note="" if failed else why)


def _traced(top: dict[str, Any], *, failed: bool) -> Calls:
    """Return the internal calls or the output in a trace."""
    if failed:
        output = top.get("output", "0x") if top.get("error") == REVERTED else "0x"
        return Calls(output=bytes.fromhex(output[2:]))
    return _shown(map(_operation, _moving(top.get("calls", ()))))


def _moving(frames: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the frames that moved ether or created a contract, in the order of execution,
    without those inside of frames that failed."""
    waiting = list(frames)[::-1]
    while waiting:
        frame = waiting.pop()
        if "error" in frame:
            continue
        kind = frame["type"]
        if kind in _KINDS and (kind != "CALL" or int(frame.get("value", "0x0"), 16)):
            yield frame
        waiting += frame.get("calls", ())[::-1]


def _operation(frame: dict[str, Any]) -> Operation:
    sender, to = (bytes.fromhex(frame.get(name, "0x")[2:]) for name in ("from", "to"))
    return Operation(frame["type"], sender, to, int(frame.get("value", "0x0"), 16))


def _shown(found: Iterable[Operation]) -> Calls:
    made = list(islice(found, _SHOWN + 1))
    rows = tuple(
        (
            Fact("Kind", each.kind.lower()),
            Fact("From", to_checksum(each.sender), is_account=True),
            Fact("To", to_checksum(each.to), is_account=True),
            Fact("Value", ether(each.value)),
        )
        for each in made[:_SHOWN]
    )
    return Calls(rows, f"The first {_SHOWN} are shown." if len(made) > _SHOWN else "")
