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
    """Settings of a companion, which follows a chain of other nodes into a store."""

    upstream: tuple[str, ...] = setting(
        "companion",
        (),
        URLS,
        "URLs of nodes whose chain is followed and served, instead of an embedded chain.",
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
        "Dialect of the nodes; by default, it is chosen by the version that they report.",
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
        "Maximum seconds of a request to a node, and of all requests of a forwarded call.",
    )
    upstream_concurrency: int = setting(
        "companion",
        8,
        COUNT,
        "Maximum requests in flight to each node: of all processes of ``noderpc start``"
        " together, but of each process under another server.",
    )
    upstream_rate: float = setting(
        "companion",
        0.0,
        AMOUNT,
        "Maximum calls per second to each node, counted in the same way; 0 means no limit.",
    )
    upstream_max_bytes: int = setting(
        "companion",
        256 << 20,
        BYTES,
        "Maximum bytes of a node's response, after decompression.",
    )
    upstream_poll: float = setting(
        "companion",
        0.5,
        SECONDS,
        "Seconds between polls for a node's height if its websocket announces no blocks.",
    )
    trust: str = setting(
        "companion",
        "",
        TEXT,
        "``HEIGHT:HASH`` of a header to trust; by default, the first one that nodes report.",
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
        "Fields that the chain computes in its own way, such as ``data_hash``; they are"
        " not verified.",
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
        "Number of blocks by which the head stays behind the nodes' head; from 1 on, only"
        " proven results are served.",
    )
