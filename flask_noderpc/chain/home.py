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
from ..domain.genesis import (
    BlockParams,
    ConsensusParams,
    EvidenceParams,
    Genesis,
    GenesisValidator,
    SynchronyParams,
    ValidatorParams,
)
from ..domain.time import ZERO_TIME, from_text, to_text
from ..domain.validator import ED25519, PublicKey
from ..errors import ConfigurationError, InvalidSetting, short_repr
from ..protocol.comet.key_types import KEY_TYPES, address
from ..protocol.comet.keys import PrivateKey
from ..settings import check_chain_id

# CometBFT: names of its JSON key types.
KEY_NAMES = {kind: known.json_name for kind, known in KEY_TYPES.items()}
_PRIVATE_KEY_NAME = "tendermint/PrivKeyEd25519"


class _Key(jsoncodec.Struct):
    type: str
    value: bytes


class _Validator(jsoncodec.Struct):
    pub_key: _Key
    power: str | int
    address: str = ""
    name: str = ""


class _Genesis(jsoncodec.Struct):
    chain_id: str
    genesis_time: str = "0001-01-01T00:00:00Z"
    initial_height: str | int = 0
    consensus_params: dict[str, dict[str, Any]] | None = None
    validators: list[_Validator] | None = None
    app_hash: str = ""
    app_state: jsoncodec.Raw = jsoncodec.Raw(b"")


class _KeyFile(jsoncodec.Struct):
    priv_key: _Key


def read_genesis(document: bytes, now: int) -> Genesis:
    """Parse a genesis document; ``now`` replaces a missing ``genesis_time``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` that names the invalid field.
    """
    try:
        raw = jsoncodec.decode(document, _Genesis)
        genesis_time = from_text(raw.genesis_time)
        return Genesis(
            chain_id=check_chain_id(raw.chain_id),
            genesis_time=now if genesis_time == ZERO_TIME else genesis_time,
            initial_height=_checked_height(int(raw.initial_height)),
            consensus_params=_params(raw.consensus_params or {}),
            validators=tuple(_validator(v) for v in raw.validators or ()),
            app_hash=bytes.fromhex(raw.app_hash),
            app_state=bytes(raw.app_state),
        )
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"genesis document: {error}") from None


def _checked_height(height: int) -> int:
    if height < 0:
        raise ValueError(f"initial_height is negative: {height}")
    # CometBFT: init writes 0, which means 1.
    return height or 1


def _validator(raw: _Validator) -> GenesisValidator:
    names = {name: kind for kind, name in KEY_NAMES.items()}
    if raw.pub_key.type not in names:
        raise ValueError(f"validator key type {raw.pub_key.type!r} is not supported")
    key = PublicKey(names[raw.pub_key.type], raw.pub_key.value)
    own_address, power = address(key), int(raw.power)
    if raw.address and bytes.fromhex(raw.address) != own_address:
        raise ValueError(f"validator address {raw.address} is not that of its key")
    if power <= 0:
        raise ValueError(f"validator {own_address.hex().upper()} has voting power {power}")
    return GenesisValidator(own_address, key, power, raw.name)


def _params(raw: dict[str, dict[str, Any]]) -> ConsensusParams:
    def number(group: str, name: str, default: int) -> int:
        return int(raw.get(group, {}).get(name, default))

    block, evidence, default = BlockParams(), EvidenceParams(), ConsensusParams()
    version, synchrony = raw.get("version", {}), default.synchrony
    extensions = "vote_extensions_enable_height"
    return ConsensusParams(
        _checked_block(
            BlockParams(
                number("block", "max_bytes", block.max_bytes),
                number("block", "max_gas", block.max_gas),
                number("block", "time_iota_ms", block.time_iota_ms),
            )
        ),
        EvidenceParams(
            number("evidence", "max_age_num_blocks", evidence.max_age_num_blocks),
            number("evidence", "max_age_duration", evidence.max_age_duration),
            number("evidence", "max_bytes", evidence.max_bytes),
        ),
        ValidatorParams(
            tuple(
                raw.get("validator", {}).get("pub_key_types", default.validator.pub_key_types)
            )
        ),
        # CometBFT 0.34 writes app_version.
        int(version.get("app", version.get("app_version", 0))),
        # CometBFT 1.0 moved it.
        number("feature", extensions, number("abci", extensions, 0)),
        number("feature", "pbts_enable_height", 0),
        SynchronyParams(
            number("synchrony", "precision", synchrony.precision),
            number("synchrony", "message_delay", synchrony.message_delay),
        ),
    )


def _checked_block(params: BlockParams) -> BlockParams:
    # CometBFT: ConsensusParams.ValidateBasic.
    if params.max_bytes == 0 or params.max_bytes < -1:
        raise ValueError(f"block.max_bytes is -1 or above 0, not {params.max_bytes}")
    if params.max_gas < -1:
        raise ValueError(f"block.max_gas is -1 or more, not {params.max_gas}")
    return params


def genesis_document(genesis: Genesis) -> bytes:
    """Encode a genesis document as CometBFT 0.38 does."""
    params = genesis.consensus_params
    document: dict[str, Any] = {
        "genesis_time": to_text(genesis.genesis_time),
        "chain_id": genesis.chain_id,
        "initial_height": str(genesis.initial_height),
        "consensus_params": {
            "block": {
                "max_bytes": str(params.block.max_bytes),
                "max_gas": str(params.block.max_gas),
            },
            "evidence": {
                "max_age_num_blocks": str(params.evidence.max_age_num_blocks),
                "max_age_duration": str(params.evidence.max_age_duration),
                "max_bytes": str(params.evidence.max_bytes),
            },
            "validator": {"pub_key_types": params.validator.pub_key_types},
            "version": {"app": str(params.app_version)},
            "abci": {
                "vote_extensions_enable_height": str(params.vote_extensions_enable_height)
            },
        },
        "validators": [
            {
                "address": v.address.hex().upper(),
                "pub_key": {"type": KEY_NAMES[v.pub_key.type], "value": v.pub_key.value},
                "power": str(v.power),
                "name": v.name,
            }
            for v in genesis.validators
        ],
        "app_hash": genesis.app_hash.hex().upper(),
    }
    if genesis.app_state:
        document["app_state"] = jsoncodec.Raw(genesis.app_state)
    return jsoncodec.pretty(document)


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


def create(folder: Path, chain_id: str | None, now: int, app_state: bytes = b"") -> Home:
    """Write missing files and load the home; existing files are never changed.

    Several processes may do this at once: each file is written atomically, and once.
    """
    config = folder / "config"
    if chain_id is not None:
        _check(chain_id)
    try:
        # CometBFT 0.38: DefaultDirPerm.
        for directory in (folder, config):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_missing(folder, chain_id, now, app_state)
    except OSError as error:
        raise ConfigurationError(
            f"{config}: {error.strerror}; NODERPC_HOME names a folder that can be written to"
        ) from None
    home = load(folder, now)
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


def _write_missing(folder: Path, chain_id: str | None, now: int, app_state: bytes) -> None:
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
            document = genesis_document(genesis)
        except jsoncodec.NotJSON as error:
            raise ConfigurationError(f"app_state of a new chain: {error}") from None
        _write_once(config / _GENESIS, document, mode=0o644)


def load(folder: Path, now: int) -> Home:
    """Read a home; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    config = folder / "config"
    names = sorted(
        config.glob(_MORE_KEYS), key=lambda path: (path.name != _VALIDATOR_KEY, path)
    )
    return Home(
        genesis=_read(config / _GENESIS, lambda content: read_genesis(content, now)),
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
