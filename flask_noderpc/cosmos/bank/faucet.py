"""Faucet that sends coins from the first development account."""

from __future__ import annotations

import re
import threading
from secrets import token_hex

from ...backends.base.backend import ChainBackend
from ...domain.abci import ExecTxResult
from ...errors import NotSupported, ValueNotAllowed
from ...protocol.protobuf import Message, string
from ..protocol import coins, tx
from ..protocol.coins import Coin, Coins, InvalidCoins
from ..protocol.messages import MSG_SEND
from ..protocol.proto import MESSAGES
from ..protocol.sign_bytes import SignerData, direct
from .accounts import decode
from .context import Codec
from .dev import dev_keys
from .errors import WRONG_SEQUENCE, TxError
from .prices import parse_prices

# Maximum number of sequences to try, as other processes may send from the account at the same
# time.
_TRIES = 20
_EXPECTED = re.compile(r"expected (\d+), got")
_GAS, _GAS_OF_A_COIN = 150_000, 50_000

_lock = threading.Lock()


def send(backend: ChainBackend, recipient: str, amount: str) -> tuple[bytes, ExecTxResult]:
    """Send coins such as ``10token,5stake`` to an address; return the encoded transaction and
    the result of its check.

    Raise :exc:`~flask_noderpc.errors.ValueNotAllowed` for an invalid address or coins, and
    :exc:`~flask_noderpc.errors.NotSupported` for a chain without the account.
    """
    prefix = backend.application.sdk_prefix()
    if prefix is None:
        raise NotSupported("this chain has no faucet; NODERPC_APPLICATION = 'bank' has one")
    codec = Codec(prefix)
    given = _coins(amount)
    try:
        codec.parse(recipient)
    except TxError as error:
        raise ValueNotAllowed(f"address {recipient[:100]!r}: {error.log}") from None
    with _lock:
        return _send(backend, codec, recipient, given)


def _coins(text: str) -> Coins:
    try:
        found = coins.parse(text)
    except InvalidCoins as error:
        raise ValueNotAllowed(str(error)) from None
    if not found:
        raise ValueNotAllowed("coins: expected coins such as 10stake,5token, got none")
    return found


def _send(
    backend: ChainBackend, codec: Codec, recipient: str, amount: Coins
) -> tuple[bytes, ExecTxResult]:
    own = codec.show(dev_keys()[0].public.address)
    path = "/cosmos.auth.v1beta1.Query/Account"
    found = backend.application.query(path, string(1, own), 0, False)
    if found.code:
        raise NotSupported(
            "the genesis of this chain has no development accounts; start a new chain with"
            f" NODERPC_DEV ({found.log})"
        )
    _check_denoms(backend, amount)
    account = decode(Message(found.value).blob(1))
    chain_id, sequence = backend.network.node_info().network, account.sequence
    body = _body(own, recipient, amount)
    fee = _fee(backend, _GAS + _GAS_OF_A_COIN * len(amount))
    for _ in range(_TRIES):
        raw = _signed(body, fee, SignerData(chain_id, account.number, sequence))
        check = backend.mempool.submit(raw)
        expected = _EXPECTED.search(check.log)
        if check.code != WRONG_SEQUENCE.code or expected is None:
            break
        sequence = int(expected[1])
    return raw, check


def _check_denoms(backend: ChainBackend, amount: Coins) -> None:
    """Raise :exc:`~flask_noderpc.errors.ValueNotAllowed` for a denomination without supply."""

    def supply(method: str, request: bytes = b"") -> list[Message]:
        path = f"/cosmos.bank.v1beta1.Query/{method}"
        found = backend.application.query(path, request, 0, False)
        return [Message(each) for each in Message(found.value).blobs(1)]

    for denom in (coin.denom for coin in amount):
        if not any(int(each.text(2)) for each in supply("SupplyOf", string(1, denom))):
            known = ", ".join(each.text(1) for each in supply("TotalSupply"))
            raise ValueNotAllowed(
                f"coins: expected coins that this chain has ({known}), got {denom}"
            )


def _body(sender: str, recipient: str, amount: Coins) -> bytes:
    value = MESSAGES.encode(
        MSG_SEND.type_url.removeprefix("/"),
        from_address=sender,
        to_address=recipient,
        amount=[coin.encode() for coin in amount],
    )
    sent = {"type_url": MSG_SEND.type_url, "value": value}
    # A random memo makes each transaction unique: the mempool accepts the same bytes only
    # once, even after a revert.
    return MESSAGES.encode("TxBody", messages=[sent], memo=f"faucet {token_hex(8)}")


def _fee(backend: ChainBackend, gas: int) -> bytes:
    config = backend.application.query(
        "/cosmos.base.node.v1beta1.Service/Config", b"", 0, False
    )
    prices = parse_prices(Message(config.value).text(1))
    paid = [
        Coin(denom, -(-gas * numerator // denominator)).encode()
        for denom, (numerator, denominator) in sorted(prices.items())[:1]
    ]
    return MESSAGES.encode("Fee", amount=paid, gas_limit=gas)


def _signed(body: bytes, fee: bytes, signer: SignerData) -> bytes:
    key = dev_keys()[0]
    info = {
        "public_key": key.public,
        "mode": {"single": {"mode": tx.DIRECT}},
        "sequence": signer.sequence,
    }
    auth_info = MESSAGES.encode("AuthInfo", signers=[info], fee=fee)
    return tx.encode(body, auth_info, [key.sign(direct(body, auth_info, signer))])
