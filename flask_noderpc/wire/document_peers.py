"""The document's ``net_info``, with the members in the document's order."""

from __future__ import annotations

from ..domain import network
from . import common
from .fields import Flag, IntString, Number, Text, Timestamp
from .schema import ListOf, Nested, WireSchema


class Monitor(WireSchema):
    """Monitor."""

    domain = network.Monitor
    active = Flag(data_key="Active")
    start = Timestamp(data_key="Start")
    duration = IntString(data_key="Duration")
    idle = IntString(data_key="Idle")
    bytes = IntString(data_key="Bytes")
    samples = IntString(data_key="Samples")
    inst_rate = IntString(data_key="InstRate")
    cur_rate = IntString(data_key="CurRate")
    avg_rate = IntString(data_key="AvgRate")
    peak_rate = IntString(data_key="PeakRate")
    bytes_rem = IntString(data_key="BytesRem")
    time_rem = IntString(data_key="TimeRem")
    progress = Number(data_key="Progress")


class ConnectionStatus(WireSchema):
    """Peer.connection_status."""

    domain = network.ConnectionStatus
    duration = IntString(data_key="Duration")
    send_monitor = Nested(Monitor, data_key="SendMonitor")
    recv_monitor = Nested(Monitor, data_key="RecvMonitor")
    channels = ListOf(common.ChannelStatus, data_key="Channels")


class Peer(WireSchema):
    """Peer."""

    domain = network.Peer
    node_info = Nested(common.NodeInfo)
    is_outbound = Flag()
    remote_ip = Text()
    connection_status = Nested(ConnectionStatus)


class NetInfo(WireSchema):
    """Result of ``net_info``."""

    domain = network.NetInfo
    listening = Flag()
    listeners = ListOf(Text())
    n_peers = IntString(get=lambda answer: len(answer.peers), dump_only=True)
    peers = ListOf(Peer)
