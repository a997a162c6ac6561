"""CometBFT's ``config/config.toml`` in a home: read the paths of a node's keys and data, and
warn of other members, which this package ignores."""

from __future__ import annotations

import errno
import logging
import os
import re
import socket
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigurationError
from ..settings import Settings, flag_of

_CONFIG = "config.toml"

# Names of CometBFT's databases, with and without a suffix, and of its write-ahead log.
_STORES = ("blockstore.db", "blockstore", "state.db", "state", "cs.wal")


@dataclass(frozen=True, slots=True)
class CometPaths:
    """Paths of a node's validator key, its state and its data."""

    key: Path
    state: Path
    data: Path
    remote_signer: str = ""
    """Address at which a CometBFT node expects a remote signer; empty if it has none."""

    def found_store(self) -> Path | None:
        """Return the path of a CometBFT node's database in the data folder, or ``None``."""
        return next((self.data / name for name in _STORES if (self.data / name).exists()), None)


def config_path(home: Path) -> Path:
    """Return the path of CometBFT's settings file in a home."""
    return home / "config" / _CONFIG


def read_file(path: Path) -> bytes:
    """Return the content of a regular file.

    Raise :exc:`OSError` for other kinds of files: reading a FIFO would wait for a writer, and
    a device may be endless.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "expected a regular file, got a FIFO or a device")
        return file.read()


def read_config(home: Path) -> dict[str, Any]:
    """Parse a home's config.toml; return an empty mapping if the file is missing.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if it can't be read.
    """
    path = config_path(home)
    try:
        return tomllib.loads(read_file(path).decode())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        # Invalid UTF-8 and invalid TOML are both ValueErrors.
        raise ConfigurationError(f"{path}: expected a TOML file: {error}") from None


def comet_paths(home: Path) -> CometPaths:
    """Return the paths that a home's config.toml names, or CometBFT's defaults.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an unusable config.toml.
    """
    config = read_config(home)

    def text(name: str, default: str) -> str:
        value = config.get(name, default)
        if not isinstance(value, str) or "\0" in value:
            raise ConfigurationError(
                f"{config_path(home)}: {name}: expected a string, got {value!r}"
            )
        # Use the default for an empty name, which would be the home itself.
        return value or default

    return CometPaths(
        home / text("priv_validator_key_file", "config/priv_validator_key.json"),
        home / text("priv_validator_state_file", "data/priv_validator_state.json"),
        home / text("db_dir", "data"),
        text("priv_validator_laddr", ""),
    )


log = logging.getLogger("flask_noderpc.chain")

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"([0-9.]{1,20})(h|ms|m|s|us|µs|ns)")
_LONGEST = 200


def _same(value: Any) -> Any:
    return value


def _seconds(value: Any) -> float:
    """Return the seconds of a duration in Go's text format."""
    found = _DURATION.findall(value)
    return sum(float(number) * _UNITS_S[unit] for number, unit in found)


class _Row(NamedTuple):
    """A member of config.toml that corresponds to a setting of this package."""

    member: str
    default: Any
    """CometBFT's default; no warning is needed for a member with this value."""
    setting: str
    converted: Callable[[Any], Any] = _same


_ROWS = (
    _Row("moniker", socket.gethostname(), "moniker"),
    _Row("rpc.laddr", "tcp://127.0.0.1:26657", "rpc_laddr"),
    _Row("rpc.cors_allowed_origins", [], "cors_origins", tuple),
    _Row(
        "rpc.cors_allowed_headers",
        ["Origin", "Accept", "Content-Type", "X-Requested-With", "X-Server-Time"],
        "cors_headers",
        tuple,
    ),
    _Row("rpc.max_open_connections", 900, "max_open_connections"),
    _Row("rpc.max_subscription_clients", 100, "max_subscription_clients"),
    _Row("rpc.max_subscriptions_per_client", 5, "max_subscriptions_per_client"),
    _Row("rpc.experimental_subscription_buffer_size", 200, "event_buffer"),
    _Row("rpc.timeout_broadcast_tx_commit", "10s", "broadcast_timeout", _seconds),
    _Row("rpc.max_request_batch_size", 10, "max_batch"),
    _Row("rpc.max_body_bytes", 1_000_000, "max_body_bytes"),
    _Row("rpc.tls_cert_file", "", "tls_cert_file"),
    _Row("rpc.tls_key_file", "", "tls_key_file"),
    _Row("mempool.size", 5_000, "mempool_size"),
    _Row("mempool.max_tx_bytes", 1_048_576, "max_tx_bytes"),
    _Row("consensus.create_empty_blocks", True, "empty_blocks"),
    _Row("consensus.timeout_commit", "1s", "block_interval", _seconds),
    _Row("instrumentation.prometheus", False, "metrics"),
)

_PEERS = "this node has no P2P network, but --upstream follows other nodes"
_UNSUPPORTED_MEMBERS = {
    "proxy_app": (
        "tcp://127.0.0.1:26658",
        "the application runs in this process: --application (NODERPC_APPLICATION)",
    ),
    "genesis_file": ("config/genesis.json", "this node reads config/genesis.json"),
    "node_key_file": ("config/node_key.json", "this node reads config/node_key.json"),
    "rpc.grpc_laddr": ("", "this node has no gRPC server"),
    "rpc.cors_allowed_methods": (
        ["HEAD", "GET", "POST"],
        "this node allows HEAD, GET and POST",
    ),
    "p2p.seeds": ("", _PEERS),
    "p2p.persistent_peers": ("", _PEERS),
    "statesync.enable": (False, "this node has no state sync"),
    "tx_index.indexer": ("kv", "this node indexes transactions in its store"),
}
"""Members without a corresponding setting: CometBFT's default, and what this node does."""


def _member(config: Mapping[str, Any], name: str) -> Any:
    """Return a member by its dotted name; ``None`` if it is missing (TOML has no null)."""
    value: Any = config
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def differences(config: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    """Yield a text for each member that differs both from CometBFT's default and from this
    node's behaviour."""
    for row in _ROWS:
        value, ours = _member(config, row.member), settings.value(row.setting)
        if value is not None and value != row.default and not _holds(row, value, ours):
            shown = ",".join(ours) if isinstance(ours, tuple) else ours
            name = f"{flag_of(row.setting)} (NODERPC_{row.setting.upper()})"
            yield f"{row.member} = {_short(value)}: {name} is {_short(shown)}"
    for name, (default, instead) in _UNSUPPORTED_MEMBERS.items():
        value = _member(config, name)
        if value is not None and value != default:
            yield f"{name} = {_short(value)}: {instead}"


def _holds(row: _Row, value: Any, ours: Any) -> bool:
    try:
        return bool(row.converted(value) == ours)
    except (TypeError, ValueError):
        # The value is invalid: CometBFT would not start with it.
        return False


def _short(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def warn_of_ignored(home: Path, settings: Settings) -> None:
    """Log one warning about the members of a config.toml that this node ignores."""
    try:
        found = list(differences(read_config(home), settings))
    except ConfigurationError as error:
        log.warning("CometBFT's settings can't be compared with this node's: %s", error)
        return
    if found:
        log.warning(
            "%s is CometBFT's: this node reads only the paths of the validator key and of the"
            " data from it, and ignores the rest; different here: %s",
            config_path(home),
            "; ".join(found),
        )
