"""Construction of the companion from a mount's settings."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..backends import open_store, stored_identity
from ..backends.base.store import Location
from ..domain.time import SECOND
from ..errors import Busy, ConfigurationError, UpstreamError
from ..settings import Settings
from ..wire.dialects import dialect_named
from .agreement import check_stored
from .backend import CompanionBackend
from .beginning import FetchOptions
from .evm import ForwardedEvm
from .follower import FollowOptions
from .http import UpstreamLimits
from .pool import Upstreams
from .trust import TrustOptions

log = logging.getLogger("flask_noderpc.companion")

_MAX_JOBS = 16
# CometBFT's most used version, for nodes that nobody has ever reached.
_DEFAULT_DIALECT = "comet-0.38"
_DIALECT_S = 2.0


def upstreams_of(settings: Settings, patience: float) -> Upstreams:
    """Return the nodes of NODERPC_UPSTREAM, which are not asked yet.

    Reads are tried again for so many seconds. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError` for URLs that are none.
    """
    limits = _limits(settings, patience)
    return Upstreams.at(settings.upstream, settings.upstream_dialect, limits, patience)


def _limits(settings: Settings, patience: float) -> UpstreamLimits:
    return UpstreamLimits(
        settings.upstream_timeout,
        settings.upstream_concurrency,
        settings.upstream_rate,
        settings.upstream_max_bytes,
        max(patience, settings.upstream_timeout),
    )


def _evm_of(settings: Settings) -> ForwardedEvm:
    return ForwardedEvm(settings.evm_upstream, _limits(settings, 0.0))


def fetch_options(settings: Settings) -> FetchOptions:
    """Return how the chain is fetched; raise ``ConfigurationError``."""
    trust = TrustOptions.parse(settings.trust) if settings.trust else TrustOptions()
    jobs = min(_MAX_JOBS, max(1, settings.upstream_concurrency // 2) * len(settings.upstream))
    return FetchOptions(
        replace(trust, period=int(settings.trust_period * SECOND)),
        jobs,
        frozenset(settings.unchecked),
        settings.chain_id or "",
    )


def check_settings(settings: Settings, location: Location) -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` for settings of an embedded chain,
    for URLs that are none, and for a store of another chain."""
    of_own_chain = {
        "NODERPC_DEV": settings.dev,
        "NODERPC_APPLICATION": settings.application != Settings().application,
        "NODERPC_RETAIN_BLOCKS": settings.retain_blocks is not None,
    }
    for key, is_set in of_own_chain.items():
        if is_set:
            raise ConfigurationError(
                f"{key} is for an embedded chain, and NODERPC_UPSTREAM follows that of other"
                " nodes: set one of them"
            )
    upstreams_of(settings, 0.0).close()
    if settings.evm_upstream:
        _evm_of(settings).close()
    check_stored(stored_identity(location.path), location.shown, settings.chain_id or "")


def companion_from_settings(settings: Settings, path: Path) -> CompanionBackend:
    """Return a companion whose store is not yet opened; raise ``ConfigurationError``."""
    check_settings(settings, Location(path))
    options = FollowOptions(
        fetch_options(settings),
        settings.upstream_poll,
        settings.head_delay,
        settings.backfill_from,
    )
    connect_evm = partial(_evm_of, settings) if settings.evm_upstream else None
    connect = partial(upstreams_of, settings)
    return CompanionBackend(open_store(path), connect, options, connect_evm)


def dialect_of_upstream(settings: Settings, path: Path) -> str:
    """Return the name of the nodes' own dialect; that of the last time while none answers."""
    if settings.upstream_dialect:
        return dialect_named(settings.upstream_dialect, "NODERPC_UPSTREAM_DIALECT").name
    timeout = min(_DIALECT_S, settings.upstream_timeout)
    upstreams = upstreams_of(replace(settings, upstream_timeout=timeout), 0.0)
    try:
        return upstreams.attempt(lambda reader: reader.node.dialect.name)
    except (UpstreamError, Busy) as error:
        stored = stored_identity(path)
        name = (stored.dialect if stored else "") or _DEFAULT_DIALECT
        log.warning("%s: %s is served, NODERPC_DIALECT names another dialect", error, name)
        return name
    finally:
        upstreams.close()
