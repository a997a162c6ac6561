"""Decoding of Cosmos SDK transactions, with the checks of x/auth/tx/decoder.go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...protocol.protobuf import message
from . import keys
from .coins import Coins
from .fields import (
    ANY,
    BLOB,
    BYTES,
    FEE_COIN,
    AnyValue,
    Field,
    FieldBudget,
    FieldCheck,
    InvalidMessage,
    Kind,
    Resolve,
    Unreadable,
    declared,
    int32,
    read_fields,
    read_tag,
    read_varint,
    value_at,
)
from .keys import BitArray, Key
from .proto import MESSAGES

UNSPECIFIED, DIRECT, TEXTUAL, DIRECT_AUX, AMINO_JSON = 0, 1, 2, 3, 127
"""Numbers of the sign modes; SDK: ``SignMode``."""


@dataclass(frozen=True, slots=True)
class Single:
    """The sign mode of one key."""

    mode: int


@dataclass(frozen=True, slots=True)
class Multi:
    """Sign modes of a multisig key: ``bits`` says which of its keys signed, ``modes`` has a
    mode for each of these."""

    bits: BitArray
    modes: tuple[Mode, ...]


Mode = Single | Multi | None


@dataclass(frozen=True, slots=True)
class SignerInfo:
    """Public key, sign mode and sequence of a signer."""

    public_key: Key | None
    mode: Mode
    has_mode: bool
    sequence: int


@dataclass(frozen=True, slots=True)
class Fee:
    """Fee of a transaction, and its gas limit."""

    amount: Coins
    gas_limit: int
    payer: str
    granter: str


@dataclass(frozen=True, slots=True)
class Body:
    """Messages of a transaction, and the other fields that all signers sign."""

    messages: tuple[AnyValue, ...]
    memo: bytes
    timeout_height: int
    unordered: bool
    timeout: int | None
    """Nanoseconds since 1970."""
    extensions: tuple[AnyValue, ...]
    non_critical_extensions: tuple[AnyValue, ...]


@dataclass(frozen=True, slots=True)
class Tx:
    """A decoded transaction, with the encoded parts that are signed."""

    size: int
    body: Body
    body_bytes: bytes
    auth_info_bytes: bytes
    signers: tuple[SignerInfo, ...]
    fee: Fee | None
    signatures: tuple[bytes, ...]
    has_unknown_fields: bool
    """True if the body has unknown fields that are not critical, which are allowed."""


_RAW = declared("*tx.TxRaw", "TxRaw")
_UINT32 = (1 << 32) - 1
_BODY = declared(
    "*tx.TxBody",
    "TxBody",
    lambda values: Body(**values),
    memo=BLOB,
)
_BITS = declared(
    "*types.CompactBitArray",
    "CompactBitArray",
    lambda values: BitArray(values["extra_bits"] & _UINT32, values["elements"]),
)
_SINGLE = declared(
    "*tx.ModeInfo_Single", "Single", lambda values: Single(int32(values["mode"]))
)


def _mode_kind() -> Kind:
    """Return the message type of sign modes, which contains itself for multisig keys."""
    own: dict[int, Field] = {}
    mode = Kind("*tx.ModeInfo", own)
    multi = declared("*tx.ModeInfo_Multi", "Multi", bits=_BITS, modes=mode)
    own |= declared(mode.name, "ModeInfo", single=_SINGLE, multi=multi).fields
    return mode


_MODE = _mode_kind()
_MAX_DEPTH = 64


def _decode_mode(data: bytes, depth: int = _MAX_DEPTH) -> Mode:
    # If both fields are present, protobuf keeps the last one.
    found: Mode = None
    if not depth:
        raise InvalidMessage("recursion limit reached")
    for number, _, value in read_fields(data):
        if number == 1:
            found = _SINGLE.decode(value)
            continue
        bits, modes = BitArray(0, b""), []
        for inner, _, part in read_fields(value):
            if inner == 1:
                bits = _BITS.decode(part)
            else:
                modes.append(_decode_mode(part, depth - 1))
        found = Multi(bits, tuple(modes))
    return found


_FEE = declared("*tx.Fee", "Fee", lambda values: Fee(**values), amount=FEE_COIN)
_AUTH_INFO = declared(
    "*tx.AuthInfo",
    "AuthInfo",
    signers=declared("*tx.SignerInfo", "SignerInfo", mode=_MODE),
    fee=_FEE,
    tip=declared("*tx.Tip", "Tip"),
)


def _decode_signer(data: bytes) -> SignerInfo:
    mode = b"".join(value for number, _, value in read_fields(data) if number == 2)
    given = b"".join(value for number, _, value in read_fields(data) if number == 1)
    sequence = [value for number, _, value in read_fields(data) if number == 3]
    return SignerInfo(
        public_key=keys.decode(ANY.decode(given)) if given else None,
        mode=_decode_mode(mode),
        has_mode=any(number == 2 for number, _, _ in read_fields(data)),
        sequence=read_varint(sequence[-1], 0)[0] if sequence else 0,
    )


Check = Callable[[AnyValue], object]
"""A function that raises :exc:`InvalidMessage` for an invalid message of a transaction."""


def decode(raw: bytes, resolve: Resolve, check_message: Check) -> Tx:
    """Decode a transaction; raise :exc:`InvalidMessage` for invalid bytes.

    ``resolve`` returns the type of a message or a key by its type URL; ``check_message`` is
    called with each message of the transaction.
    """
    fields = FieldCheck(resolve)
    _check_form(raw, fields.budget)
    fields.check(raw, _RAW)
    parts = _RAW.decode(raw)
    unknown = fields.check(parts["body"], _BODY, lenient=True)
    body: Body = _BODY.decode(parts["body"])
    for each in body.messages:
        check_message(each)
    for each in (*body.extensions, *body.non_critical_extensions):
        if each.type_url:
            raise InvalidMessage("no registered implementations of type tx.TxExtensionOptionI")
    fields.check(parts["auth_info"], _AUTH_INFO)
    signers, fee = _decode_auth_info(parts["auth_info"])
    return Tx(
        size=len(raw),
        body=body,
        body_bytes=parts["body"],
        auth_info_bytes=parts["auth_info"],
        signers=signers,
        fee=fee,
        signatures=parts["signatures"],
        has_unknown_fields=unknown,
    )


def _decode_auth_info(data: bytes) -> tuple[tuple[SignerInfo, ...], Fee | None]:
    found = [(number, value) for number, _, value in read_fields(data)]
    signers = tuple(_decode_signer(value) for number, value in found if number == 1)
    fees = [value for number, value in found if number == 2]
    return signers, _FEE.decode(b"".join(fees)) if fees else None


def _check_form(raw: bytes, budget: FieldBudget) -> None:
    """Raise :exc:`InvalidMessage` unless the encoding follows ADR 27: fields are in order, and
    lengths are as short as possible."""
    at = last = 0
    while at < len(raw):
        budget.take()
        try:
            number, wire, start = read_tag(raw, at)
            if wire != BYTES:
                raise InvalidMessage(f"expected {BYTES} wire type, got {wire}")
            if number < last:
                raise InvalidMessage(
                    f"txRaw must follow ADR-027, got tagNum {number} after tagNum {last}"
                )
            last = number
            size, end = read_varint(raw, start)
            least = max(1, (size.bit_length() + 6) // 7)
            if end - start != least:
                raise InvalidMessage(
                    f"length prefix varint for tagNum {number} is not as short as possible,"
                    f" read {end - start}, only need {least}"
                )
            _, at = value_at(raw, start, number, wire)
        except Unreadable as error:
            raise InvalidMessage(f"invalid length; {error}") from None


@dataclass(frozen=True, slots=True)
class SingleSignature:
    """A signature of one key."""

    mode: int
    signature: bytes


@dataclass(frozen=True, slots=True)
class MultiSignature:
    """Signatures of a multisig key: ``bits`` says which of its keys signed, ``parts`` has
    their signatures."""

    bits: BitArray
    parts: tuple[Signature, ...]


Signature = SingleSignature | MultiSignature


class NoMode(Exception):
    """Error for a sign mode that is neither single nor multi, at which the SDK panics."""

    def __init__(self) -> None:
        super().__init__("unexpected ModeInfo data type <nil>")


def signature_of(mode: Mode, signature: bytes) -> Signature:
    """Return a signature with its sign mode; raise :exc:`InvalidMessage` for invalid bytes, or
    :exc:`NoMode`."""
    if mode is None:
        raise NoMode
    if isinstance(mode, Single):
        return SingleSignature(mode.mode, signature)
    parts = _split(signature)
    if len(parts) != len(mode.modes):
        raise InvalidMessage(
            f"expected {len(mode.modes)} multisig signatures, got {len(parts)}"
        )
    return MultiSignature(mode.bits, tuple(map(signature_of, mode.modes, parts)))


def _split(signature: bytes) -> list[bytes]:
    parts = []
    try:
        found = list(read_fields(signature))
    except InvalidMessage:
        raise InvalidMessage("unexpected EOF") from None
    for number, wire, value in found:
        if number != 1:
            raise InvalidMessage("rejecting unrecognized fields found in MultiSignature")
        if wire != BYTES:
            raise InvalidMessage(f"proto: wrong wireType = {wire} for field Signatures")
        parts.append(value)
    return parts


def join(signatures: list[bytes]) -> bytes:
    """Return the encoded signature of a multisig key, from the signatures of its keys."""
    return b"".join(message(1, each) for each in signatures)


def encode(body: bytes, auth_info: bytes, signatures: list[bytes]) -> bytes:
    """Return the encoded transaction."""
    return MESSAGES.encode("TxRaw", body=body, auth_info=auth_info, signatures=signatures)


def flatten_signature(signature: Signature, depth: int = 0) -> Iterator[bytes]:
    """Yield the bytes of a signature; for a multisig key, the signatures of its keys and then
    its own. Raise :exc:`InvalidMessage` if multisig keys are nested too deeply."""
    # Texts of the Cosmos SDK: x/auth/signing.
    if depth > 2:
        raise InvalidMessage("max depth of 2 reached")
    if isinstance(signature, SingleSignature):
        yield signature.signature
        return
    if len(signature.parts) > 32:
        raise InvalidMessage("max breadth of 32 reached")
    parts: list[Any] = [
        each for part in signature.parts for each in flatten_signature(part, depth + 1)
    ]
    yield from parts
    yield join(parts)
