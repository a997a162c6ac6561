"""Settings of the companion."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings.kinds import (
    AMOUNT,
    BYTES,
    COUNT,
    HEADER,
    NAMES,
    PERIOD,
    SECONDS,
    TEXT,
    URLS,
    integer,
)
from ..settings.table import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionSettings:
    """Settings of a store that follows other nodes."""

    upstream: tuple[str, ...] = setting(
        "companion",
        (),
        URLS,
        "URLs of nodes of one chain, which is followed and served instead of an embedded one.",
    )
    evm_upstream: tuple[str, ...] = setting(
        "companion",
        (),
        URLS,
        "URLs of the nodes' EVM JSON-RPC, for calls that need state.",
    )
    upstream_dialect: str = setting(
        "companion",
        "",
        TEXT,
        "Dialect of the nodes; read from their version when not given.",
    )
    upstream_header: str = setting(
        "companion",
        "",
        HEADER,
        "Header of each request to the nodes of NODERPC_UPSTREAM, as"
        " ``Authorization: Bearer …`` or ``x-api-key: …``, or ``@FILE`` with one.",
    )
    upstream_timeout: float = setting(
        "companion",
        10.0,
        SECONDS,
        "Maximum seconds of a request to a node, and of a forwarded call as a whole.",
    )
    upstream_concurrency: int = setting(
        "companion",
        8,
        COUNT,
        "Maximum requests in flight to each node: of the processes of ``noderpc start``"
        " together, of each process of another server.",
    )
    upstream_rate: float = setting(
        "companion",
        0.0,
        AMOUNT,
        "Maximum calls per second to each node, of the same processes; 0 means no limit.",
    )
    upstream_max_bytes: int = setting(
        "companion",
        256 << 20,
        BYTES,
        "Maximum bytes of a response of a node, after decompression.",
    )
    upstream_poll: float = setting(
        "companion",
        0.5,
        SECONDS,
        "Seconds after which a node is asked for its height if its websocket is silent.",
    )
    trust: str = setting(
        "companion",
        "",
        TEXT,
        "``HEIGHT:HASH`` of a header that is trusted; the first that is seen when not given.",
    )
    trust_period: float = setting(
        "companion",
        14 * 86_400.0,
        PERIOD,
        "Time for which a header is trusted, such as ``14d``; less than the chain's unbonding"
        " period.",
    )
    unchecked: tuple[str, ...] = setting(
        "companion",
        (),
        NAMES,
        "Fields of blocks that the chain computes in its own way, such as ``data_hash``.",
    )
    backfill_from: int = setting(
        "companion",
        1,
        COUNT,
        "Lowest height that is fetched; blocks that all nodes have pruned are left out.",
    )
    head_delay: int = setting(
        "companion",
        0,
        integer(0, maximum=1000),
        "Blocks that the head stays behind the nodes'; 1 serves results that are proven.",
    )
