"""Public keys, sequences and signature gas of signers; SDK: x/auth/ante/sigverify.go."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

from ....domain.abci import Event
from ...protocol import tx as txs
from ...protocol.fields import InvalidMessage
from ...protocol.keys import Ed25519Key, Key, MultisigKey, Secp256k1Key
from ...protocol.tx import MultiSignature, Signature
from ..accounts import Params
from ..balances import event
from ..context import Context
from ..errors import (
    INTERNAL,
    INVALID_PUB_KEY,
    TOO_MANY_SIGNATURES,
    TX_DECODE,
    TxError,
)
from .checked import SIMULATED_KEY, CheckedTx


def set_keys(checked: CheckedTx) -> None:
    """Store the public keys of signers that have none stored, and emit events with the
    signatures."""
    infos, show = checked.tx.signers, checked.context.codec.show
    if len(infos) != len(checked.signers):
        text = f"expected {len(checked.signers)} signer infos, got {len(infos)}"
        raise TxError(TX_DECODE, text)
    for at, (info, signer) in enumerate(zip(infos, checked.signers, strict=True)):
        key = info.public_key
        if key is None:
            if not checked.simulates:
                continue
            key = SIMULATED_KEY
        if not checked.simulates and key.address != signer:
            raise TxError(
                INVALID_PUB_KEY,
                f"pubKey does not match signer address {show(signer)} with signer index: {at}",
            )
        account = checked.account(signer)
        if account.key is None:
            checked.context.accounts.set(signer, replace(account, key=key))
    checked.context.events += _signature_events(checked)


def _signature_events(checked: CheckedTx) -> list[Event]:
    found = []
    for signer, (signature, sequence) in zip(checked.signers, checked.signatures, strict=True):
        if not checked.tx.body.unordered:
            shown = f"{checked.context.codec.show(signer)}/{sequence}"
            found.append(event("tx", acc_seq=shown))
        if signature is None:
            raise TxError(TOO_MANY_SIGNATURES, "SignatureData is required")
        try:
            parts = list(txs.flatten_signature(signature))
        except InvalidMessage as error:
            raise TxError(TOO_MANY_SIGNATURES, str(error)) from None
        found += [event("tx", signature=b64encode(part).decode()) for part in parts]
    return found


def check_count(checked: CheckedTx) -> None:
    """Raise :exc:`TxError` for a transaction with too many keys."""
    limit, count = checked.params.tx_sig_limit, 0
    for info in checked.tx.signers:
        count += info.public_key.count() if info.public_key else 0
        if count > limit:
            raise TxError(TOO_MANY_SIGNATURES, f"signatures: {count}, limit: {limit}")


def pay_for_signatures(checked: CheckedTx) -> None:
    """Charge gas for the verification of each signature."""
    params = checked.params
    for signer, (signature, _) in zip(checked.signers, checked.signatures, strict=True):
        key = checked.account(signer).key
        if key is None and checked.simulates:
            key = SIMULATED_KEY
        _pay_for_signature(checked.context, params, key, signature)


def _pay_for_signature(
    context: Context, params: Params, key: Key | None, signature: Signature | None
) -> None:
    if isinstance(key, Ed25519Key):
        context.meter.consume(params.sig_verify_cost_ed25519, "ante verify: ed25519")
    elif isinstance(key, Secp256k1Key):
        context.meter.consume(params.sig_verify_cost_secp256k1, "ante verify: secp256k1")
    elif isinstance(key, MultisigKey):
        if not isinstance(signature, MultiSignature):
            raise TxError(
                INTERNAL,
                "expected *signing.MultiSignatureData, got, *signing.SingleSignatureData",
            )
        _pay_for_parts(context, params, key, signature)
    else:
        raise TxError(INVALID_PUB_KEY, "unrecognized public key type: <nil>")


def _pay_for_parts(
    context: Context, params: Params, key: MultisigKey, signature: MultiSignature
) -> None:
    if signature.bits.count != len(key.keys):
        text = f"bit array size is incorrect, expecting: {len(key.keys)}"
        raise TxError(INTERNAL, text)
    signed = [each for each, bit in zip(key.keys, signature.bits, strict=True) if bit]
    for part_key, part in zip(signed, signature.parts, strict=False):
        _pay_for_signature(context, params, part_key, part)
    if len(signed) > len(signature.parts):
        raise TxError(INTERNAL, f"signature size is incorrect {len(signature.parts)}")


def increment_sequences(checked: CheckedTx) -> None:
    """Increment the stored sequence of each signer."""
    accounts = checked.context.accounts
    for signer in checked.signers:
        account = checked.account(signer)
        accounts.set(signer, replace(account, sequence=account.sequence + 1))
