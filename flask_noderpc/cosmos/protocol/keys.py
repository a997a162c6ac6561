"""Public keys of accounts: secp256k1, ed25519, and multisig."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from ...domain.validator import ED25519, SECP256K1, PublicKey
from ...errors import short_repr
from ...installation import install_hint
from ...protocol.comet import key_types
from ...protocol.protobuf import Message, delimited, integer
from .fields import ANY_AMINO, AnyValue, InvalidMessage, declared
from .proto import MESSAGES

try:
    from btclib_secp256k1 import dsa
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the application bank needs {error.name}: {install_hint('bank')}",
        name=error.name,
    ) from None

SIZE, ED25519_SIZE = 33, 32
"""Lengths of secp256k1 and ed25519 keys in bytes."""

# Prefixes that identify the key types in binary amino.
_AMINO_SECP256K1 = bytes.fromhex("eb5ae987")
_AMINO_ED25519 = bytes.fromhex("1624de64")
_AMINO_MULTISIG = bytes.fromhex("22c1f7e2")
_MAX_DEPTH = 10
_UINT32 = (1 << 32) - 1


class WrongSize(Exception):
    """Error for a key of the wrong length, at which the SDK panics."""


class Key(ABC):
    """A public key."""

    type_url = ""
    go_name = ""

    @property
    @abstractmethod
    def address(self) -> bytes:
        """Address of the key's account."""

    @property
    @abstractmethod
    def amino(self) -> bytes:
        """Binary amino encoding, which is hashed for a multisig key's address."""

    @property
    def value(self) -> bytes:
        """The encoded message of the key."""
        return MESSAGES.encoder(self.type_url.removeprefix("/"))(self)

    @property
    def any(self) -> bytes:
        """The encoded ``Any`` that contains the key."""
        return MESSAGES.encoder("Any")(self)

    def verify(self, signed: bytes, signature: bytes) -> bool:
        """Return true if this key made the signature."""
        return False

    def count(self) -> int:
        """Return the number of keys: 1, or the keys in a multisig key."""
        return 1


@dataclass(frozen=True, slots=True)
class Secp256k1Key(Key):
    """A compressed secp256k1 key."""

    key: bytes
    type_url = "/cosmos.crypto.secp256k1.PubKey"
    go_name = "*secp256k1.PubKey"

    @property
    def address(self) -> bytes:
        if len(self.key) != SIZE:
            raise WrongSize("length of pubkey is incorrect")
        return _address(self.key)

    @property
    def amino(self) -> bytes:
        return _AMINO_SECP256K1 + delimited(self.key)

    def verify(self, signed: bytes, signature: bytes) -> bool:
        if len(signature) != 64:
            return False
        try:
            # Like the SDK, libsecp256k1 refuses a signature with S in the upper half.
            return dsa.verify(sha256(signed).digest(), self.key, signature, compact=True)
        except ValueError:
            return False


@lru_cache(maxsize=10_000)
def _address(key: bytes) -> bytes:
    return key_types.address(PublicKey(SECP256K1, key))


@dataclass(frozen=True, slots=True)
class Ed25519Key(Key):
    """An ed25519 key."""

    key: bytes
    type_url = "/cosmos.crypto.ed25519.PubKey"
    go_name = "*ed25519.PubKey"

    @property
    def address(self) -> bytes:
        if len(self.key) != ED25519_SIZE:
            raise WrongSize("pubkey is incorrect size")
        return sha256(self.key).digest()[:20]

    @property
    def amino(self) -> bytes:
        return _AMINO_ED25519 + delimited(self.key)

    def verify(self, signed: bytes, signature: bytes) -> bool:
        return key_types.verify(PublicKey(ED25519, self.key), signature, signed)


@dataclass(frozen=True, slots=True)
class MultisigKey(Key):
    """A set of keys; ``threshold`` of them must sign."""

    threshold: int
    keys: tuple[Key, ...]
    type_url = "/cosmos.crypto.multisig.LegacyAminoPubKey"
    go_name = "*multisig.LegacyAminoPubKey"

    @property
    def address(self) -> bytes:
        return sha256(self.amino).digest()[:20]

    @property
    def amino(self) -> bytes:
        parts = b"".join(b"\x12" + delimited(key.amino) for key in self.keys)
        return _AMINO_MULTISIG + integer(1, self.threshold) + parts

    def count(self) -> int:
        return sum(key.count() for key in self.keys)


KINDS = {
    known.type_url: declared(known.go_name, known.type_url.removeprefix("/"))
    for known in (Secp256k1Key, Ed25519Key, MultisigKey)
}
"""Message types of keys, by type URL."""


def _amino(name: str, data: bytes) -> dict[str, str]:
    return {"type": name, "value": b64encode(Message(data).blob(1)).decode()}


ANY_AMINO[Secp256k1Key.type_url] = partial(_amino, "tendermint/PubKeySecp256k1")
ANY_AMINO[Ed25519Key.type_url] = partial(_amino, "tendermint/PubKeyEd25519")


def decode(given: AnyValue, depth: int = _MAX_DEPTH) -> Key | None:
    """Return the key in an ``Any``, ``None`` if its type URL is empty; raise
    :exc:`InvalidMessage`."""
    if not given.type_url:
        return None
    kind = KINDS.get(given.type_url)
    if kind is None:
        raise InvalidMessage(
            f"no concrete type registered for type URL {given.type_url} against interface"
            " *types.PubKey"
        )
    if not depth:
        raise InvalidMessage("max depth exceeded")
    values = kind.decode(given.value)
    if given.type_url == Secp256k1Key.type_url:
        return Secp256k1Key(values["key"])
    if given.type_url == Ed25519Key.type_url:
        return Ed25519Key(values["key"])
    keys = [decode(each, depth - 1) for each in values["keys"]]
    return MultisigKey(values["threshold"] & _UINT32, tuple(key for key in keys if key))


def from_json(given: Mapping[str, Any], depth: int = _MAX_DEPTH) -> Key:
    """Return a key from the SDK's JSON; raise :exc:`InvalidMessage`, :exc:`KeyError`,
    :exc:`ValueError` or :exc:`TypeError`."""
    kind = given["@type"]
    if not depth:
        raise InvalidMessage(f"expected at most {_MAX_DEPTH} levels of multisig keys")
    if kind == MultisigKey.type_url:
        threshold = int(given["threshold"])
        if not 0 <= threshold <= _UINT32:
            raise InvalidMessage(f"threshold: expected 0 to {_UINT32}, got {threshold}")
        return MultisigKey(
            threshold, tuple(from_json(each, depth - 1) for each in given["public_keys"])
        )
    for known in (Secp256k1Key, Ed25519Key):
        if kind == known.type_url:
            try:
                return known(b64decode(given["key"], validate=True))
            except NotBase64:
                raise InvalidMessage(
                    f"key: expected base64, got {short_repr(given['key'])}"
                ) from None
    raise InvalidMessage(f"@type: expected a known key type, got {short_repr(kind)}")


@dataclass(frozen=True, slots=True)
class BitArray:
    """One bit for each key of a multisig key, 1 if the key has signed; SDK:
    ``CompactBitArray``.
    """

    extra_bits: int
    elements: bytes

    @property
    def count(self) -> int:
        """Number of bits; negative for invalid arrays with extra bits but without bytes."""
        if not self.extra_bits:
            return len(self.elements) * 8
        return (len(self.elements) - 1) * 8 + self.extra_bits

    def __iter__(self) -> Iterator[bool]:
        for at in range(self.count):
            # SDK, GetIndex: bits after the last byte are false.
            byte = self.elements[at >> 3] if at >> 3 < len(self.elements) else 0
            yield bool(byte >> (7 - at % 8) & 1)

    @classmethod
    def from_bools(cls, bits: Sequence[bool]) -> BitArray:
        """Return the bit array of a list of booleans."""
        elements = bytearray((len(bits) + 7) // 8)
        for at, bit in enumerate(bits):
            elements[at >> 3] |= bit << (7 - at % 8)
        return cls(len(bits) % 8, bytes(elements))

    def encode(self) -> bytes:
        """Return the encoded ``CompactBitArray`` message."""
        return MESSAGES.encoder("CompactBitArray")(self)
