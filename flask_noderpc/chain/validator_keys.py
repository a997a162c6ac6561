"""Key files of a home in CometBFT's formats, development keys, and the record of the last vote
that a key signed.

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
            f"key file: expected a key that can sign here, got a {_ML_DSA_65_NAME}:"
            f" signatures of {ML_DSA_65} are verified, and not made. `noderpc start --upstream"
            " URL` follows the node that signs with it; `noderpc init --home NEW` makes a home"
            " of another key"
        )
    others = dict(_SECRET_ONLY_TYPES.values())
    if key.type not in others:
        raise ConfigurationError(
            f"key file: expected a {_ED25519_NAME} or, with the libraries of pip install"
            f" 'flask-noderpc[evm]', one of {', '.join(others)}, got a {short_repr(key.type)}"
        )
    try:
        return others[key.type](key.value)
    except ValueError as error:
        raise ConfigurationError(
            f"key file: the {key.type} is not usable: {error}; keys of type {ED25519} need no"
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
        raise ConfigurationError("key file: the public key does not belong to the seed")
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
    """A validator key of a home."""

    key: PrivateKey
    state: Path
    """Path of the record of the last signature."""
    is_development: bool = False
    """True if the key may sign a height again."""


def key_files(paths: CometPaths) -> Iterator[tuple[Path, Path]]:
    """Yield each key file of a home and its record: the node's key first, then the other keys
    in its folder."""
    yield paths.key, paths.state
    more = sorted(paths.key.parent.glob(f"{_KEY}*.json"))
    for path in more:
        # A node whose settings name another key file does not use the default one.
        if path not in (paths.key, path.with_name(f"{_KEY}.json")):
            yield path, paths.state.with_name(path.name.replace(_KEY, _STATE, 1))


def _mark(config: Path, key: PrivateKey) -> Path:
    return config / f"development_key_{key.address.hex().upper()}"


def is_development(config: Path, key: PrivateKey) -> bool:
    """Return true if the key is marked as a development key in a home's config folder."""
    return _mark(config, key).exists()


def mark_development(config: Path, key: PrivateKey) -> None:
    """Mark a key as a development key, whose chain may rewind and sign heights again."""
    _mark(config, key).write_text(
        "The validator key of this name was made for development: its chain may rewind and"
        " sign heights again.\nNever use it on a chain that has other validators.\n"
    )


PRECOMMIT = 3
"""CometBFT: step 1 is a proposal, step 2 a prevote, and step 3 a precommit."""

# Unlike Go, Python's int() also accepts blanks and underscores.
_INTEGER = re.compile("-?[0-9]{1,20}")
# Seconds to wait while another process signs, and seconds between two attempts.
_PATIENCE_S, _PAUSE_S = 1.0, 0.001

MAX_ROUND = 100_000
"""Maximum round. The validators are rotated once for each round, so the number is limited."""


class _Document(jsoncodec.Struct):
    height: str | int
    round: int
    step: int
    signature: bytes | None = None
    signbytes: str | None = None


@dataclass(frozen=True, slots=True)
class LastSigned:
    """Height, round, step and signature of the last signed message."""

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
                f"height {height} can't be signed: the validator key has signed height"
                f" {self.height} already"
            )
        if self.height < height:
            return 0
        # A stored precommit can be used again. An earlier step means that a CometBFT node with
        # this key votes in this round.
        round_number = self.round if self.step == PRECOMMIT else self.round + 1
        if round_number >= MAX_ROUND:
            raise ChainHalted(f"height {height} can't be signed: it is at round {self.round}")
        return round_number

    def allows(self, vote: Vote, chain_id: str) -> bool:
        """Return true if a precommit is later than all signed messages, or if it was already
        signed."""
        if (vote.height, vote.round) > (self.height, self.round):
            return True
        return self.signature_of(vote, chain_id) is not None

    def signature_of(self, vote: Vote, chain_id: str) -> CommitSig | None:
        """Return the stored signature and its timestamp if the vote differs at most in its
        time, or ``None``."""
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
        """Encode the record as CometBFT does."""
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
    """Return the time of a canonical vote; ``None`` if the bytes are not a vote."""
    try:
        body = Message(b"\x0a" + sign_bytes).blob(1)
        stamp = Message(Message(body).blob(5))
        return stamp.integer(1) * SECOND + stamp.integer(2)
    except Malformed:
        return None


def read_record(path: Path) -> LastSigned | None:
    """Read a record; return ``None`` if the file is missing.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an unusable file.
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
            f"{path}: not a record of signatures in CometBFT's format: {error}; put the file"
            " back from the machine that signed last"
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
    # The lock admits one writing process at a time; a killed process leaves at most this file.
    draft = path.with_name(f"{path.name}.new")
    try:
        _write_draft(draft, record.document(), durable)
        os.replace(draft, path)
        if durable:
            _sync_folder(path.parent)
    except OSError as error:
        raise ChainHalted(
            f"nothing is signed: {path.name}: {error.strerror}",
            "the file must be writable: priv_validator_state_file in config/config.toml names"
            " another place",
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
    """Create the folder of records; raise ``ConfigurationError`` if that fails."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{folder}: {error.strerror}; the records of validator keys are written there, or"
            " to the file that priv_validator_state_file in config/config.toml names"
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
                    "nothing is signed: another process is signing with the keys of this home,"
                    " and does not go on"
                ) from None
            time.sleep(_PAUSE_S)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Exclude other threads and processes that sign with keys whose records are in the folder.

    Raise :exc:`~flask_noderpc.errors.ChainHalted` if another process holds the lock for a
    second, such as a process stopped by a signal.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise ChainHalted(f"nothing is signed: {folder.name}: {error.strerror}") from None
    try:
        _lock(handle)
        yield
    finally:
        # A child process forked in the meantime has a copy of the descriptor, so closing ours
        # alone would not release the lock.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)
