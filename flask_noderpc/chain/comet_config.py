"""CometBFT's ``config/config.toml`` in a home: where a node keeps its keys and its data."""

from __future__ import annotations

import errno
import os
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError

_CONFIG = "config.toml"

# CometBFT: the databases and the write-ahead log of a node, with the suffixes of its engines.
_STORES = ("blockstore.db", "blockstore", "state.db", "state", "cs.wal")


@dataclass(frozen=True, slots=True)
class CometPaths:
    """The files of a node's home that concern its validator key."""

    key: Path
    state: Path
    data: Path
    remote_signer: str = ""
    """The address at which a CometBFT node waits for a remote signer; empty without one."""

    def found_store(self) -> Path | None:
        """Return a store of a CometBFT node in the data folder, if there is one."""
        return next((self.data / name for name in _STORES if (self.data / name).exists()), None)


def config_path(home: Path) -> Path:
    """Return CometBFT's settings file of a home."""
    return home / "config" / _CONFIG


def read_file(path: Path) -> bytes:
    """Return what a regular file holds.

    Raise :exc:`OSError` for others, too: reading a FIFO would wait for a writer, and a device
    may have no end.
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
        # Both errors of UTF-8 and of TOML are of this type.
        raise ConfigurationError(f"{path}: not a TOML file: {error}") from None


def comet_paths(home: Path) -> CometPaths:
    """Return the files that a home's config.toml names, or CometBFT's defaults.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an unusable config.toml.
    """
    config = read_config(home)

    def text(name: str, default: str) -> str:
        value = config.get(name, default)
        if not isinstance(value, str) or "\0" in value:
            raise ConfigurationError(
                f"{config_path(home)}: {name}: expected a string, got {value!r}"
            )
        # An empty name would be the home itself.
        return value or default

    return CometPaths(
        home / text("priv_validator_key_file", "config/priv_validator_key.json"),
        home / text("priv_validator_state_file", "data/priv_validator_state.json"),
        home / text("db_dir", "data"),
        text("priv_validator_laddr", ""),
    )
