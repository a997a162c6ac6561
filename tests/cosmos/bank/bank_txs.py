"""Wallets that sign transactions for the application ``bank``, some of which are broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.cosmos.bank import BANK_HANDLERS, dev
from flask_noderpc.cosmos.bank.execute import decode
from flask_noderpc.cosmos.bank.messages import Registry
from flask_noderpc.cosmos.modules import MODULES
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.cosmos.protocol import tx as txs
from flask_noderpc.cosmos.protocol.keys import BitArray, MultisigKey
from flask_noderpc.cosmos.protocol.mnemonic import PrivateKey
from flask_noderpc.cosmos.protocol.sign_bytes import SignerData, direct, sign_bytes
from flask_noderpc.cosmos.protocol.tx import AMINO_JSON, DIRECT
from flask_noderpc.domain.abci import ExecTxResult, QueryResult
from flask_noderpc.protocol.protobuf import Message, blob, integer, message, string

CHAIN_ID = "bank-1"
KEYS = dev.dev_keys()
ALICE, BOB, CAROL, *_ = dev.dev_addresses()
NOBODY = bech32.encode("cosmos", bytes(20))
MSG_SEND = "/cosmos.bank.v1beta1.MsgSend"
_REGISTRY = Registry([*BANK_HANDLERS, *(one for each in MODULES for one in each.handlers)])


def coin(amount: int | str, denom: str = "token") -> bytes:
    return string(1, denom) + string(2, str(amount))


def any_of(type_url: str, value: bytes) -> bytes:
    return string(1, type_url) + blob(2, value)


def send(sender: str, recipient: str, *amount: bytes) -> bytes:
    """Return a message that sends 1 token, or other coins."""
    parts = b"".join(message(3, each) for each in amount or (coin(1),))
    return any_of(MSG_SEND, string(1, sender) + string(2, recipient) + parts)


def multi_send(sender: str, outputs: dict[str, int], total: int | None = None) -> bytes:
    total = sum(outputs.values()) if total is None else total
    value = message(1, string(1, sender) + message(2, coin(total)))
    for recipient, amount in outputs.items():
        value += message(2, string(1, recipient) + message(2, coin(amount)))
    return any_of("/cosmos.bank.v1beta1.MsgMultiSend", value)


@dataclass(frozen=True)
class Draft:
    """A transaction before it is signed."""

    messages: tuple[bytes, ...] = (send(ALICE, BOB),)
    sequence: int = 0
    number: int = 0
    key: PrivateKey = KEYS[0]
    chain_id: str = CHAIN_ID
    memo: str = ""
    timeout_height: int = 0
    more_body: bytes = b""
    fee: tuple[bytes, ...] = (coin(500, "stake"),)
    gas: int = 200_000
    more_fee: bytes = b""
    mode: int = DIRECT

    def body(self) -> bytes:
        parts = b"".join(message(1, each) for each in self.messages)
        return parts + string(2, self.memo) + integer(3, self.timeout_height) + self.more_body

    def fee_bytes(self) -> bytes:
        paid = b"".join(message(1, each) for each in self.fee)
        return message(2, paid + integer(2, self.gas) + self.more_fee)

    def signer(self) -> bytes:
        mode = message(1, integer(1, self.mode))
        return message(1, self.key.public.any) + message(2, mode) + integer(3, self.sequence)

    def auth_info(self) -> bytes:
        return message(1, self.signer()) + self.fee_bytes()

    def data(self) -> SignerData:
        return SignerData(self.chain_id, self.number, self.sequence)

    def signed(self) -> bytes:
        """Return the transaction with its signature."""
        return txs.encode(self.body(), self.auth_info(), [self.signature(self.auth_info())])

    def signature(self, auth_info: bytes) -> bytes:
        if self.mode == DIRECT:
            return self.key.sign(direct(self.body(), auth_info, self.data()))
        unsigned = txs.encode(self.body(), auth_info, [b""])
        return self.key.sign(signed_bytes(unsigned, self.mode, self.data()))


def signed_bytes(raw: bytes, mode: int, signer: SignerData) -> bytes:
    """Return the bytes of a transaction that its signers sign."""
    decoded = decode(raw, _REGISTRY)
    messages = [each.amino_json() for each in decoded.messages]
    return sign_bytes(mode, decoded.tx, signer, messages)


def multisigned(
    draft: Draft, key: MultisigKey, by: dict[int, PrivateKey], bits: BitArray | None = None
) -> bytes:
    """Return the transaction, signed by some keys of a multisig key."""
    bits = bits or BitArray.from_bools([at in by for at in range(len(key.keys))])
    single = message(2, message(1, integer(1, AMINO_JSON)))
    mode = message(2, message(1, bits.encode()) + single * len(by))
    signer = message(1, key.any) + message(2, mode) + integer(3, draft.sequence)
    auth_info = message(1, signer) + draft.fee_bytes()
    unsigned = txs.encode(draft.body(), auth_info, [b""])
    document = signed_bytes(unsigned, AMINO_JSON, draft.data())
    parts = [by[at].sign(document) for at in sorted(by)]
    return txs.encode(draft.body(), auth_info, [txs.join(parts)])


def delivered(chain: EmbeddedChain, *raw: bytes) -> Sequence[ExecTxResult]:
    """Send transactions, which must be accepted, and return their results."""
    for tx in raw:
        check = chain.mempool.submit(tx)
        assert check.code == 0, check.log
    return chain.reads.results(chain.produce()).tx_results


def ask(chain: EmbeddedChain, method: str, request: bytes, height: int = 0) -> QueryResult:
    """Return the result of a query method; ``module/Method`` is enough."""
    module, _, name = method.partition("/")
    path = f"/cosmos.{module}.v1beta1.Query/{name}"
    return chain.application.query(path, request, height, False)


def balance(chain: EmbeddedChain, address: str, denom: str = "token", height: int = 0) -> int:
    found = ask(chain, "bank/Balance", string(1, address) + string(2, denom), height)
    assert found.code == 0, found.log
    return int(Message(Message(found.value).blob(1)).text(2))


def account(chain: EmbeddedChain, address: str, height: int = 0) -> tuple[int, int]:
    """Return the number and the sequence of an account."""
    found = ask(chain, "auth/AccountInfo", string(1, address), height)
    assert found.code == 0, found.log
    base = Message(Message(found.value).blob(1))
    return base.integer(3), base.integer(4)


def draft(sequence: int = 0, who: int = 0, **fields: object) -> Draft:
    """Return a transfer from a development account to the next one."""
    addresses = dev.dev_addresses()
    made = Draft(
        (send(addresses[who], addresses[(who + 1) % len(addresses)]),),
        sequence,
        who,
        KEYS[who],
    )
    return replace(made, **fields)  # type: ignore[arg-type]
