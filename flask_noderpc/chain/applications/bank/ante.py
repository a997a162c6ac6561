"""Checks and fees before a transaction's messages run; SDK: x/auth/ante."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from ....domain.abci import Event
from ....domain.time import SECOND, ZERO_TIME, to_go_text
from ....jsoncodec import text_of
from ....protocol.cosmos import coins
from ....protocol.cosmos import tx as txs
from ....protocol.cosmos.coins import Coins
from ....protocol.cosmos.fields import InvalidMessage
from ....protocol.cosmos.keys import BitArray, Ed25519Key, Key, MultisigKey, Secp256k1Key
from ....protocol.cosmos.messages import Msg
from ....protocol.cosmos.sign_bytes import SignerData, sign_bytes
from ....protocol.cosmos.tx import MultiSignature, Signature, SingleSignature, Tx
from ....protocol.protobuf import delimited
from .accounts import FEE_COLLECTOR, Account, Params
from .balances import event
from .context import Context, Mode
from .errors import (
    INSUFFICIENT_FEE,
    INSUFFICIENT_FUNDS,
    INTERNAL,
    INVALID_ADDRESS,
    INVALID_GAS_LIMIT,
    INVALID_PUB_KEY,
    INVALID_REQUEST,
    MEMO_TOO_LARGE,
    NO_SIGNATURES,
    NOT_SUPPORTED,
    TOO_MANY_SIGNATURES,
    TX_DECODE,
    TX_TIMEOUT,
    TX_TIMEOUT_HEIGHT,
    UNAUTHORIZED,
    UNKNOWN_ADDRESS,
    UNKNOWN_EXTENSION_OPTIONS,
    WRONG_SEQUENCE,
    Panic,
    TxError,
)

_MAX_GAS = (1 << 63) - 1

# A key to count with where a simulated transaction has none yet.
_SIMULATED_KEY = Secp256k1Key(
    bytes.fromhex("035ad6810a47f073553ff30d2fcc7e0d3b1c0b74b61a1aaa2582344037151e143a")
)
_SIMULATED_SIGNATURE = 64


@dataclass(frozen=True)
class Ante:
    """A transaction that is checked."""

    tx: Tx
    messages: tuple[Msg, ...]
    context: Context
    mode: Mode
    min_gas_prices: dict[str, tuple[int, int]]
    """Numerator and denominator by denomination."""

    @property
    def simulates(self) -> bool:
        """True where signatures and fees are not required."""
        return self.mode is Mode.SIMULATE

    @property
    def params(self) -> Params:
        """The parameters, read anew each time as the SDK does."""
        return self.context.accounts.params()

    @property
    def fee(self) -> txs.Fee:
        """The fee."""
        assert self.tx.fee is not None
        return self.tx.fee

    @cached_property
    def signers(self) -> tuple[bytes, ...]:
        """Those who must sign, each once; raise :exc:`TxError`."""
        parse = self.context.codec.parse
        found = [parse(text) for message in self.messages for text in message.signers()]
        if self.fee.payer:
            found.append(parse(self.fee.payer))
        return tuple(dict.fromkeys(found))

    @property
    def payer(self) -> bytes:
        """Address that pays the fee."""
        if self.fee.payer:
            return self.context.codec.parse(self.fee.payer)
        if not self.signers:
            raise Panic("runtime error: index out of range [0] with length 0")
        return self.signers[0]

    @property
    def signatures(self) -> tuple[tuple[Signature | None, int], ...]:
        """Each signature with its sequence; raise :exc:`TxError`."""
        infos, given = self.tx.signers, self.tx.signatures
        if len(given) != len(infos):
            raise TxError(TX_DECODE, f"expected {len(infos)} signatures, got {len(given)}")
        return self._signatures

    @cached_property
    def _signatures(self) -> tuple[tuple[Signature | None, int], ...]:
        found: list[tuple[Signature | None, int]] = []
        for info, given in zip(self.tx.signers, self.tx.signatures, strict=True):
            if not info.has_mode:
                found.append((None, 0))
                continue
            try:
                found.append((txs.signature_of(info.mode, given), info.sequence))
            except InvalidMessage as error:
                raise TxError(INTERNAL, str(error)) from None
            except txs.NoMode as error:
                raise Panic(str(error)) from None
        return tuple(found)

    def account(self, address: bytes) -> Account:
        """Return a signer's account; raise :exc:`TxError` if there is none."""
        found = self.context.accounts.get(address)
        if found is None:
            shown = self.context.codec.show(address)
            raise TxError(UNKNOWN_ADDRESS, f"account {shown} does not exist")
        return found

    def run(self) -> None:
        """Take all steps; raise :exc:`TxError` at the first that fails."""
        for step in STEPS:
            step(self)


def check_gas_limit(ante: Ante) -> None:
    """Refuse more gas than a block has."""
    limit = ante.context.environment.head.max_gas
    if 0 < limit < ante.fee.gas_limit:
        text = f"tx gas limit {ante.fee.gas_limit} exceeds block max gas {limit}"
        raise TxError(INVALID_GAS_LIMIT, text)


def check_extensions(ante: Ante) -> None:
    """Refuse extensions, of which none is known."""
    if ante.tx.body.extensions:
        raise TxError(UNKNOWN_EXTENSION_OPTIONS)


def check_basics(ante: Ante) -> None:
    """Refuse fees, signatures and signers that no transaction can have."""
    if ante.mode is Mode.RECHECK:
        return
    _check_fee(ante)
    signatures = ante.tx.signatures
    if not signatures:
        raise TxError(NO_SIGNATURES)
    if len(signatures) != len(ante.signers):
        raise TxError(
            UNAUTHORIZED,
            f"wrong number of signers; expected {len(ante.signers)}, got {len(signatures)}",
        )


def _check_fee(ante: Ante) -> None:
    fee = ante.fee
    if fee.gas_limit > _MAX_GAS:
        text = f"invalid gas supplied; {fee.gas_limit} > {_MAX_GAS}"
        raise TxError(INVALID_REQUEST, text)
    if any(coin.amount is None for coin in fee.amount):
        raise TxError(INSUFFICIENT_FEE, "invalid fee provided: null")
    if any(coin.value < 0 for coin in fee.amount):
        raise TxError(INSUFFICIENT_FEE, f"invalid fee provided: {coins.show(fee.amount)}")
    if fee.payer:
        try:
            ante.context.codec.parse_message(fee.payer)
        except TxError as error:
            text = f"Invalid fee payer address ({error.log})"
            raise TxError(INVALID_ADDRESS, text) from None


def check_timeout(ante: Ante) -> None:
    """Refuse a transaction whose last block, or time, is past."""
    limit, height = ante.tx.body.timeout_height, ante.context.environment.height
    if limit and height > limit:
        text = f"block height: {height}, timeout height: {limit}"
        raise TxError(TX_TIMEOUT_HEIGHT, text)
    timeout, now = ante.tx.body.timeout, ante.context.environment.time
    # Go's zero time and the second of 1970's beginning are none.
    if timeout is None or timeout == ZERO_TIME or not timeout // SECOND:
        return
    if timeout < now:
        block, given = to_go_text(now), to_go_text(timeout)
        raise TxError(TX_TIMEOUT, f"block time: {block}, timeout timestamp: {given}")


def check_memo(ante: Ante) -> None:
    """Refuse a long memo."""
    size = len(ante.tx.body.memo)
    if not size:
        return
    limit = ante.params.max_memo_characters
    if size > limit:
        raise TxError(
            MEMO_TOO_LARGE,
            f"maximum number of characters is {limit} but received {size} characters",
        )


def pay_for_size(ante: Ante) -> None:
    """Charge gas for the bytes of a transaction."""
    params, meter = ante.params, ante.context.meter
    meter.consume(params.tx_size_cost_per_byte * ante.tx.size, "txSize")
    if not ante.simulates:
        return
    signatures = ante.signatures
    for at, signer in enumerate(ante.signers):
        if at < len(signatures) and _is_complete(signatures[at][0]):
            continue
        account = ante.context.accounts.get(signer)
        key = account.key if account and account.key else _SIMULATED_KEY
        # What it is longer by once it is signed: amino's key and signature.
        size = len(b"\x0a" + delimited(key.amino)) + _SIMULATED_SIGNATURE + 2 + 6
        count = params.tx_sig_limit if isinstance(key, MultisigKey) else 1
        meter.consume(params.tx_size_cost_per_byte * size * count, "txSize")


def _is_complete(signature: Signature | None) -> bool:
    if isinstance(signature, MultiSignature):
        return bool(signature.parts) and all(map(_is_complete, signature.parts))
    return signature is not None and bool(signature.signature)


def deduct_fee(ante: Ante) -> None:
    """Let the payer pay the fee."""
    fee, show = ante.fee, ante.context.codec.show
    if not ante.simulates and not fee.gas_limit:
        raise TxError(INVALID_GAS_LIMIT, "must provide positive gas")
    if ante.mode in (Mode.CHECK, Mode.RECHECK):
        _check_gas_price(fee, ante.min_gas_prices)
    payer = ante.payer
    if fee.granter:
        _check_granter(ante, fee.granter)
        raise TxError(INVALID_REQUEST, "fee grants are not enabled")
    if ante.context.accounts.get(payer) is None:
        # The SDK shows its bytes.
        text = f"fee payer address: {text_of(payer)} does not exist"
        raise TxError(UNKNOWN_ADDRESS, text)
    if any(coin.value for coin in fee.amount):
        _pay(ante, payer, fee.amount)
    ante.context.events.append(event("tx", fee=coins.show(fee.amount), fee_payer=show(payer)))


def _check_granter(ante: Ante, granter: str) -> None:
    try:
        ante.context.codec.parse(granter)
    except TxError as error:
        raise Panic(error.log) from None


def _pay(ante: Ante, payer: bytes, amount: Coins) -> None:
    if not coins.is_valid(amount):
        text = f"invalid fee amount: {coins.show(amount)}"
        raise TxError(INSUFFICIENT_FEE, text)
    try:
        collector = ante.context.accounts.module(FEE_COLLECTOR)
        ante.context.balances.send(payer, collector, amount)
    except TxError as error:
        raise TxError(INSUFFICIENT_FUNDS, error.log) from None


def _check_gas_price(fee: txs.Fee, prices: dict[str, tuple[int, int]]) -> None:
    if not prices:
        return
    required = {
        denom: -(-price * fee.gas_limit // unit) for denom, (price, unit) in prices.items()
    }
    paid = {coin.denom: coin.value for coin in fee.amount}
    if not any(paid.get(denom, 0) >= least > 0 for denom, least in required.items()):
        shown = ",".join(f"{required[denom]}{denom}" for denom in sorted(required))
        raise TxError(
            INSUFFICIENT_FEE,
            f"insufficient fees; got: {coins.show(fee.amount)} required: {shown}",
        )


def set_keys(ante: Ante) -> None:
    """Remember the keys of signers, and emit the signatures' events."""
    infos, show = ante.tx.signers, ante.context.codec.show
    if len(infos) != len(ante.signers):
        text = f"expected {len(ante.signers)} signer infos, got {len(infos)}"
        raise TxError(TX_DECODE, text)
    for at, (info, signer) in enumerate(zip(infos, ante.signers, strict=True)):
        key = info.public_key
        if key is None:
            if not ante.simulates:
                continue
            key = _SIMULATED_KEY
        if not ante.simulates and key.address != signer:
            raise TxError(
                INVALID_PUB_KEY,
                f"pubKey does not match signer address {show(signer)} with signer index: {at}",
            )
        account = ante.account(signer)
        if account.key is None:
            ante.context.accounts.set(signer, replace(account, key=key))
    ante.context.events += _signature_events(ante)


def _signature_events(ante: Ante) -> list[Event]:
    found = []
    for signer, (signature, sequence) in zip(ante.signers, ante.signatures, strict=True):
        if not ante.tx.body.unordered:
            shown = f"{ante.context.codec.show(signer)}/{sequence}"
            found.append(event("tx", acc_seq=shown))
        if signature is None:
            raise TxError(TOO_MANY_SIGNATURES, "SignatureData is required")
        try:
            parts = list(txs.flat(signature))
        except InvalidMessage as error:
            raise TxError(TOO_MANY_SIGNATURES, str(error)) from None
        found += [event("tx", signature=b64encode(part).decode()) for part in parts]
    return found


def check_count(ante: Ante) -> None:
    """Refuse too many keys."""
    limit, count = ante.params.tx_sig_limit, 0
    for info in ante.tx.signers:
        count += info.public_key.count() if info.public_key else 0
        if count > limit:
            raise TxError(TOO_MANY_SIGNATURES, f"signatures: {count}, limit: {limit}")


def pay_for_signatures(ante: Ante) -> None:
    """Charge gas for the signatures."""
    params = ante.params
    for signer, (signature, _) in zip(ante.signers, ante.signatures, strict=True):
        key = ante.account(signer).key
        if key is None and ante.simulates:
            key = _SIMULATED_KEY
        _pay_for_signature(ante.context, params, key, signature)


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


def verify_signatures(ante: Ante) -> None:
    """Check sequences and signatures."""
    if ante.tx.body.unordered:
        raise TxError(NOT_SUPPORTED, "unordered transactions are not enabled")
    for signer, (signature, sequence) in zip(ante.signers, ante.signatures, strict=True):
        account = ante.account(signer)
        if account.key is None and not ante.simulates:
            raise TxError(INVALID_PUB_KEY, "pubkey on account is not set")
        if sequence != account.sequence:
            raise TxError(
                WRONG_SEQUENCE,
                f"account sequence mismatch, expected {account.sequence}, got {sequence}",
            )
        if ante.mode in (Mode.CHECK, Mode.DELIVER):
            assert account.key is not None
            assert signature is not None
            _verify(ante, account, account.key, signature)


def _verify(ante: Ante, account: Account, key: Key, signature: Signature) -> None:
    chain_id = ante.context.environment.head.chain_id
    signer = SignerData(chain_id, account.number, account.sequence)
    try:
        _check_signature(ante, signer, key, signature)
    except InvalidMessage as error:
        number = f"account number ({account.number})"
        text = f"{number} and chain-id ({chain_id}): ({error})"
        if _is_amino(signature):
            text = f"{number}, sequence ({account.sequence}) and chain-id ({chain_id})"
        raise TxError(
            UNAUTHORIZED, f"signature verification failed; please verify {text}"
        ) from None


def _is_amino(signature: Signature) -> bool:
    if isinstance(signature, SingleSignature):
        return signature.mode == txs.AMINO_JSON
    return all(map(_is_amino, signature.parts))


def _signed(ante: Ante, signer: SignerData, mode: int) -> bytes:
    messages = [message.amino_json() for message in ante.messages if mode == txs.AMINO_JSON]
    return sign_bytes(mode, ante.tx, signer, messages)


def _check_signature(ante: Ante, signer: SignerData, key: Key, signature: Signature) -> None:
    """Raise :exc:`InvalidMessage` for a signature that is not the key's."""
    if isinstance(signature, SingleSignature):
        signed = _signed(ante, signer, signature.mode)
        if isinstance(key, MultisigKey):
            raise Panic("not implemented")
        if not key.verify(signed, signature.signature):
            raise InvalidMessage("unable to verify single signer signature")
        return
    if not isinstance(key, MultisigKey):
        raise InvalidMessage(f"expected multisig.PubKey, got {key.go_name}")
    _check_multisig(ante, signer, key, signature)


def _check_multisig(
    ante: Ante, signer: SignerData, key: MultisigKey, signature: MultiSignature
) -> None:
    parts = signature.parts
    _check_counts(key, signature.bits, len(parts))
    signed = [(at, key.keys[at]) for at, bit in enumerate(signature.bits) if bit]
    for (index, part_key), part in zip(signed, parts, strict=False):
        if isinstance(part, SingleSignature):
            if not part_key.verify(_signed(ante, signer, part.mode), part.signature):
                raise InvalidMessage(f"unable to verify signature at index {index}")
        elif isinstance(part_key, MultisigKey):
            _check_multisig(ante, signer, part_key, part)
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


def increment_sequences(ante: Ante) -> None:
    """Count one more transaction of each signer."""
    accounts = ante.context.accounts
    for signer in ante.signers:
        account = ante.account(signer)
        accounts.set(signer, replace(account, sequence=account.sequence + 1))


STEPS: tuple[Callable[[Ante], None], ...] = (
    check_gas_limit,
    check_extensions,
    check_basics,
    check_timeout,
    check_memo,
    pay_for_size,
    deduct_fee,
    set_keys,
    check_count,
    pay_for_signatures,
    verify_signatures,
    increment_sequences,
)
"""In the SDK's order."""
