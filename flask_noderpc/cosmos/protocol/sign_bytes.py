"""Sign bytes: the encoding of a transaction that its signers sign."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...domain.time import to_text
from ...protocol.protobuf import blob, integer, string
from .fields import COIN, InvalidMessage
from .tx import AMINO_JSON, DIRECT, DIRECT_AUX, TEXTUAL, Tx

_NAMES = {
    DIRECT: "SIGN_MODE_DIRECT",
    TEXTUAL: "SIGN_MODE_TEXTUAL",
    DIRECT_AUX: "SIGN_MODE_DIRECT_AUX",
    AMINO_JSON: "SIGN_MODE_LEGACY_AMINO_JSON",
}
SUPPORTED = (DIRECT, AMINO_JSON)
"""Sign modes that have sign bytes."""

_UNSUPPORTED = {0: "SIGN_MODE_UNSPECIFIED", 191: "SIGN_MODE_EIP_191"}
# Go's encoding/json escapes HTML's special characters, and U+2028 and U+2029.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
# Go replaces bytes that are not UTF-8 with U+FFFD; Python decoded them with surrogateescape.
_ESCAPES |= dict.fromkeys(range(0xDC80, 0xDD00), "\\ufffd")


@dataclass(frozen=True, slots=True)
class SignerData:
    """Values that a signer signs in addition to the transaction."""

    chain_id: str
    account_number: int
    sequence: int


def sign_bytes(mode: int, tx: Tx, signer: SignerData, messages: Sequence[Any]) -> bytes:
    """Return the sign bytes of a sign mode; raise :exc:`InvalidMessage` for an unknown mode.

    ``messages`` are the transaction's messages in amino JSON.
    """
    if mode == DIRECT:
        return direct(tx.body_bytes, tx.auth_info_bytes, signer)
    if mode == AMINO_JSON:
        return amino(tx, signer, messages)
    if mode in _NAMES:
        raise InvalidMessage(f"unsuppored sign mode {_NAMES[mode]}")
    raise InvalidMessage(f"unsupported sign mode {_UNSUPPORTED.get(mode, mode)}")


def direct(body: bytes, auth_info: bytes, signer: SignerData) -> bytes:
    """Return the encoded ``SignDoc``, which SIGN_MODE_DIRECT signs."""
    return (
        blob(1, body)
        + blob(2, auth_info)
        + string(3, signer.chain_id)
        + integer(4, signer.account_number)
    )


def amino(tx: Tx, signer: SignerData, messages: Sequence[Any]) -> bytes:
    """Return the JSON of the ``StdSignDoc``, which SIGN_MODE_LEGACY_AMINO_JSON signs; raise
    :exc:`InvalidMessage` for a transaction that it can't represent."""
    body, fee = tx.body, tx.fee
    if tx.has_unknown_fields:
        raise InvalidMessage("SIGN_MODE_LEGACY_AMINO_JSON does not support unknown fields")
    if body.extensions or body.non_critical_extensions:
        raise InvalidMessage(
            "SIGN_MODE_LEGACY_AMINO_JSON does not support protobuf extension options: invalid"
            " request"
        )
    if fee is None:
        raise InvalidMessage("fee cannot be nil when tipper is not signer")
    paid = {"amount": [COIN.amino_json(coin) for coin in fee.amount], "gas": str(fee.gas_limit)}
    given = {"payer": fee.payer, "granter": fee.granter}
    document: dict[str, Any] = {
        "account_number": str(signer.account_number),
        "chain_id": signer.chain_id,
        "fee": paid | {name: text for name, text in given.items() if text},
        "memo": body.memo.decode(errors="surrogateescape"),
        "msgs": list(messages),
        "sequence": str(signer.sequence),
    }
    if body.timeout_height:
        document["timeout_height"] = str(body.timeout_height)
    if body.unordered:
        document["unordered"] = True
    if body.timeout is not None:
        document["timeout_timestamp"] = to_text(body.timeout)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPES).encode()
