"""Settings of the core as keywords of ``NodeRPC``, for type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class CoreSettings(TypedDict, total=False):
    """Types of the fields of :class:`~flask_noderpc.settings.Settings`; ``dialect`` is missing,
    as it is a parameter."""

    database: str | None
    home: str | None
    application: str
    chain_id: str | None
    moniker: str
    produce: bool
    accept_loss: bool
    block_interval: float
    empty_blocks: bool
    retain_blocks: int | None
    max_tx_bytes: int
    mempool_size: int
    dev: bool
    max_body_bytes: int
    max_batch: int
    max_response_bytes: int
    broadcast_timeout: float
    max_waiting_calls: int
    max_subscription_clients: int
    max_subscriptions_per_client: int
    event_buffer: int
    search_timeout: float
    cache_bytes: int
    exclude_routes: Sequence[str]
    metrics: bool
    log_calls: bool
    allowed_hosts: Sequence[str]
    allow_methods: Sequence[str]
    deny_methods: Sequence[str]
    rpc_unsafe: bool
    trusted_proxies: int
    read_origins: Sequence[str]
    write_origins: Sequence[str]
    cors_origins: Sequence[str]
    cors_headers: Sequence[str]
    rpc_laddr: str
    tls_cert_file: str
    tls_key_file: str
    workers: int
    server_threads: int | None
    max_open_connections: int
    max_connections_per_client: int | None
