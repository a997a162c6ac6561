"""Key files of a home in CometBFT's formats, marks of development keys, and the record of the
last vote that a key signed.

CometBFT 0.38: privval/file.go. Two signatures for the same height, round and step with
different block IDs prove misbehaviour, for which a validator loses its stake.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import jsoncodec
from ..domain.block import BlockIDFlag, CommitSig, Vote
from ..domain.time import SECOND
from ..domain.validator import BLS12_381, ED25519, ML_DSA_65, SECP256K1, SECP256K1ETH
from ..errors import ChainHalted, ConfigurationError, short_repr
from ..installation import install_hint
from ..protocol.comet.key_types import KEY_NAMES
from ..protocol.comet.keys import (
    Bls12381PrivateKey,
    PrivateKey,
    Secp256k1EthPrivateKey,
    Secp256k1PrivateKey,
)
from ..protocol.comet.messages import canonical_vote
from ..protocol.protobuf import Malformed, Message
from .comet_config import CometPaths, read_file

_ED25519_NAME = "tendermint/PrivKeyEd25519"
_ML_DSA_65_NAME = "cometbft/PrivKeyMlDsa65"
_SECRET_ONLY_TYPES: dict[str, tuple[str, type[PrivateKey]]] = {
    SECP256K1: ("tendermint/PrivKeySecp256k1", Secp256k1PrivateKey),
    BLS12_381: ("cometbft/PrivKeyBls12_381", Bls12381PrivateKey),
    SECP256K1ETH: ("tendermint/PrivKeySecp256k1eth", Secp256k1EthPrivateKey),
}
"""Name in CometBFT's JSON and class of each key type whose JSON contains only the secret."""

_KEY, _STATE = "priv_validator_key", "priv_validator_state"


class _Key(jsoncodec.Struct):
    type: str
    value: bytes


class _KeyDocument(jsoncodec.Struct):
    priv_key: _Key


def read_validator_key(document: bytes) -> PrivateKey:
    """Parse a ``priv_validator_key.json``; raise ``ConfigurationError`` if it is invalid."""
    key = _priv_key(document)
    if key.type == _ED25519_NAME:
        return _ed25519(key)
    if key.type == _ML_DSA_65_NAME:
        raise ConfigurationError(
            f"key file: expected a key that can sign here, got a {_ML_DSA_65_NAME}: this node"
            f" only verifies signatures of {ML_DSA_65}; follow the node that signs with this"
            " key (`noderpc start --upstream URL`), or create a home with another key"
            " (`noderpc init --home NEW`)"
        )
    others = dict(_SECRET_ONLY_TYPES.values())
    if key.type not in others:
        raise ConfigurationError(
            f"key file: expected a key of type {_ED25519_NAME}, or one of"
            f" {', '.join(others)}, which need the extra evm ({install_hint('evm')}); got type"
            f" {short_repr(key.type)}"
        )
    try:
        return others[key.type](key.value)
    except ValueError as error:
        raise ConfigurationError(
            f"key file: the {key.type} can't be used: {error}; a key of type {ED25519} needs no"
            " further library"
        ) from None


def read_node_key(document: bytes) -> PrivateKey:
    """Parse a ``node_key.json``; raise ``ConfigurationError`` if it is invalid."""
    return _ed25519(_priv_key(document))


def _priv_key(document: bytes) -> _Key:
    try:
        return jsoncodec.decode(document, _KeyDocument).priv_key
    except jsoncodec.NotJSON as error:
        raise ConfigurationError(f"key file: {error}") from None


def _ed25519(key: _Key) -> PrivateKey:
    if key.type != _ED25519_NAME or len(key.value) != 64:
        raise ConfigurationError(f"key file: expected a 64-byte {_ED25519_NAME}")
    private = PrivateKey(key.value[:32])
    if private.public.value != key.value[32:]:
        raise ConfigurationError(
            "key file: expected the public key of the seed, got another; restore the file"
        )
    return private


def _private(key: PrivateKey) -> dict[str, Any]:
    if key.public.type in _SECRET_ONLY_TYPES:
        return {"type": _SECRET_ONLY_TYPES[key.public.type][0], "value": key.seed}
    return {"type": _ED25519_NAME, "value": key.seed + key.public.value}


def validator_key_document(key: PrivateKey) -> bytes:
    """Encode a ``priv_validator_key.json``."""
    return jsoncodec.pretty(
        {
            "address": key.address.hex().upper(),
            "pub_key": {"type": KEY_NAMES[key.public.type], "value": key.public.value},
            "priv_key": _private(key),
        }
    )


def node_key_document(key: PrivateKey) -> bytes:
    """Encode a ``node_key.json``."""
    return jsoncodec.encode({"priv_key": _private(key)})


@dataclass(frozen=True, slots=True)
class ValidatorKey:
    """A validator key of a home, with its record file."""

    key: PrivateKey
    state: Path
    """Path of the record of the key's last signature."""
    is_development: bool = False
    """True if the key may sign a height twice."""


def key_files(paths: CometPaths) -> Iterator[tuple[Path, Path]]:
    """Yield each key file of a home and its record: the node's key first, then the other keys
    in its folder."""
    yield paths.key, paths.state
    more = sorted(paths.key.parent.glob(f"{_KEY}*.json"))
    for path in more:
        # Skip the default file if config.toml names another one.
        if path not in (paths.key, path.with_name(f"{_KEY}.json")):
            yield path, paths.state.with_name(path.name.replace(_KEY, _STATE, 1))


def _mark(config: Path, key: PrivateKey) -> Path:
    return config / f"development_key_{key.address.hex().upper()}"


def is_development(config: Path, key: PrivateKey) -> bool:
    """Return true if the key is marked as a development key in a home's config folder."""
    return _mark(config, key).exists()


def mark_development(config: Path, key: PrivateKey) -> None:
    """Mark a key as a development key, which may sign a height twice."""
    _mark(config, key).write_text(
        "The validator key of this name was made for development: its chain may rewind and"
        " sign heights again.\nNever use it on a chain that has other validators.\n"
    )


PRECOMMIT = 3
"""Step of a precommit; as in CometBFT, step 1 is a proposal and step 2 a prevote."""

# Syntax of Go's integers; Python's int() also accepts blanks and underscores.
_INTEGER = re.compile("-?[0-9]{1,20}")
# Seconds to wait while another process holds the lock, and seconds between two attempts.
_PATIENCE_S, _PAUSE_S = 1.0, 0.001

MAX_ROUND = 100_000
"""Maximum round, which limits the work, as the validators are rotated once for each round."""


class _Document(jsoncodec.Struct):
    height: str | int
    round: int
    step: int
    signature: bytes | None = None
    signbytes: str | None = None


@dataclass(frozen=True, slots=True)
class LastSigned:
    """Record of a key's last signature: height, round, step, signature, and signed bytes."""

    height: int = 0
    round: int = 0
    step: int = 0
    signature: bytes = b""
    sign_bytes: bytes = b""

    def next_round(self, height: int) -> int:
        """Return the first round of a height in which the key may sign a precommit.

        Raise :exc:`~flask_noderpc.errors.ChainHalted` if the key must not sign this height.
        """
        if self.height > height:
            raise ChainHalted(
                f"height {height} can't be signed, as the validator key has already signed"
                f" height {self.height}"
            )
        if self.height < height:
            return 0
        # A recorded precommit can be returned again. After an earlier step, skip the round: a
        # CometBFT node with this key has begun it.
        round_number = self.round if self.step == PRECOMMIT else self.round + 1
        if round_number >= MAX_ROUND:
            raise ChainHalted(
                f"height {height} can't be signed: expected a round below {MAX_ROUND}, got"
                f" {self.round} in the key's record"
            )
        return round_number

    def allows(self, vote: Vote, chain_id: str) -> bool:
        """Return true if the key may sign a precommit: it is later than the last signature, or
        was signed already."""
        if (vote.height, vote.round) > (self.height, self.round):
            return True
        return self.signature_of(vote, chain_id) is not None

    def signature_of(self, vote: Vote, chain_id: str) -> CommitSig | None:
        """Return the recorded signature, with its own time, if it is for the same vote apart
        from the time; otherwise ``None``."""
        signed = (self.height, self.round, self.step)
        if signed != (vote.height, vote.round, PRECOMMIT) or not self.signature:
            return None
        timestamp = _timestamp(self.sign_bytes)
        if timestamp is None:
            return None
        if canonical_vote(replace(vote, timestamp=timestamp), chain_id) != self.sign_bytes:
            return None
        return CommitSig(BlockIDFlag.COMMIT, vote.validator_address, timestamp, self.signature)

    def document(self) -> bytes:
        """Encode the record as CometBFT's ``priv_validator_state.json``."""
        members: dict[str, object] = {
            "height": str(self.height),
            "round": self.round,
            "step": self.step,
        }
        if self.signature:
            members["signature"] = self.signature
        if self.sign_bytes:
            members["signbytes"] = self.sign_bytes.hex().upper()
        return jsoncodec.pretty(members)


def _timestamp(sign_bytes: bytes) -> int | None:
    """Return the time in a canonical vote, in nanoseconds; ``None`` if the bytes are not a
    vote."""
    try:
        body = Message(b"\x0a" + sign_bytes).blob(1)
        stamp = Message(Message(body).blob(5))
        return stamp.integer(1) * SECOND + stamp.integer(2)
    except Malformed:
        return None


def read_record(path: Path) -> LastSigned | None:
    """Read a record; return ``None`` if the file is missing.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the file can't be used.
    """
    try:
        content = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    try:
        raw = jsoncodec.decode(content, _Document)
        record = LastSigned(
            _integer(raw.height),
            raw.round,
            raw.step,
            raw.signature or b"",
            bytes.fromhex(raw.signbytes or ""),
        )
        _check(record)
    except ValueError as error:
        raise ConfigurationError(
            f"{path}: expected a record of signatures in CometBFT's format: {error}; copy the"
            " file from the machine that signed last"
        ) from None
    return record


def _integer(value: str | int) -> int:
    if isinstance(value, str) and not _INTEGER.fullmatch(value):
        raise ValueError(f"height: expected an integer, got {value[:40]!r}")
    return int(value)


def _check(record: LastSigned) -> None:
    limits = {
        "height": (record.height, (1 << 63) - 1),
        "round": (record.round, (1 << 31) - 1),
        "step": (record.step, PRECOMMIT),
    }
    for name, (value, highest) in limits.items():
        if not 0 <= value <= highest:
            raise ValueError(f"{name}: expected 0 to {highest}, got {value}")


def write_record(path: Path, record: LastSigned, *, durable: bool) -> None:
    """Replace the record atomically; with ``durable``, wait until it is on the disk."""
    # Use one name for all drafts: the lock admits one writer at a time, and a draft that a
    # killed process left is overwritten.
    draft = path.with_name(f"{path.name}.new")
    try:
        _write_draft(draft, record.document(), durable)
        os.replace(draft, path)
        if durable:
            _sync_folder(path.parent)
    except OSError as error:
        raise ChainHalted(
            f"nothing is signed: {path.name}: {error.strerror}",
            "make the file writable, or set priv_validator_state_file in config/config.toml to"
            " another file",
        ) from None


def _write_draft(path: Path, content: bytes, durable: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Create the folder of the records of signatures; raise ``ConfigurationError`` if that
    fails."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{folder}: {error.strerror}; make it writable for the records of validator keys,"
            " or set priv_validator_state_file in config/config.toml to another file"
        ) from None


def _lock(handle: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ChainHalted(
                    "nothing is signed: another process holds the lock of this home's keys for"
                    " too long; resume or end it"
                ) from None
            time.sleep(_PAUSE_S)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """In this context, hold the lock of the folder of records, so that no other thread or
    process signs with its keys.

    Raise :exc:`~flask_noderpc.errors.ChainHalted` if another process holds the lock for a
    second, for example because it is stopped by a signal.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise ChainHalted(
            f"nothing is signed: can't open the folder of signing records, {folder.name}:"
            f" {error.strerror}"
        ) from None
    try:
        _lock(handle)
        yield
    finally:
        # Unlock explicitly: a child process forked meanwhile has a copy of the descriptor, so
        # that closing ours would not release the lock.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)
