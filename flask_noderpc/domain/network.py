"""The node itself and the peers it is connected to."""

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
    """Optional fields of a node's info."""

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
    """Traffic figures of one direction; rates in bytes a second, durations in ns."""

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
    """The send queue of one peer-to-peer channel."""

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
    """Progress of the blocks that are fetched from other nodes, below those that are stored."""

    done: int = 0
    """Blocks that were stored since it began."""
    left: int = 0
    """Blocks that are still to be stored."""
    rate: float = 0.0
    """Blocks per second."""
    reason: str = ""
    """Why it stands; empty while it goes on."""

    @property
    def seconds_left(self) -> float:
        """Seconds until its end at this rate; infinite while nothing is stored."""
        if not self.left:
            return 0.0
        return self.left / self.rate if self.rate else inf
