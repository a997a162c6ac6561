"""The settings of ``noderpc start`` that nobody gives: its own defaults, and those in a home's
``config/noderpc.toml``, each by its name in small letters."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..settings import PREFIX, SEE_LIST, SETTINGS, read_settings, similar_setting

# As CometBFT's node, it makes blocks all the time.
NODE_DEFAULTS: dict[str, Any] = {"empty_blocks": True}
"""The defaults of a node of its own, where they are not those of an app."""

DEV_DEFAULTS: dict[str, Any] = {
    "application": "evm",
    "json_rpc_enable": True,
    "evm_api": "eth,net,web3,txpool,debug",
    "cors_origins": "*",
    # As anvil and hardhat: each transaction is in a block when its sender is answered.
    "block_interval": 0.1,
}
"""Those with ``--dev``."""


def default_home(application: str | None = None) -> Path:
    """The folder of a node, or that of a chain of tests with an application: it never gets the
    chain of others."""
    folder = Path.home() / ".noderpc"
    return folder / f"dev-{application}" if application else folder


def config_path(home: Path) -> Path:
    """The file of a home's settings."""
    return home / "config" / "noderpc.toml"


def read_config(home: Path) -> dict[str, Any]:
    """Return the settings of the file, none if it does not exist; raise
    :exc:`~flask_noderpc.errors.ConfigurationError`."""
    path = config_path(home)
    try:
        found = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror}; --home names a folder that may be read and written to"
        ) from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    known = {row.name for row in SETTINGS}
    for name in found:
        if name not in known:
            like = similar_setting(name.removeprefix(PREFIX))
            hint = f"did you mean {like}?" if like else SEE_LIST
            raise ConfigurationError(f"{path}: {name} is no setting; {hint}")
    return found


def default_database(home: Path) -> Path:
    """Return the path of a home's store, unless a setting has another."""
    return home / "data" / "noderpc.db"


def database_of(home: Path) -> Path:
    """A home's store; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    found, path = read_config(home), config_path(home)
    settings = read_settings({}, found, {name: f"{path}: {name}" for name in found})
    return Path(settings.database or default_database(home))
