"""State of one running node, as its RPC and its page ``/readyz`` report it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .. import jsoncodec
from ..domain.network import NetInfo
from ..domain.responses import ResultStatus
from ..domain.time import SECOND
from ..errors import UpstreamError
from .address import Address
from .connection import limit_time
from .http import UpstreamLimits
from .upstream import Upstream

_LIMITS = UpstreamLimits(timeout=10.0, patience=10.0, max_bytes=16 << 20)


class Measure(jsoncodec.Struct):
    """A value of a node's health, such as the height of its upstream nodes."""

    name: str
    value: float
    labels: dict[str, str] = {}  # noqa: RUF012  # msgspec copies it


class Lease(jsoncodec.Struct):
    """The lease of a store: the process that holds it, and its remaining seconds."""

    holder: str
    seconds_left: float


class Store(jsoncodec.Struct):
    """The store of a node."""

    bytes: int
    lease: Lease | None = None


class Readiness(jsoncodec.Struct):
    """The page ``/readyz`` of a node of this package."""

    state: str
    reason: str = ""
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lowest: dict[str, int] = {}  # noqa: RUF012
    measures: tuple[Measure, ...] = ()
    store: Store | None = None

    def values(self, name: str) -> list[Measure]:
        """Return the measures with a name."""
        return [each for each in self.measures if each.name == name]


@dataclass(frozen=True, slots=True)
class NodeState:
    """State of a node; a part that the node does not serve is ``None``."""

    status: ResultStatus
    age_s: float | None
    """Seconds since the time of the latest block; ``None`` before the first block."""
    peers: int | None
    readiness: Readiness | None


def read_state(node: Upstream) -> NodeState:
    """Return the state of a node; raise :exc:`~flask_noderpc.errors.UpstreamError` for an
    address that does not respond like a node."""
    with limit_time(_LIMITS.timeout):
        status = node.get(ResultStatus, "status")
        sync = status.sync_info
        age = (time.time_ns() - sync.latest_block_time) / SECOND
        return NodeState(
            status, age if sync.latest_block_height else None, _peers(node), _readiness(node)
        )


def node_at(address: Address) -> Upstream:
    """Return the client of a node, with limits for a command that is run by hand."""
    return Upstream(address, limits=_LIMITS)


def _peers(node: Upstream) -> int | None:
    try:
        return len(node.get(NetInfo, "net_info").peers)
    except UpstreamError:
        return None


def _readiness(node: Upstream) -> Readiness | None:
    """Return the page ``/readyz``, which CometBFT does not have, or ``None``."""
    try:
        return jsoncodec.decode(node.page("readyz", "application/json"), Readiness)
    except (UpstreamError, jsoncodec.NotJSON):
        return None
