"""Create the companion from a mount's settings."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..backends import open_store, stored_identity
from ..backends.base.location import Location, location_of
from ..domain.time import SECOND
from ..errors import Busy, InvalidSetting, UpstreamError
from ..settings import Settings
from ..wire.dialects import dialect_named
from .address import Address
from .agreement import check_stored
from .backend import CompanionBackend
from .beginning import FetchOptions
from .evm import ForwardedEvm, KnownBlock
from .follower import FollowOptions
from .forward_pool import ForwardUpstreams
from .http import UpstreamLimits
from .pool import Upstreams
from .settings import CompanionSettings
from .trust import TrustOptions

log = logging.getLogger("flask_noderpc.companion")

_MAX_JOBS = 16
_FOLLOW_PATIENCE_S = 10.0
# Dialect to serve if no node was ever reached: that of CometBFT's most used version.
_DEFAULT_DIALECT = "comet-0.38"
_DIALECT_S = 2.0


def upstreams_of(settings: Settings, patience: float) -> Upstreams:
    """Return the nodes of NODERPC_UPSTREAM, without connecting to them.

    Reads are retried for ``patience`` seconds. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError` for invalid URLs.
    """
    limits = _limits(settings, patience)
    return Upstreams.from_urls(
        _addresses(settings), settings.of(CompanionSettings).upstream_dialect, limits, patience
    )


def _addresses(settings: Settings) -> list[Address]:
    own = settings.of(CompanionSettings)
    header = own.upstream_header
    return [Address.parse(url, header, "NODERPC_UPSTREAM") for url in own.upstream]


def _forward_of(settings: Settings) -> ForwardUpstreams:
    # A client waits for the response, so try each node only once.
    limits = _limits(settings, 0.0)
    return ForwardUpstreams.from_urls(
        _addresses(settings), settings.of(CompanionSettings).upstream_dialect, limits, 0.0
    )


def _limits(settings: Settings, patience: float) -> UpstreamLimits:
    own = settings.of(CompanionSettings)
    return UpstreamLimits(
        own.upstream_timeout,
        own.upstream_concurrency,
        own.upstream_rate,
        own.upstream_max_bytes,
        max(patience, own.upstream_timeout),
    )


def evm_calls(
    settings: Settings, urls: Sequence[str], name: str, known_block: KnownBlock
) -> ForwardedEvm:
    """Return a client of the Ethereum JSON-RPC at URLs from the setting ``name``; raise
    :exc:`~flask_noderpc.errors.InvalidSetting`."""
    addresses = [Address.parse(url, "", name) for url in urls]
    found = ForwardedEvm(addresses, _limits(settings, 0.0))
    found.known_block = known_block
    return found


def _evm_of(settings: Settings) -> ForwardedEvm:
    urls = settings.of(CompanionSettings).evm_upstream
    return evm_calls(settings, urls, "NODERPC_EVM_UPSTREAM", lambda: None)


def fetch_options(settings: Settings) -> FetchOptions:
    """Return the options for fetching the chain; raise ``ConfigurationError``."""
    own = settings.of(CompanionSettings)
    trust = TrustOptions.parse(own.trust) if own.trust else TrustOptions()
    each = max(1, own.upstream_concurrency // 2)
    if own.upstream_rate:
        # With a low rate, more chunks in parallel would only wait for each other's calls.
        each = min(each, max(1, int(own.upstream_rate // 10)))
    jobs = min(_MAX_JOBS, each * len(own.upstream))
    return FetchOptions(
        replace(trust, period=int(own.trust_period * SECOND)),
        jobs,
        frozenset(own.unchecked),
        settings.chain_id or "",
    )


def check_settings(settings: Settings, location: Location) -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for settings of an embedded chain,
    for invalid URLs, and for a store of another chain."""
    own = settings.of(CompanionSettings)
    of_own_chain = {
        "NODERPC_DEV": settings.dev,
        "NODERPC_APPLICATION": settings.application != Settings().application,
        "NODERPC_RETAIN_BLOCKS": settings.retain_blocks is not None,
    }
    for key, is_set in of_own_chain.items():
        if is_set:
            raise InvalidSetting(
                f"{key}: expected it to be unset with NODERPC_UPSTREAM, as it configures an"
                " embedded chain; remove one of the two settings"
            )
    upstreams_of(settings, 0.0).close()
    if own.evm_upstream:
        _evm_of(settings).close()
    check_stored(stored_identity(location.path), location.display_name, settings.chain_id or "")


def companion_from_settings(settings: Settings, path: str | Path) -> CompanionBackend:
    """Return a companion whose store is not yet opened; raise ``ConfigurationError``."""
    own = settings.of(CompanionSettings)
    check_settings(settings, location_of(path))
    options = FollowOptions(
        fetch_options(settings),
        own.upstream_poll,
        own.head_delay,
        own.backfill_from,
    )
    connect_evm = partial(_evm_of, settings) if own.evm_upstream else None
    return CompanionBackend(
        open_store(path, read_database=settings.replica()),
        partial(upstreams_of, settings, _FOLLOW_PATIENCE_S),
        partial(_forward_of, settings),
        options,
        connect_evm,
    )


def dialect_of_upstream(settings: Settings, path: str | Path) -> str:
    """Return the name of the nodes' dialect: from the settings, from the store (where the
    following process writes it), or from a node."""
    own = settings.of(CompanionSettings)
    if own.upstream_dialect:
        return dialect_named(own.upstream_dialect, "NODERPC_UPSTREAM_DIALECT").name
    stored = stored_identity(path)
    if stored is not None and stored.dialect:
        return stored.dialect
    timeout = min(_DIALECT_S, own.upstream_timeout)
    upstreams = upstreams_of(settings.changed(upstream_timeout=timeout), 0.0)
    try:
        return upstreams.attempt(lambda reader: reader.node.dialect.name)
    except (UpstreamError, Busy) as error:
        log.warning(
            "%s; the dialect %s is served meanwhile, set NODERPC_DIALECT to serve another one",
            error,
            _DEFAULT_DIALECT,
        )
        return _DEFAULT_DIALECT
    finally:
        upstreams.close()
