"""Network data of a node: node info, peers, and the progress of a backfill."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from .time import ZERO_TIME


@dataclass(frozen=True, slots=True)
class ProtocolVersion:
    """Protocol versions of a node."""

    p2p: int = 8
    block: int = 11
    app: int = 0


@dataclass(frozen=True, slots=True)
class NodeOther:
    """Optional fields of a node info."""

    tx_index: str = "on"
    rpc_address: str = ""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """Node info as sent in the p2p handshake."""

    id: bytes
    network: str
    moniker: str = ""
    version: str = ""
    protocol_version: ProtocolVersion = ProtocolVersion()
    listen_addr: str = ""
    channels: bytes = b""
    other: NodeOther = NodeOther()


@dataclass(frozen=True, slots=True)
class Monitor:
    """Traffic statistics of a connection in one direction; rates are in bytes per second,
    durations in nanoseconds."""

    active: bool = True
    start: int = ZERO_TIME
    duration: int = 0
    idle: int = 0
    bytes: int = 0
    samples: int = 0
    inst_rate: int = 0
    cur_rate: int = 0
    avg_rate: int = 0
    peak_rate: int = 0
    bytes_rem: int = 0
    time_rem: int = 0
    progress: int = 0


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """Send queue of one P2P channel."""

    id: int
    send_queue_capacity: int = 0
    send_queue_size: int = 0
    priority: int = 0
    recently_sent: int = 0


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    """Traffic statistics of a peer connection."""

    duration: int = 0
    send_monitor: Monitor = Monitor()
    recv_monitor: Monitor = Monitor()
    channels: tuple[ChannelStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class Peer:
    """A connected node."""

    node_info: NodeInfo
    is_outbound: bool
    remote_ip: str
    connection_status: ConnectionStatus = ConnectionStatus()


@dataclass(frozen=True, slots=True)
class NetInfo:
    """Listeners and peers of the node."""

    listening: bool = True
    listeners: tuple[str, ...] = ()
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """Progress of a backfill: fetching blocks below the lowest stored one from other nodes."""

    done: int = 0
    """Blocks stored since the backfill began."""
    left: int = 0
    """Blocks that are not stored yet."""
    rate: float = 0.0
    """Blocks per second."""
    reason: str = ""
    """Reason why the backfill pauses; empty while it runs."""

    @property
    def seconds_left(self) -> float:
        """Seconds until the backfill ends at this rate; infinite while no blocks are stored."""
        if not self.left:
            return 0.0
        return self.left / self.rate if self.rate else inf
