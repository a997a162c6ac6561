"""Verification of signatures; SDK: x/auth/ante/sigverify.go, crypto/keys/multisig."""

from __future__ import annotations

from ...protocol import tx as txs
from ...protocol.fields import InvalidMessage
from ...protocol.keys import BitArray, Key, MultisigKey
from ...protocol.sign_bytes import SignerData, sign_bytes
from ...protocol.tx import MultiSignature, Signature, SingleSignature
from ..accounts import Account
from ..context import Mode
from ..errors import (
    INVALID_PUB_KEY,
    NOT_SUPPORTED,
    UNAUTHORIZED,
    WRONG_SEQUENCE,
    Panic,
    TxError,
)
from .checked import CheckedTx


def verify_signatures(checked: CheckedTx) -> None:
    """Raise :exc:`TxError` for a wrong sequence or signature; a simulation does not check
    signatures."""
    if checked.tx.body.unordered:
        raise TxError(NOT_SUPPORTED, "unordered transactions are not enabled")
    for signer, (signature, sequence) in zip(checked.signers, checked.signatures, strict=True):
        account = checked.account(signer)
        if account.key is None and not checked.simulates:
            raise TxError(INVALID_PUB_KEY, "pubkey on account is not set")
        if sequence != account.sequence:
            raise TxError(
                WRONG_SEQUENCE,
                f"account sequence mismatch, expected {account.sequence}, got {sequence}",
            )
        if checked.mode in (Mode.CHECK, Mode.DELIVER):
            assert account.key is not None
            assert signature is not None
            _verify(checked, account, account.key, signature)


def _verify(checked: CheckedTx, account: Account, key: Key, signature: Signature) -> None:
    environment = checked.context.environment
    chain_id = environment.head.chain_id
    # Signers of the genesis document can't know the number of their account.
    number = 0 if environment.is_genesis else account.number
    signer = SignerData(chain_id, number, account.sequence)
    try:
        _check_signature(checked, signer, key, signature)
    except InvalidMessage as error:
        shown = f"account number ({number})"
        text = f"{shown} and chain-id ({chain_id}): ({error})"
        if _is_amino(signature):
            text = f"{shown}, sequence ({account.sequence}) and chain-id ({chain_id})"
        raise TxError(
            UNAUTHORIZED, f"signature verification failed; please verify {text}"
        ) from None


def _is_amino(signature: Signature) -> bool:
    if isinstance(signature, SingleSignature):
        return signature.mode == txs.AMINO_JSON
    return all(map(_is_amino, signature.parts))


def _signed(checked: CheckedTx, signer: SignerData, mode: int) -> bytes:
    messages = [message.amino_json() for message in checked.messages if mode == txs.AMINO_JSON]
    return sign_bytes(mode, checked.tx, signer, messages)


def _check_signature(
    checked: CheckedTx, signer: SignerData, key: Key, signature: Signature
) -> None:
    """Raise :exc:`InvalidMessage` if the key did not make the signature."""
    if isinstance(signature, SingleSignature):
        signed = _signed(checked, signer, signature.mode)
        if isinstance(key, MultisigKey):
            raise Panic("not implemented")
        if not key.verify(signed, signature.signature):
            raise InvalidMessage("unable to verify single signer signature")
        return
    if not isinstance(key, MultisigKey):
        raise InvalidMessage(f"expected multisig.PubKey, got {key.go_name}")
    _check_multisig(checked, signer, key, signature)


def _check_multisig(
    checked: CheckedTx, signer: SignerData, key: MultisigKey, signature: MultiSignature
) -> None:
    parts = signature.parts
    _check_counts(key, signature.bits, len(parts))
    signed = [(at, key.keys[at]) for at, bit in enumerate(signature.bits) if bit]
    for (index, part_key), part in zip(signed, parts, strict=False):
        if isinstance(part, SingleSignature):
            if not part_key.verify(_signed(checked, signer, part.mode), part.signature):
                raise InvalidMessage(f"unable to verify signature at index {index}")
        elif isinstance(part_key, MultisigKey):
            _check_multisig(checked, signer, part_key, part)
        else:
            raise InvalidMessage(f"unable to parse pubkey of index {index}")


def _check_counts(key: MultisigKey, bits: BitArray, parts: int) -> None:
    if bits.count != len(key.keys):
        raise InvalidMessage(f"bit array size is incorrect, expecting: {len(key.keys)}")
    signed = sum(bits)
    if not key.threshold <= parts <= bits.count or signed > parts:
        raise InvalidMessage(f"signature size is incorrect {parts}")
    if signed < key.threshold:
        raise InvalidMessage(
            f"not enough signatures set, have {signed}, expected {key.threshold}"
        )
