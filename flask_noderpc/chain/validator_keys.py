"""Key files of a home in CometBFT's formats, where their records are, and development keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import jsoncodec
from ..domain.validator import BLS12_381, ED25519, ML_DSA_65, SECP256K1, SECP256K1ETH
from ..errors import ConfigurationError, short_repr
from ..protocol.comet.key_types import KEY_NAMES
from ..protocol.comet.keys import (
    Bls12381PrivateKey,
    PrivateKey,
    Secp256k1EthPrivateKey,
    Secp256k1PrivateKey,
)
from .comet_config import CometPaths

_ED25519_NAME = "tendermint/PrivKeyEd25519"
_ML_DSA_65_NAME = "cometbft/PrivKeyMlDsa65"
_OTHERS: dict[str, tuple[str, type[PrivateKey]]] = {
    SECP256K1: ("tendermint/PrivKeySecp256k1", Secp256k1PrivateKey),
    BLS12_381: ("cometbft/PrivKeyBls12_381", Bls12381PrivateKey),
    SECP256K1ETH: ("tendermint/PrivKeySecp256k1eth", Secp256k1EthPrivateKey),
}
"""The names of other types in CometBFT's JSON, and their keys, which are a secret alone."""

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
    others = dict(_OTHERS.values())
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
        raise ConfigurationError(f"key file: a 64-byte {_ED25519_NAME} is needed")
    private = PrivateKey(key.value[:32])
    if private.public.value != key.value[32:]:
        raise ConfigurationError("key file: the public half is not that of the seed")
    return private


def _private(key: PrivateKey) -> dict[str, Any]:
    if key.public.type in _OTHERS:
        return {"type": _OTHERS[key.public.type][0], "value": key.seed}
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
    """The record of the last signature."""
    is_development: bool = False
    """True if the key may sign a height again."""


def key_files(paths: CometPaths) -> Iterator[tuple[Path, Path]]:
    """Yield each key file of a home and its record: the node's first, then those beside it."""
    yield paths.key, paths.state
    more = sorted(paths.key.parent.glob(f"{_KEY}*.json"))
    for path in more:
        # A node whose settings name another file does not use the default one.
        if path not in (paths.key, path.with_name(f"{_KEY}.json")):
            yield path, paths.state.with_name(path.name.replace(_KEY, _STATE, 1))


def _mark(config: Path, key: PrivateKey) -> Path:
    return config / f"development_key_{key.address.hex().upper()}"


def is_development(config: Path, key: PrivateKey) -> bool:
    """Return true if the key is marked as a development key in a home's config folder."""
    return _mark(config, key).exists()


def mark_development(config: Path, key: PrivateKey) -> None:
    """Mark a key: its chain may rewind, and sign heights again."""
    _mark(config, key).write_text(
        "The validator key of this name was made for development: its chain may rewind and"
        " sign heights again.\nNever use it on a chain that has other validators.\n"
    )
