"""Probe a node: which blocks it has, which requests it accepts, and whether its blocks are
proven.

Each probe sends a few calls; the lowest heights are found by bisection. Nothing on the node is
changed, and no probe runs a search over more than one height.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import jsoncodec
from ..domain.responses import ResultStatus
from ..domain.time import SECOND
from ..errors import ConfigurationError, NodeRPCError, UpstreamMismatch, UpstreamRefused
from ..protocol.comet import hashes
from .growth import are_proven
from .light import SignedBlock, check_signed
from .reader import Reader
from .subscription import reason_against
from .trust import TrustOptions, prove

_CHECKED_HEIGHTS = 10
_BATCHES = (10, 100, 1000)
_NO_METHOD = -32601
# More arguments than any method takes: the node refuses the call without executing it.
_TOO_MANY = ["conform"] * 20
_WEBSOCKET_S = 5.0

Value = str | int | bool | None


class OutOfTime(Exception):
    """The time for all probes has passed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The value that a probe found; ``is_good`` if the value is as expected."""

    probe: str
    value: Value
    note: str = ""
    is_good: bool = True


@dataclass(slots=True)
class ProbeTarget:
    """A node to probe within ``seconds``; it is expected to serve ``methods``."""

    reader: Reader
    methods: Sequence[str]
    seconds: float
    _ends: float = 0.0
    _status: ResultStatus | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.seconds

    @property
    def status(self) -> ResultStatus:
        """The node's status, read once."""
        if self._status is None:
            self._status = self.reader.status()
        return self._status

    @property
    def latest(self) -> int:
        """Latest height of the node when its status was read."""
        return self.status.sync_info.latest_block_height

    def check_time(self) -> None:
        """Raise :exc:`OutOfTime` if the time has passed."""
        if time.monotonic() >= self._ends:
            raise OutOfTime


def conform(node: ProbeTarget) -> list[Finding]:
    """Return the findings of all probes. Raise :exc:`~flask_noderpc.errors.UpstreamError` for a
    node that does not respond at all."""
    _ = node.status
    return [_finding(name, probe, node) for name, probe in _PROBES.items()]


def _finding(
    name: str, probe: Callable[[ProbeTarget], Finding | Value], node: ProbeTarget
) -> Finding:
    try:
        node.check_time()
        found = probe(node)
    except OutOfTime:
        return Finding(name, None, "not probed in time; pass more --seconds", is_good=False)
    except (NodeRPCError, ConfigurationError, ValueError) as error:
        return Finding(name, None, str(error), is_good=False)
    return found if isinstance(found, Finding) else Finding(name, found)


# The probes.


def _lowest_block(node: ProbeTarget) -> Finding:
    found = _lowest(node, lambda height: bool(node.reader.headers(height, height)))
    reported = node.status.sync_info.earliest_block_height
    note = "" if found == reported else f"status reports {reported}"
    return Finding("lowest block", found, note, is_good=not note)


def _lowest_results(node: ProbeTarget) -> Value:
    return _lowest(node, lambda height: _answers(node, "block_results", height=height))


def _lowest_indexed(node: ProbeTarget) -> Finding:
    name = "lowest indexed block"
    shown = str(node.status.node_info.other.tx_index)
    if shown != "on":
        return Finding(name, None, f"the node's index is {shown or 'not named'}")
    return Finding(name, _lowest(node, lambda height: _is_indexed(node, height)))


class _FoundBlocks(jsoncodec.Struct):
    blocks: list[Any]


def _is_indexed(node: ProbeTarget, height: int) -> bool:
    query = f"block.height={height}"
    found = node.reader.node.raw("block_search", query=query)
    return bool(jsoncodec.decode(bytes(found), _FoundBlocks).blocks)


def _answers(node: ProbeTarget, method: str, **params: int) -> bool:
    node.reader.node.raw(method, **params)
    return True


def _lowest(node: ProbeTarget, has: Callable[[int], bool]) -> int | None:
    """Return the lowest height for which ``has`` is true, by bisection, or ``None``."""

    def is_there(height: int) -> bool:
        node.check_time()
        try:
            return has(height)
        except (UpstreamRefused, UpstreamMismatch):
            return False

    # Skip the latest block, whose results may not be available yet.
    high = max(1, node.latest - 1)
    if not is_there(high):
        return None
    low = 1
    while low < high:
        middle = (low + high) // 2
        if is_there(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _largest_batch(node: ProbeTarget) -> Finding:
    taken = 1
    for count in _BATCHES:
        node.check_time()
        if not node.reader.node.takes_batch(count):
            break
        taken = count
    note = "or more" if taken == _BATCHES[-1] else ""
    return Finding("calls in a batch", taken, note)


def _websocket(node: ProbeTarget) -> Finding:
    reason = reason_against(node.reader.node.address, _WEBSOCKET_S)
    return Finding("websocket", not reason, reason, is_good=not reason)


def _missing_methods(node: ProbeTarget) -> Finding:
    missing = []
    for method in node.methods:
        node.check_time()
        try:
            node.reader.node.raw_at(method, _TOO_MANY)
        except UpstreamRefused as error:
            if error.code == _NO_METHOD:
                missing.append(method)
    return Finding("missing methods", ", ".join(missing) or "none", is_good=not missing)


def _proven_heights(node: ProbeTarget) -> Finding:
    """Check headers, signatures, blocks and results at some heights, and that each header
    proves the next checked one by the rules of a light client."""
    trust = TrustOptions(period=10**6 * 24 * 3600 * SECOND, takes_unknown_keys=True)
    known: SignedBlock | None = None
    notes = set()
    heights = _spread(_lowest_state(node), node.latest - 1)
    for height in heights:
        node.check_time()
        block = node.reader.signed_block(height)
        chain_id = node.status.node_info.network
        notes.add(check_signed(chain_id, block, takes_unknown_keys=True))
        _check_block(node, block)
        if known is not None:
            prove(node.reader, known, block, trust)
        known = block
    return Finding("proven heights", len(heights), "; ".join(sorted(notes - {""})))


def _lowest_state(node: ProbeTarget) -> int | None:
    """Return the lowest height for which the node has a block and validators.

    Validators are there where results are: CometBFT's PruneStates (state/store.go) deletes
    both together, but separately from blocks.
    """
    bounds = _lowest_block(node).value, _lowest_results(node)
    return max((each for each in bounds if isinstance(each, int)), default=None)


def _check_block(node: ProbeTarget, signed: SignedBlock) -> None:
    """Raise ``ValueError`` unless a block matches its header and the next header its
    results."""
    (found,) = node.reader.blocks([signed.height], may_lack_results=True)
    header = signed.signed_header.header
    whole = hashes.block_hashes(found.block)
    if whole.block_id != signed.signed_header.commit.block_id:
        raise ValueError(f"block {signed.height} is not the block that its commit signs")
    if whole.data_hash != header.data_hash:
        raise ValueError(
            f"block {signed.height}: its data_hash is not CometBFT's hash of its transactions;"
            " follow the chain with --unchecked data_hash"
        )
    above = node.reader.header(signed.height + 1)
    if found.results is not None and not are_proven(found.results, above):
        raise ValueError(f"header {above.height} refutes the results of block {signed.height}")


def _spread(low: Value, high: int) -> list[int]:
    """Return up to 10 heights, spread evenly from the lowest to the highest one."""
    first = low if isinstance(low, int) else high
    step = max(1, (high - first) // (_CHECKED_HEIGHTS - 1))
    return sorted({*range(first, high, step), high})[-_CHECKED_HEIGHTS:] if high > 0 else []


_PROBES: dict[str, Callable[[ProbeTarget], Finding | Value]] = {
    "chain": lambda node: node.status.node_info.network,
    "moniker": lambda node: node.status.node_info.moniker,
    "version": lambda node: node.status.node_info.version,
    "dialect": lambda node: node.reader.node.dialect.name,
    "catching up": lambda node: node.status.sync_info.catching_up,
    "latest block": lambda node: node.latest,
    "lowest block": _lowest_block,
    "lowest results": _lowest_results,
    "lowest indexed block": _lowest_indexed,
    "calls in a batch": _largest_batch,
    "websocket": _websocket,
    "missing methods": _missing_methods,
    "proven heights": _proven_heights,
}
