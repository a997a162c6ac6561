"""All settings; each is declared once with its group, type, default and description.

Each field of :class:`Settings` and of the features' settings classes is a setting. Its key in
``app.config`` is ``NODERPC_`` and the field's name in capitals. With
``app.config.from_prefixed_env()``, its environment variable is ``FLASK_`` and that key. Only
this package reads ``app.config``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypedDict

from ..errors import ConfigurationError, InvalidSetting, short_repr
from .kinds import check_chain_id
from .table import (
    GROUPS,
    PREFIX,
    Setting,
    Settings,
    all_settings,
    by_group,
    flag_of,
    setting,
    settings_of,
)

__all__ = [
    "GROUPS",
    "PREFIX",
    "REMOVED_SETTINGS",
    "SEE_LIST",
    "CoreSettings",
    "Setting",
    "Settings",
    "all_settings",
    "by_group",
    "check_chain_id",
    "flag_of",
    "non_default_values",
    "read_settings",
    "setting",
    "settings_of",
    "shown_setting",
    "similar_setting",
    "unknown_setting_error",
    "warn_of_removed",
]

log = logging.getLogger("flask_noderpc.settings")

REMOVED_SETTINGS = {
    "client_timeout": "a client has 10 seconds for the headers of a request, for its body and"
    " for each part of the response",
    "gzip_min_bytes": "responses of at least 16,384 bytes are compressed for clients on other"
    " machines that accept gzip",
    "idle_timeout": "an idle connection is closed after 120 seconds",
    "lease_seconds": "the lease of a producer that does not renew it expires after 3 seconds",
    "max_waiting_calls_per_client": "NODERPC_MAX_WAITING_CALLS is divided fairly among clients",
    "max_websockets": "NODERPC_MAX_OPEN_CONNECTIONS also limits websockets",
}
"""Settings that the previous release had, by name, with a text that says what happens instead.
They are accepted with a warning until the next release."""

SEE_LIST = "see docs/settings for the list"
"""Hint for an unknown name that is not similar to any setting."""


def similar_setting(name: str) -> str | None:
    """Return the name of the setting that is most similar to a mistyped one, or ``None``."""
    like = get_close_matches(name.lower(), [row.name for row in all_settings()], 1)
    return like[0] if like else None


def unknown_setting_error(key: str) -> str:
    """Return the error text for an unknown key, which suggests the most similar setting."""
    # Compare names without the prefix, which would make all of them similar.
    like = similar_setting(key.removeprefix(PREFIX))
    hint = f"did you mean {PREFIX}{like.upper()}?" if like else SEE_LIST
    return f"unknown setting {key}; {hint}"


def warn_of_removed(name: str, source: str) -> None:
    """Warn that a removed setting has no effect; ``source`` is the key, flag or file that has
    it."""
    log.warning(
        "%s is no longer a setting and has no effect: %s", source, REMOVED_SETTINGS[name]
    )


def shown_setting(row: Setting, value: object) -> str:
    """Return the value of a setting as text, in which credentials are hidden."""
    return "'…'" if row.kind.is_secret and value else repr(value)


def non_default_values(instances: object) -> dict[str, Any]:
    """Return the values in instances of features' settings that differ from the defaults, by
    name.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an instance of another class.
    """
    values: dict[str, Any] = {}
    for each in instances if isinstance(instances, Iterable) else [instances]:
        known = {row.owner.__name__: row.owner for row in all_settings()}
        del known[Settings.__name__]
        if type(each) not in known.values():
            raise ConfigurationError(
                f"settings: expected instances of {', '.join(known)}, got {short_repr(each)};"
                " pass settings of the core as keyword arguments"
            )
        for row in all_settings():
            if row.owner is type(each) and getattr(each, row.name) != row.default:
                values[row.name] = getattr(each, row.name)
    return values


def read_settings(
    config: Mapping[str, object],
    overrides: Mapping[str, object],
    written: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of a mount: ``overrides``, then ``app.config``, then defaults.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an invalid value, an unknown
    ``NODERPC_`` key or an unknown override; log a warning for a setting in
    :data:`REMOVED_SETTINGS`. Errors name a setting by its key, or by its entry in ``written``,
    such as a flag, or a file and a name in it.
    """
    known = {row.key for row in all_settings()}
    dropped = {PREFIX + name.upper(): name for name in REMOVED_SETTINGS}
    given_keys = [key for key in config if key.startswith(PREFIX)]
    for key in (*given_keys, *(PREFIX + name.upper() for name in overrides)):
        if key in dropped:
            warn_of_removed(dropped[key], key)
        elif key not in known:
            raise InvalidSetting(unknown_setting_error(key))
    values: dict[str, Any] = {}
    for row in all_settings():
        given = overrides.get(row.name)
        if given is None:
            given = config.get(row.key)
        if given is None:
            continue
        try:
            values[row.name] = row.read(given)
        except ValueError as error:
            source = (written or {}).get(row.name, row.key)
            shown = "" if row.kind.is_secret else f" = {short_repr(given)}"
            raise InvalidSetting(f"{source}{shown}: {error}") from None
    return Settings().changed(**values)


class CoreSettings(TypedDict, total=False):
    """Core settings as keyword arguments of ``NodeRPC``, for type checkers; ``dialect`` is
    missing because it is a parameter."""

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
    workers: int | Literal["auto"]
    server_threads: int | None
    max_open_connections: int
    max_connections_per_client: int | None
