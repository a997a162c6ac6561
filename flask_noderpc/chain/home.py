"""Home folder of a node: ``config/`` with the genesis document and keys in CometBFT's
formats."""

from __future__ import annotations

import os
import secrets
import string
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from .. import jsoncodec
from ..domain.genesis import ConsensusParams, Genesis, GenesisValidator, ValidatorParams
from ..domain.validator import ED25519
from ..errors import ConfigurationError, InvalidSetting, short_repr
from ..protocol.comet.genesis import genesis_document, read_genesis
from ..protocol.comet.keys import PrivateKey
from ..settings import check_chain_id
from .comet_config import CometPaths, comet_paths, config_path, read_file
from .validator_keys import (
    LastSigned,
    ValidatorKey,
    is_development,
    key_files,
    make_folder,
    mark_development,
    node_key_document,
    read_node_key,
    read_validator_key,
    validator_key_document,
)

T = TypeVar("T")

_GENESIS = "genesis.json"
_NODE_KEY = "node_key.json"
# Voting power of the only validator of a new chain, as with CometBFT's init.
_POWER = 10


@dataclass(frozen=True, slots=True)
class Home:
    """Genesis and keys in a node's home folder."""

    genesis: Genesis
    keys: tuple[ValidatorKey, ...]
    """The node's validator key, then the keys of other ``priv_validator_key*.json`` files."""
    node_key: PrivateKey

    @property
    def validator_keys(self) -> tuple[PrivateKey, ...]:
        """Private validator keys of the home."""
        return tuple(each.key for each in self.keys)


def random_chain_id() -> str:
    """Return a random chain ID in the format of CometBFT's ``init``."""
    letters = string.ascii_letters + string.digits
    return "test-chain-" + "".join(secrets.choice(letters) for _ in range(6))


def genesis_path(folder: Path) -> Path:
    """Return the path of a home's genesis document."""
    return folder / "config" / _GENESIS


def has_genesis(folder: Path) -> bool:
    """Return true if the folder has a genesis document."""
    return genesis_path(folder).exists()


class NewChain(NamedTuple):
    """Settings for the files of a new home."""

    chain_id: str | None
    """Chain ID of the new chain; ``None`` for a random ID."""
    app_state: bytes
    dialect: str
    """Dialect by whose CometBFT version the genesis document is written and read."""
    development: bool
    """True if a new validator key may sign a height twice."""
    amend: Callable[[Genesis], Genesis] = lambda genesis: genesis
    """Function that returns the document to write."""


def create(
    folder: Path,
    chain_id: str | None,
    now: int,
    app_state: bytes = b"",
    *,
    dialect: str = "",
    development: bool = False,
    amend: Callable[[Genesis], Genesis] = lambda genesis: genesis,
) -> Home:
    """Write missing files and load the home; never change existing files.

    Several processes may call this at the same time, as each file is written atomically and
    only once.
    """
    config, paths = folder / "config", signing_paths(folder)
    new = NewChain(chain_id, app_state, dialect, development, amend)
    if chain_id is not None:
        _check(chain_id)
    try:
        # The mode is CometBFT 0.38's DefaultDirPerm.
        for directory in (folder, config, paths.key.parent):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_missing(folder, paths, now, new)
    except OSError as error:
        raise ConfigurationError(
            f"{config}: {error.strerror}; set NODERPC_HOME to a folder that can be written to"
        ) from None
    home = load(folder, now, new.dialect)
    if chain_id is not None and chain_id != home.genesis.chain_id:
        raise ConfigurationError(
            f"NODERPC_CHAIN_ID: expected {home.genesis.chain_id!r}, the chain ID of the genesis"
            f" in {config}, got {chain_id!r}; remove it, or set another NODERPC_HOME"
        )
    return home


def _check(chain_id: str) -> None:
    """Raise ``ConfigurationError`` for a chain ID that :func:`load` would reject."""
    try:
        check_chain_id(chain_id)
    except ValueError as error:
        raise InvalidSetting(f"NODERPC_CHAIN_ID = {short_repr(chain_id)}: {error}") from None


def signing_paths(folder: Path) -> CometPaths:
    """Return the paths of a home whose keys may sign here.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if a CometBFT node uses the home, as
    its keys would sign twice.
    """
    paths, cure = comet_paths(folder), "--upstream follows that node's chain without its keys"
    try:
        store = paths.found_store()
    except OSError as error:
        raise ConfigurationError(
            f"{paths.data}: {error.strerror}; set db_dir in {config_path(folder)} to a folder"
            " that can be read"
        ) from None
    if store is not None:
        raise ConfigurationError(
            f"{store}: this is the home of a CometBFT node, whose validator would sign its"
            f" heights a second time here; {cure}; for a new chain, pass another --home"
        )
    if paths.remote_signer:
        raise ConfigurationError(
            f"{config_path(folder)}: priv_validator_laddr = {paths.remote_signer!r}: a remote"
            " signer is not supported; leave it empty to sign with the key file of this home,"
            f" if no other node has it, or {cure}"
        )
    return paths


def _write_missing(folder: Path, paths: CometPaths, now: int, new: NewChain) -> None:
    config = folder / "config"
    if has_genesis(folder) and not paths.key.exists() and not new.development:
        # Create no new key, which would not be a validator of this chain.
        raise ConfigurationError(
            f"{paths.key} is missing: put the key of this chain's validator back"
        )
    if not paths.key.exists():
        _write_new_key(config, paths, new.development)
    _write_once(config / _NODE_KEY, node_key_document(PrivateKey.generate()))
    if not has_genesis(folder):
        key = _read(paths.key, read_validator_key)
        genesis = Genesis(
            chain_id=new.chain_id or random_chain_id(),
            genesis_time=now,
            consensus_params=ConsensusParams(validator=ValidatorParams((key.public.type,))),
            validators=(GenesisValidator(key.address, key.public, _POWER),),
            app_state=new.app_state,
        )
        try:
            document = genesis_document(new.amend(genesis), new.dialect)
        except jsoncodec.NotJSON as error:
            raise ConfigurationError(f"app_state of a new chain: {error}") from None
        _write_once(config / _GENESIS, document, mode=0o644)


def _write_new_key(config: Path, paths: CometPaths, development: bool) -> None:
    """Write a new key after its development mark and its record of signatures: a key file
    without a record is then never new."""
    key = PrivateKey.generate()
    if development:
        mark_development(config, key)
    make_folder(paths.state.parent)
    _write_once(paths.state, LastSigned().document())
    _write_once(paths.key, validator_key_document(key))


def mark_old_development_key(
    folder: Path, home: Home, app_state: bytes, *, has_blocks: bool
) -> Home:
    """Mark the key of a home that an older version created with NODERPC_DEV as a development
    key; return the home.

    Such a home has one key, no record of its signatures, and a development chain: the genesis
    has ``app_state``, or the folder's name begins with ``dev`` and this home has produced
    blocks (``has_blocks``). Without blocks, it might be a copy of a validator's files.
    """
    (key, *more), genesis = home.keys, home.genesis
    is_alone = not more and [each.address for each in genesis.validators] == [key.key.address]
    if key.is_development or os.path.lexists(key.state) or not is_alone:
        return home
    named = has_blocks and folder.name.startswith("dev")
    if not (named or _is_same_json(genesis.app_state, app_state)):
        return home
    mark_development(folder / "config", key.key)
    return replace(home, keys=(replace(key, is_development=True),))


def _is_same_json(one: bytes, other: bytes) -> bool:
    return bool(one and other) and jsoncodec.decode(one) == jsoncodec.decode(other)


def load(folder: Path, now: int, dialect: str = "") -> Home:
    """Read a home; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    config = folder / "config"
    keys = (
        (_read(path, read_validator_key), state)
        for path, state in key_files(comet_paths(folder))
    )
    genesis = _read(config / _GENESIS, lambda content: read_genesis(content, now, dialect))
    files: dict[bytes, ValidatorKey] = {}
    for key, state in keys:
        # If several files have the same key, use the first one and its record.
        files.setdefault(key.address, ValidatorKey(key, state, is_development(config, key)))
    found = tuple(files.values())
    _check_records(found)
    for each in found:
        _check_key_type(config, genesis, each.key)
    return Home(
        genesis=genesis,
        keys=found,
        node_key=_read(config / _NODE_KEY, read_node_key),
    )


def _check_records(keys: Iterable[ValidatorKey]) -> None:
    """Raise ``ConfigurationError`` if two keys share a record of signatures, which would mix
    up the heights that they have signed."""
    seen: set[str] = set()
    for each in keys:
        state = os.path.realpath(each.state)
        if state in seen:
            raise ConfigurationError(
                f"{state}: expected a separate record of signatures for each validator key, got"
                " this one for two keys of this home; set priv_validator_state_file in"
                " config/config.toml to another file"
            )
        seen.add(state)


def _check_key_type(config: Path, genesis: Genesis, key: PrivateKey) -> None:
    """Raise ``ConfigurationError`` if the genesis does not allow the key type of a validator.

    CometBFT 0.38 accepts ed25519 keys in every genesis.
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
        return parse(read_file(path))
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror}; to create a new home, run `flask noderpc init`"
        ) from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def replace_genesis(folder: Path, content: bytes) -> None:
    """Replace a home's genesis document atomically; its mode and owner stay."""
    path = genesis_path(folder).resolve()
    before = path.stat()
    draft = _draft(path, content, before.st_mode & 0o777)
    try:
        # Only root may give a file away; another user owns both files.
        if os.geteuid() == 0:
            os.chown(draft, before.st_uid, before.st_gid)
        os.replace(draft, path)
    except OSError:
        os.unlink(draft)
        raise


def _draft(path: Path, content: bytes, mode: int) -> str:
    """Write a file beside ``path``, and return its path."""
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, mode)
    except BaseException:
        os.unlink(draft)
        raise
    return draft


def _write_once(path: Path, content: bytes, mode: int = 0o600) -> None:
    if path.exists():
        return
    draft = _draft(path, content, mode)
    try:
        # Link the file, because a rename would overwrite a file that another process has just
        # written.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)
