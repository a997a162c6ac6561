"""Home of a node: ``config/`` with CometBFT's JSON files for the genesis and the keys."""

from __future__ import annotations

import os
import secrets
import string
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .. import jsoncodec
from ..domain.genesis import Genesis, GenesisValidator
from ..domain.validator import ED25519
from ..errors import ConfigurationError, InvalidSetting, short_repr
from ..protocol.comet.genesis import genesis_document, read_genesis
from ..protocol.comet.key_types import KEY_NAMES
from ..protocol.comet.keys import PrivateKey
from ..settings import check_chain_id

_PRIVATE_KEY_NAME = "tendermint/PrivKeyEd25519"


class _Key(jsoncodec.Struct):
    type: str
    value: bytes


class _KeyFile(jsoncodec.Struct):
    priv_key: _Key


def read_key(document: bytes) -> PrivateKey:
    """Parse a validator or node key file; raise ``ConfigurationError`` if it is invalid."""
    try:
        key = jsoncodec.decode(document, _KeyFile).priv_key
    except jsoncodec.NotJSON as error:
        raise ConfigurationError(f"key file: {error}") from None
    if key.type != _PRIVATE_KEY_NAME or len(key.value) != 64:
        raise ConfigurationError(f"key file: a 64-byte {_PRIVATE_KEY_NAME} is needed")
    private = PrivateKey(key.value[:32])
    if private.public.value != key.value[32:]:
        raise ConfigurationError("key file: the public half is not that of the seed")
    return private


def _private(key: PrivateKey) -> dict[str, Any]:
    return {"type": _PRIVATE_KEY_NAME, "value": key.seed + key.public.value}


def validator_key_document(key: PrivateKey) -> bytes:
    """Encode a ``priv_validator_key.json``."""
    return jsoncodec.pretty(
        {
            "address": key.address.hex().upper(),
            "pub_key": {"type": KEY_NAMES[ED25519], "value": key.public.value},
            "priv_key": _private(key),
        }
    )


def node_key_document(key: PrivateKey) -> bytes:
    """Encode a ``node_key.json``."""
    return jsoncodec.encode({"priv_key": _private(key)})


T = TypeVar("T")

_GENESIS = "genesis.json"
_VALIDATOR_KEY = "priv_validator_key.json"
_MORE_KEYS = "priv_validator_key*.json"
_NODE_KEY = "node_key.json"
# CometBFT: the power that init gives the one validator.
_POWER = 10


@dataclass(frozen=True, slots=True)
class Home:
    """Genesis and keys of a node's home."""

    genesis: Genesis
    validator_keys: tuple[PrivateKey, ...]
    """The node's key, then those of other ``priv_validator_key*.json`` files."""
    node_key: PrivateKey


def random_chain_id() -> str:
    """Return a chain id in the form of CometBFT's ``init``."""
    letters = string.ascii_letters + string.digits
    return "test-chain-" + "".join(secrets.choice(letters) for _ in range(6))


def genesis_path(folder: Path) -> Path:
    """Return the file of a home's genesis document."""
    return folder / "config" / _GENESIS


def exists(folder: Path) -> bool:
    """Return true if the folder has a genesis document."""
    return genesis_path(folder).exists()


def create(
    folder: Path, chain_id: str | None, now: int, app_state: bytes = b"", dialect: str = ""
) -> Home:
    """Write missing files and load the home; existing files are never changed.

    The CometBFT of the dialect decides how the genesis document is written and read.

    Several processes may do this at once: each file is written atomically, and once.
    """
    config = folder / "config"
    if chain_id is not None:
        _check(chain_id)
    try:
        # CometBFT 0.38: DefaultDirPerm.
        for directory in (folder, config):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_missing(folder, chain_id, now, app_state, dialect)
    except OSError as error:
        raise ConfigurationError(
            f"{config}: {error.strerror}; NODERPC_HOME names a folder that can be written to"
        ) from None
    home = load(folder, now, dialect)
    if chain_id is not None and chain_id != home.genesis.chain_id:
        raise ConfigurationError(
            f"NODERPC_CHAIN_ID is {chain_id!r} and the genesis in {config} says"
            f" {home.genesis.chain_id!r}"
        )
    return home


def _check(chain_id: str) -> None:
    """Raise ``ConfigurationError`` for a chain id that :func:`load` would refuse."""
    try:
        check_chain_id(chain_id)
    except ValueError as error:
        raise InvalidSetting(f"NODERPC_CHAIN_ID = {short_repr(chain_id)}: {error}") from None


def _write_missing(
    folder: Path, chain_id: str | None, now: int, app_state: bytes, dialect: str
) -> None:
    config = folder / "config"
    if exists(folder) and not (config / _VALIDATOR_KEY).exists():
        # A new key would be no validator of this chain.
        raise ConfigurationError(
            f"{config / _VALIDATOR_KEY} is missing: put the key of this chain's validator back"
        )
    _write_once(config / _VALIDATOR_KEY, validator_key_document(PrivateKey.generate()))
    _write_once(config / _NODE_KEY, node_key_document(PrivateKey.generate()))
    if not exists(folder):
        key = _read(config / _VALIDATOR_KEY, read_key)
        genesis = Genesis(
            chain_id=chain_id or random_chain_id(),
            genesis_time=now,
            validators=(GenesisValidator(key.address, key.public, _POWER),),
            app_state=app_state,
        )
        try:
            document = genesis_document(genesis, dialect)
        except jsoncodec.NotJSON as error:
            raise ConfigurationError(f"app_state of a new chain: {error}") from None
        _write_once(config / _GENESIS, document, mode=0o644)


def load(folder: Path, now: int, dialect: str = "") -> Home:
    """Read a home; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    config = folder / "config"
    names = sorted(
        config.glob(_MORE_KEYS), key=lambda path: (path.name != _VALIDATOR_KEY, path)
    )
    return Home(
        genesis=_read(config / _GENESIS, lambda content: read_genesis(content, now, dialect)),
        validator_keys=tuple(_read(name, read_key) for name in names),
        node_key=_read(config / _NODE_KEY, read_key),
    )


def _read(path: Path, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror}; `flask noderpc init` makes a new home"
        ) from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _write_once(path: Path, content: bytes, mode: int = 0o600) -> None:
    if path.exists():
        return
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, mode)
        # A rename would overwrite a file that another process has just written.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)
