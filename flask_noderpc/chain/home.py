"""Home of a node: ``config/`` with CometBFT's JSON files for the genesis and the keys."""

from __future__ import annotations

import os
import secrets
import string
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from ..protocol.comet.key_types import address
from ..protocol.comet.keys import PrivateKey
from ..settings import check_chain_id
from .comet_config import CometPaths, comet_paths, config_path
from .last_signed import LastSigned, make_folder
from .validator_keys import (
    KEY_NAMES,
    ValidatorKey,
    is_development,
    key_files,
    mark_development,
    node_key_document,
    read_node_key,
    read_validator_key,
    validator_key_document,
)


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


T = TypeVar("T")

_GENESIS = "genesis.json"
_NODE_KEY = "node_key.json"
# CometBFT: the power that init gives the one validator.
_POWER = 10


@dataclass(frozen=True, slots=True)
class Home:
    """Genesis and keys of a node's home."""

    genesis: Genesis
    keys: tuple[ValidatorKey, ...]
    """The node's key, then those of other ``priv_validator_key*.json`` files."""
    node_key: PrivateKey

    @property
    def validator_keys(self) -> tuple[PrivateKey, ...]:
        """The keys without their files."""
        return tuple(each.key for each in self.keys)


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
    folder: Path,
    chain_id: str | None,
    now: int,
    app_state: bytes = b"",
    *,
    development: bool = False,
) -> Home:
    """Write missing files and load the home; existing files are never changed.

    With ``development`` a new validator key may sign heights again. Several processes may do
    this at once: each file is written atomically, and once.
    """
    config, paths = folder / "config", signing_paths(folder)
    if chain_id is not None:
        _check(chain_id)
    try:
        # CometBFT 0.38: DefaultDirPerm.
        for directory in (folder, config, paths.key.parent):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_missing(folder, paths, chain_id, now, app_state, development)
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


def signing_paths(folder: Path) -> CometPaths:
    """Return the files of a home whose keys may sign.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for the home of a CometBFT node.
    """
    paths, cure = comet_paths(folder), "--upstream follows that node's chain without its keys"
    if (store := paths.found_store()) is not None:
        raise ConfigurationError(
            f"{store}: this is the home of a CometBFT node, whose validator would sign its"
            f" heights a second time here; {cure}, and for a chain of its own use a new --home"
        )
    if paths.remote_signer:
        raise ConfigurationError(
            f"{config_path(folder)}: priv_validator_laddr = {paths.remote_signer!r}: a remote"
            " signer is not supported; leave it empty to sign with the key file of this home,"
            f" if no other node has it, or {cure}"
        )
    return paths


def _write_missing(
    folder: Path,
    paths: CometPaths,
    chain_id: str | None,
    now: int,
    app_state: bytes,
    development: bool,
) -> None:
    config = folder / "config"
    if exists(folder) and not paths.key.exists():
        # A new key would be no validator of this chain.
        raise ConfigurationError(
            f"{paths.key} is missing: put the key of this chain's validator back"
        )
    if not paths.key.exists():
        _write_new_key(config, paths, development)
    _write_once(config / _NODE_KEY, node_key_document(PrivateKey.generate()))
    if not exists(folder):
        key = _read(paths.key, read_validator_key)
        genesis = Genesis(
            chain_id=chain_id or random_chain_id(),
            genesis_time=now,
            consensus_params=ConsensusParams(validator=ValidatorParams((key.public.type,))),
            validators=(GenesisValidator(key.address, key.public, _POWER),),
            app_state=app_state,
        )
        try:
            document = genesis_document(genesis)
        except jsoncodec.NotJSON as error:
            raise ConfigurationError(f"app_state of a new chain: {error}") from None
        _write_once(config / _GENESIS, document, mode=0o644)


def _write_new_key(config: Path, paths: CometPaths, development: bool) -> None:
    """Write a key, after all that is said about it: nothing but a new key has no record."""
    key = PrivateKey.generate()
    if development:
        mark_development(config, key)
    make_folder(paths.state.parent)
    _write_once(paths.state, LastSigned().document())
    _write_once(paths.key, validator_key_document(key))


def adopt(folder: Path, home: Home, app_state: bytes, *, has_chain: bool) -> Home:
    """Mark the key of a home that an older version made under NODERPC_DEV, and return it.

    Such a home has one key, no record of its signatures, and a chain for development:
    one that began with ``app_state``, or one in a folder named ``dev…``.
    """
    (key, *more), genesis = home.keys, home.genesis
    is_alone = not more and [each.address for each in genesis.validators] == [key.key.address]
    if key.is_development or key.state.exists() or not is_alone:
        return home
    named = has_chain and folder.name.startswith("dev")
    if not (named or _is_same_json(genesis.app_state, app_state)):
        return home
    mark_development(folder / "config", key.key)
    return replace(home, keys=(replace(key, is_development=True),))


def _is_same_json(one: bytes, other: bytes) -> bool:
    return bool(one and other) and jsoncodec.decode(one) == jsoncodec.decode(other)


def load(folder: Path, now: int) -> Home:
    """Read a home; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    config = folder / "config"
    keys = (
        (_read(path, read_validator_key), state)
        for path, state in key_files(comet_paths(folder))
    )
    genesis = _read(config / _GENESIS, lambda content: read_genesis(content, now))
    found = tuple(ValidatorKey(key, state, is_development(config, key)) for key, state in keys)
    for each in found:
        _check_key_type(config, genesis, each.key)
    return Home(
        genesis=genesis,
        keys=found,
        node_key=_read(config / _NODE_KEY, read_node_key),
    )


def _check_key_type(config: Path, genesis: Genesis, key: PrivateKey) -> None:
    """Raise ``ConfigurationError`` if the genesis does not allow a validator's type of key.

    CometBFT 0.38 takes ed25519 keys in every genesis.
    """
    kind, allowed = key.public.type, genesis.consensus_params.validator.pub_key_types
    is_validator = key.address in {each.address for each in genesis.validators}
    if is_validator and kind not in (ED25519, *allowed):
        raise ConfigurationError(
            f"{config / _GENESIS}: consensus_params.validator.pub_key_types: expected"
            f" {kind!r}, the type of this home's validator key, got {list(allowed)}; on a new"
            " chain, add it"
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
