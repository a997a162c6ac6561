"""Tests of the application ``bank``: transactions, their refusals, checks, rewinds and past
states."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from flask_noderpc import Application, AppState
from flask_noderpc.backends.base.application import BlockRequest
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.cosmos.bank import (
    BANK_HANDLERS,
    TEXT,
    Bank,
    Context,
    Field,
    Handler,
    Kind,
    MessageType,
    Values,
    dev,
)
from flask_noderpc.cosmos.bank.accounts import FEE_COLLECTOR, module_address
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.cosmos.protocol import tx as txs
from flask_noderpc.cosmos.protocol.keys import BitArray, Ed25519Key, MultisigKey
from flask_noderpc.cosmos.protocol.tx import AMINO_JSON
from flask_noderpc.domain.abci import Event, ExecTxResult, QueryResult
from flask_noderpc.domain.block import BlockID, Commit
from flask_noderpc.domain.genesis import BlockParams, ConsensusParams, Genesis
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.errors import ConfigurationError, InvalidSetting, NotSupported
from flask_noderpc.protocol.protobuf import Message, blob, integer, message, string, varint
from flask_noderpc.testing.chains import GENESIS_TIME, DictState

from ...chain.conftest import Open
from .bank_txs import (
    ALICE,
    BOB,
    CAROL,
    CHAIN_ID,
    KEYS,
    MSG_SEND,
    NOBODY,
    Draft,
    account,
    any_of,
    ask,
    balance,
    coin,
    delivered,
    draft,
    multi_send,
    multisigned,
    send,
)

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "own_message.py"
COLLECTOR = bech32.encode("cosmos", module_address(FEE_COLLECTOR))
RICH = 10**12


def opened(
    open_chain: Open,
    application: Callable[[AppState], Application] = Bank,
    app_state: bytes | None = None,
) -> EmbeddedChain:
    state = dev.app_state() if app_state is None else app_state
    return open_chain(
        application=application, chain_id=CHAIN_ID, app_state=state, development_keys=True
    )


@pytest.fixture
def chain(open_chain: Open) -> EmbeddedChain:
    return opened(open_chain)


def shown(events: Sequence[Event]) -> list[str]:
    return [
        " ".join([e.type, *(f"{a.key.decode()}={a.value.decode()}" for a in e.attributes)])
        for e in events
    ]


def test_a_transfer_pays_its_fee_and_the_recipient(chain: EmbeddedChain) -> None:
    (result,) = delivered(chain, Draft().signed())

    response = any_of(f"{MSG_SEND}Response", b"")
    assert (result.code, result.log, result.data) == (0, "", message(2, response))
    assert balance(chain, ALICE) == RICH - 1
    assert balance(chain, ALICE, "stake") == RICH - 500
    assert balance(chain, COLLECTOR, "stake") == 500
    assert balance(chain, BOB) == RICH + 1
    assert account(chain, ALICE) == (0, 1)
    signature = shown(result.events)[6]
    assert signature.startswith("tx signature=")
    assert shown(result.events) == [
        f"coin_spent spender={ALICE} amount=500stake",
        f"coin_received receiver={COLLECTOR} amount=500stake",
        f"transfer recipient={COLLECTOR} sender={ALICE} amount=500stake",
        f"message sender={ALICE}",
        f"tx fee=500stake fee_payer={ALICE}",
        f"tx acc_seq={ALICE}/0",
        signature,
        f"message action={MSG_SEND} sender={ALICE} module=bank msg_index=0",
        f"coin_spent spender={ALICE} amount=1token msg_index=0",
        f"coin_received receiver={BOB} amount=1token msg_index=0",
        f"transfer recipient={BOB} sender={ALICE} amount=1token msg_index=0",
        f"message sender={ALICE} msg_index=0",
    ]
    assert all(a.index for e in result.events for a in e.attributes)


def test_a_recipient_without_an_account_gets_the_next_number(chain: EmbeddedChain) -> None:
    delivered(chain, Draft((send(ALICE, NOBODY),)).signed())

    # Ten accounts and the fee collector have lower numbers.
    assert account(chain, NOBODY) == (11, 0)


def test_a_failed_message_pays_its_fee_alone(chain: EmbeddedChain) -> None:
    riches = send(ALICE, BOB, coin(10 * RICH))
    (result,) = delivered(chain, Draft((send(ALICE, BOB), riches)).signed())

    assert (result.code, result.codespace) == (5, "sdk")
    assert result.log == (
        "failed to execute message; message index: 1: spendable balance 999999999999token is"
        " smaller than 10000000000000token: insufficient funds"
    )
    assert [e.type for e in result.events][-1] == "tx"
    assert result.data == b""
    assert (balance(chain, BOB), balance(chain, ALICE)) == (RICH, RICH)
    assert balance(chain, ALICE, "stake") == RICH - 500
    assert account(chain, ALICE) == (0, 1)


def test_coins_are_sent_to_many(chain: EmbeddedChain) -> None:
    many = multi_send(ALICE, {BOB: 2, CAROL: 3, NOBODY: 4})
    mismatch = multi_send(ALICE, {BOB: 2}, total=3)
    results = delivered(chain, Draft((many,)).signed(), Draft((mismatch,), sequence=1).signed())

    assert [result.code for result in results] == [0, 4]
    assert (results[1].codespace, results[1].log.partition("0: ")[2]) == (
        "bank",
        "sum inputs != sum outputs",
    )
    assert [balance(chain, who) for who in (ALICE, BOB, CAROL, NOBODY)] == [
        RICH - 9,
        RICH + 2,
        RICH + 3,
        4,
    ]


def _with(**fields: Any) -> bytes:
    return replace(Draft(), **fields).signed()


def _raw(
    body: bytes | None = None, auth_info: bytes | None = None, *signatures: bytes
) -> bytes:
    given = Draft()
    return txs.encode(
        given.body() if body is None else body,
        given.auth_info() if auth_info is None else auth_info,
        list(signatures or (bytes(64),)),
    )


_UNKNOWN = "unable to resolve type URL /acme.Msg: tx parse error: tx parse error"
_DECODE = ": tx parse error: tx parse error"
REFUSED = {
    "no transaction": (b"garbage", 2, None),
    "nothing": (b"", 18, "must contain at least one message: invalid request"),
    "no message": (_raw(b""), 18, None),
    "an unknown message": (_raw(message(1, any_of("/acme.Msg", b""))), 2, _UNKNOWN),
    "no message type": (
        _raw(message(1, any_of("/cosmos.crypto.secp256k1.PubKey", b""))),
        2,
        "no concrete type registered for type URL /cosmos.crypto.secp256k1.PubKey against"
        f" interface *interface {{ ProtoMessage(); Reset(); String() string }}{_DECODE}",
    ),
    "an unknown field of the body": (
        _raw(Draft().body() + integer(100, 1)),
        2,
        f'errUnknownField "*tx.TxBody": {{TagNum: 100, WireType:"varint"}}{_DECODE}',
    ),
    "an unknown field of a message": (
        _raw(message(1, any_of(MSG_SEND, string(1, ALICE) + string(9, "x")))),
        2,
        f'errUnknownField "*types.MsgSend": {{TagNum: 9, WireType:"bytes"}}{_DECODE}',
    ),
    "an unknown field that is cut off": (
        _raw(message(1, any_of(MSG_SEND, b"\x4a\x05"))),
        2,
        f'errUnknownField "*types.MsgSend": {{TagNum: 9, WireType:"bytes"}}{_DECODE}',
    ),
    "a field without a number": (
        b"\x02",
        2,
        f"invalid length; proto: invalid field number{_DECODE}",
    ),
    "fields out of order": (
        blob(2, Draft().auth_info()) + blob(1, Draft().body()) + blob(3, bytes(64)),
        2,
        f"txRaw must follow ADR-027, got tagNum 1 after tagNum 2{_DECODE}",
    ),
    "a long length": (
        b"\x0a\x80\x00",
        2,
        "length prefix varint for tagNum 1 is not as short as possible, read 2, only need 1"
        + _DECODE,
    ),
    "no fee": (
        _raw(None, message(1, Draft().signer())),
        111222,
        "recovered: runtime error: invalid memory address or nil pointer dereference\nstack:\n",
    ),
    "no signature": (
        blob(1, Draft().body()) + blob(2, Draft().auth_info()),
        15,
        "no signatures supplied",
    ),
    "two signatures": (
        _raw(None, None, bytes(64), bytes(64)),
        4,
        "wrong number of signers; expected 1, got 2: unauthorized",
    ),
    "a wrong signature": (
        _raw(),
        4,
        "signature verification failed; please verify account number (0) and chain-id (bank-1):"
        " (unable to verify single signer signature): unauthorized",
    ),
    "another chain's": (_with(chain_id="other"), 4, None),
    "another account number": (_with(number=5), 4, None),
    "amino of another chain": (
        _with(chain_id="other", mode=AMINO_JSON),
        4,
        "signature verification failed; please verify account number (0), sequence (0) and"
        " chain-id (bank-1): unauthorized",
    ),
    "a later sequence": (
        _with(sequence=7),
        32,
        "account sequence mismatch, expected 0, got 7: incorrect account sequence",
    ),
    "another's key": (
        _with(key=KEYS[1]),
        8,
        f"pubKey does not match signer address {ALICE} with signer index: 0: invalid pubkey",
    ),
    # The SDK adds up gas before it compares with the limit.
    "no gas": (_with(gas=0), 11, None),
    "little gas": (_with(gas=20_000), 11, None),
    "a long memo": (
        _with(memo="m" * 257),
        12,
        "maximum number of characters is 256 but received 257 characters: memo too large",
    ),
    "a fee that exceeds the balance": (
        _with(fee=(coin(2 * RICH, "stake"),)),
        5,
        "spendable balance 1000000000000stake is smaller than 2000000000000stake: insufficient"
        " funds: insufficient funds",
    ),
    "a negative fee": (
        _with(fee=(coin(-5, "stake"),)),
        13,
        "invalid fee provided: -5stake: insufficient fee",
    ),
    "a fee without an amount": (
        _with(fee=(string(1, "stake"),)),
        13,
        "invalid fee provided: null: insufficient fee",
    ),
    "an unsorted fee": (
        _with(fee=(coin(5, "token"), coin(5, "stake"))),
        13,
        "invalid fee amount: 5token,5stake: insufficient fee",
    ),
    "an invalid amount": (
        _with(fee=(coin("five", "stake"),)),
        2,
        f'math/big: cannot unmarshal "five" into a *big.Int{_DECODE}',
    ),
    "a fee grant": (
        _with(more_fee=string(4, BOB)),
        18,
        "fee grants are not enabled: invalid request",
    ),
    "unordered": (
        _with(more_body=integer(4, 1)),
        37,
        "unordered transactions are not enabled: feature not supported",
    ),
    "a sender without an account": (
        _with(messages=(send(NOBODY, BOB),)),
        9,
        f"fee payer address: {chr(0) * 20} does not exist: unknown address",
    ),
    "an invalid sender": (
        _with(messages=(send("cosmos1xyz", BOB),)),
        1,
        "decoding bech32 failed: invalid separator index 6",
    ),
    "another prefix": (
        _with(messages=(send(bech32.encode("osmo", bytes(20)), BOB),)),
        35,
        "hrp does not match bech32 prefix: expected 'cosmos' got 'osmo': internal logic error",
    ),
    "a timeout before all years": (
        _with(more_body=message(5, integer(1, -62_135_596_801))),
        2,
        "timestamp: &timestamppb.Timestamp{Seconds: -62135596801,\nNanos: 0,\n} before"
        f" 0001-01-01{_DECODE}",
    ),
    "a timeout after all years": (
        _with(more_body=message(5, integer(1, 1 << 62))),
        2,
        f"timestamp: &timestamppb.Timestamp{{Seconds: {1 << 62},\nNanos: 0,\n}} after"
        f" 10000-01-01{_DECODE}",
    ),
    "a timeout of too many nanoseconds": (
        _with(more_body=message(5, integer(1, 1) + integer(2, 10**9))),
        2,
        "timestamp: &timestamppb.Timestamp{Seconds: 1,\nNanos: 1000000000,\n}: nanos not in"
        f" range [0, 1e9){_DECODE}",
    ),
    "an unknown sign mode": (_with(mode=AMINO_JSON).replace(b"\x08\x7f", b"\x08\x02"), 4, None),
    "a long gas limit": (
        _with(gas=1 << 63),
        18,
        "invalid gas supplied; 9223372036854775808 > 9223372036854775807: invalid request",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_broken_transaction_is_refused(chain: EmbeddedChain, kind: str) -> None:
    raw, code, log = REFUSED[kind]

    check = chain.mempool.submit(raw)

    assert check.code == code, check.log
    if log is not None:
        assert check.log == log
    assert check.codespace == ("undefined" if code in (1, 111222) else "sdk")
    assert chain.mempool.pending_count().total == 0


FAILED = {
    "no amount": (send(ALICE, BOB, string(1, "token")), 10, "0token: invalid coins"),
    "zero": (send(ALICE, BOB, coin(0)), 10, "0token: invalid coins"),
    "negative": (send(ALICE, BOB, coin(-1)), 10, "-1token: invalid coins"),
    "twice": (send(ALICE, BOB, coin(1), coin(2)), 10, "1token,2token: invalid coins"),
    "no denomination": (send(ALICE, BOB, coin(1, "t")), 10, "1t: invalid coins"),
    "the fee collector": (
        send(ALICE, COLLECTOR),
        4,
        f"{COLLECTOR} is not allowed to receive funds: unauthorized",
    ),
    "no recipient": (
        send(ALICE, ""),
        7,
        "invalid to address: empty address string is not allowed: invalid address",
    ),
    "an unknown denomination": (
        send(ALICE, BOB, coin(1, "gold")),
        5,
        "spendable balance 0gold is smaller than 1gold: insufficient funds",
    ),
}


@pytest.mark.parametrize("kind", FAILED)
def test_a_message_fails_in_its_block(chain: EmbeddedChain, kind: str) -> None:
    given, code, log = FAILED[kind]

    (result,) = delivered(chain, Draft((given,)).signed())

    assert result.code == code
    assert log in result.log
    assert account(chain, ALICE) == (0, 1)
    assert balance(chain, ALICE) == RICH


def test_gas_runs_out_within_a_message(chain: EmbeddedChain) -> None:
    (result,) = delivered(chain, Draft(gas=70_000).signed())

    assert (result.code, result.gas_wanted) == (11, 70_000)
    # The gas of the step that exceeded the limit is included.
    assert 70_000 < result.gas_used < 73_000
    assert result.log == (
        f"out of gas in location: WritePerByte; gasWanted: 70000, gasUsed: {result.gas_used}:"
        " out of gas"
    )
    assert balance(chain, BOB) == RICH


def test_a_past_timeout_is_refused_and_one_to_come_is_not(chain: EmbeddedChain) -> None:
    chain.produce()
    chain.produce()
    past, now = Draft(timeout_height=1).signed(), Draft(timeout_height=3).signed()

    refused = chain.mempool.submit(past)
    (result,) = delivered(chain, now)

    assert refused.code == 30
    assert refused.log == "block height: 2, timeout height: 1: tx timeout height"
    assert result.code == 0


def test_amino_json_is_signed_with_its_escapes(chain: EmbeddedChain) -> None:
    given = Draft(mode=AMINO_JSON, memo='<a & "b">\u2028\n\u00e9', timeout_height=9)

    (result,) = delivered(chain, given.signed())

    assert result.code == 0


def test_two_of_three_keys_sign(chain: EmbeddedChain) -> None:
    key = MultisigKey(2, tuple(each.public for each in KEYS[:3]))
    own = bech32.encode("cosmos", key.address)
    delivered(chain, Draft((send(ALICE, own, coin(500, "stake"), coin(9)),)).signed())
    given = Draft((send(own, BOB),), number=11)
    few = multisigned(given, key, {1: KEYS[1]})
    wrong = multisigned(given, key, {0: KEYS[0], 2: KEYS[1]})
    enough = multisigned(given, key, {0: KEYS[0], 2: KEYS[2]})

    assert [chain.mempool.submit(each).code for each in (few, wrong)] == [4, 4]
    (result,) = delivered(chain, enough)
    assert result.code == 0
    assert (balance(chain, own), account(chain, own)) == (8, (11, 1))


# Logs of the SDK's own program.
_SIZE = "bit array size is incorrect, expecting: 3"
_VERIFY = "signature verification failed; please verify account number (11), sequence (0) and"


@pytest.mark.parametrize(
    ("bits", "code", "log"),
    [
        (BitArray(0, b""), 1, _SIZE),
        # The bit array has fewer elements than the key.
        (BitArray(1, b""), 1, _SIZE),
        (BitArray(2, b"\xc0"), 1, _SIZE),
        (BitArray(0, b"\xc0"), 1, _SIZE),
        (BitArray((1 << 32) - 1, b"\xc0"), 1, _SIZE),
        (BitArray((1 << 64) - 1, b"\xc0"), 1, _SIZE),
        (BitArray(3, b"\x80\xff"), 1, _SIZE),
        (BitArray(11, b""), 4, _VERIFY),
        (BitArray(3, b"\x80"), 4, _VERIFY),
        (BitArray(3, b"\xe0"), 1, "signature size is incorrect 2"),
        # Go uses the lower 32 bits.
        (BitArray((1 << 32) + 3, b"\xc0"), 0, ""),
    ],
)
def test_bits_of_a_multisig_key_are_those_of_its_keys(
    chain: EmbeddedChain, bits: BitArray, code: int, log: str
) -> None:
    key = MultisigKey(2, tuple(each.public for each in KEYS[:3]))
    own = bech32.encode("cosmos", key.address)
    delivered(chain, Draft((send(ALICE, own, coin(500, "stake"), coin(9)),)).signed())
    given = Draft((send(own, BOB),), number=11)

    check = chain.mempool.submit(multisigned(given, key, {0: KEYS[0], 1: KEYS[1]}, bits))

    assert check.code == code, check.log
    assert log in check.log


@pytest.mark.parametrize(
    ("key", "address"),
    [
        (MultisigKey(0, ()), "cosmos12hw8j5jte9d2nv28uh7nkk52q7qgxj8j36j9gx"),
        (
            MultisigKey(0, (KEYS[0].public, KEYS[1].public)),
            "cosmos1d09qhvhqs8lu3vyvcm59cwavfkf9c9rmdve2md",
        ),
        (
            MultisigKey(1, (Ed25519Key(b"\1" * 31), KEYS[0].public)),
            "cosmos12uzjl60k9hwhmafzdfc4d76trx96ql6y8ewgla",
        ),
    ],
)
def test_odd_multisig_keys_have_the_addresses_of_the_sdk(
    key: MultisigKey, address: str
) -> None:
    assert bech32.encode("cosmos", key.address) == address


def test_a_field_that_may_be_unknown_has_any_number_of_go(chain: EmbeddedChain) -> None:
    def with_field(number: int) -> bytes:
        return Draft(more_body=varint(number << 3) + b"\1").signed()

    assert chain.mempool.submit(with_field(1 << 31)).log == f"invalid length{_DECODE}"
    assert chain.mempool.submit(with_field((1 << 31) - 1)).code == 0


def test_a_timeout_at_the_beginning_of_times_is_none(chain: EmbeddedChain) -> None:
    chain.produce()
    refused = {
        seconds: chain.mempool.submit(
            Draft(more_body=message(5, integer(1, seconds) + integer(2, nanos))).signed()
        )
        for seconds, nanos in ((1, 0), (-1, 5), (-62_135_596_800, 1))
    }
    assert [check.code for check in refused.values()] == [42] * 3
    assert "timeout timestamp: 0001-01-01 00:00:00.000000001 +0000 UTC: tx timeout" in (
        refused[-62_135_596_800].log
    )

    zero = [message(5, b""), message(5, integer(2, 7)), message(5, integer(1, -62_135_596_800))]
    taken = [
        Draft(more_body=given, mode=AMINO_JSON, sequence=at).signed()
        for at, given in enumerate(zero)
    ]
    assert [each.code for each in delivered(chain, *taken)] == [0] * 3


def test_several_transactions_of_an_account_wait(chain: EmbeddedChain) -> None:
    waiting = [Draft(sequence=at).signed() for at in range(5)]
    for tx in waiting:
        assert chain.mempool.submit(tx).code == 0
    again = chain.mempool.submit(Draft(sequence=4, memo="again").signed())

    assert again.log == (
        "account sequence mismatch, expected 5, got 4: incorrect account sequence"
    )
    results = chain.reads.results(chain.produce()).tx_results
    assert [result.code for result in results] == [0] * 5
    assert account(chain, ALICE) == (0, 5)


def test_the_fees_of_those_that_wait_are_paid_once_each(chain: EmbeddedChain) -> None:
    half = (coin(RICH // 2, "stake"),)
    first, second, third = (Draft(sequence=at, fee=half).signed() for at in range(3))

    codes = [chain.mempool.submit(tx).code for tx in (first, second, third)]

    assert codes == [0, 0, 5]


def test_processes_check_behind_what_others_have_accepted(open_chain: Open) -> None:
    """Two chains on one store stand for two processes."""
    one, other = opened(open_chain), opened(open_chain)
    assert one.mempool.submit(Draft(sequence=0).signed()).code == 0
    assert other.mempool.submit(Draft(sequence=1).signed()).code == 0
    assert one.mempool.submit(Draft(sequence=1, memo="again").signed()).code == 32
    assert one.mempool.submit(Draft(sequence=2).signed()).code == 0

    one.produce()

    assert other.mempool.submit(Draft(sequence=3).signed()).code == 0
    assert account(other, ALICE) == (0, 3)
    other.mempool.flush()
    assert one.mempool.submit(Draft(sequence=3, memo="again").signed()).code == 0


def test_what_is_no_longer_valid_is_dropped_after_a_block(chain: EmbeddedChain) -> None:
    timely = Draft(sequence=0, timeout_height=2).signed()
    chain.produce()
    assert chain.mempool.submit(timely).code == 0
    assert chain.mempool.submit(Draft(sequence=1).signed()).code == 0
    chain.store.drop_pending([timely])

    # The first transaction is gone, so the second never becomes valid, and is removed with its
    # block.
    (result,) = chain.reads.results(chain.produce()).tx_results

    assert result.code == 32
    assert chain.mempool.pending_count().total == 0


def test_past_states_are_read_and_rewound_to(open_chain: Open) -> None:
    chain = open_chain(application=Bank, chain_id=CHAIN_ID, app_state=dev.app_state(), dev=True)
    number = 0
    for at in range(4):
        if at == 2:
            number = chain.control.snapshot()
        delivered(chain, Draft((send(ALICE, NOBODY),), sequence=at).signed())
    info = [balance(chain, NOBODY, height=at) for at in range(1, 5)]

    assert info == [1, 2, 3, 4]
    assert [account(chain, ALICE, height=at)[1] for at in range(1, 5)] == [1, 2, 3, 4]
    assert chain.control.revert(number)
    assert (balance(chain, NOBODY), account(chain, ALICE)) == (2, (0, 2))
    delivered(chain, Draft((send(ALICE, NOBODY, coin(7)),), sequence=2).signed())
    assert [balance(chain, NOBODY, height=at) for at in range(1, 4)] == [1, 2, 9]
    chain.control.reset()
    assert ask(chain, "auth/Account", string(1, NOBODY)).code == 22
    assert balance(chain, ALICE) == RICH


def test_only_the_latest_heights_are_retained(open_chain: Open) -> None:
    def few(state: AppState) -> Bank:
        return Bank(state, retained_heights=3)

    chain = opened(open_chain, few)
    for at in range(6):
        delivered(chain, Draft(sequence=at).signed())

    codes = [
        ask(chain, "bank/Balance", string(1, BOB) + string(2, "token"), at).code
        for at in range(1, 8)
    ]
    assert codes == [38, 38, 0, 0, 0, 0, 26]
    assert [balance(chain, BOB, height=at) for at in range(3, 7)] == [
        RICH + at for at in range(3, 7)
    ]
    with pytest.raises(NotSupported, match="NODERPC_BANK_HEIGHTS"):
        chain.block_scheduler().producer.rewind(1)


def test_a_lower_number_of_retained_heights_removes_the_older_ones(open_chain: Open) -> None:
    for heights, blocks in ((20, 10), (2, 8)):
        chain = opened(open_chain, partial(Bank, retained_heights=heights))
        for _ in range(blocks):
            chain.produce()
        chain.close()
    chain = opened(open_chain)
    state = chain.store.app_state

    assert len(state.range(b"written/", None, 100)) == 2
    assert len(state.range(b"old/", None, 100)) == 2
    assert [balance(chain, ALICE, height=at) for at in (16, 17, 18)] == [RICH] * 3
    assert ask(chain, "bank/TotalSupply", b"", 15).code == 38


class BusyState(DictState):
    """A state that changes between two reads of a query."""

    def __init__(self) -> None:
        super().__init__()
        self.event: Callable[[], object] | None = None

    def range(
        self, prefix: bytes, after: bytes | None = None, limit: int = 1000
    ) -> tuple[tuple[bytes, bytes], ...]:
        event, self.event = self.event, None
        if event is not None:
            event()
        return super().range(prefix, after, limit)


def test_a_query_during_blocks_answers_what_it_asked_for_or_nothing() -> None:
    state = BusyState()
    app = Bank(state, retained_heights=2)
    genesis = Genesis(CHAIN_ID, GENESIS_TIME, app_state=dev.app_state())
    state.apply(app.init_chain(genesis).changes)
    run_block(app, state, 1)
    request = string(1, BOB) + string(2, "token")

    def during(*heights: int) -> QueryResult:
        def run() -> None:
            for height in heights:
                run_block(app, state, height, Draft(sequence=height - 2).signed())

        state.event = run
        return app.query("/cosmos.bank.v1beta1.Query/Balance", request, 0, False)

    def amount(found: QueryResult) -> int:
        return int(Message(Message(found.value).blob(1)).text(2))

    one = during(2)
    assert (one.height, amount(one)) == (1, RICH)
    many = during(3, 4, 5)
    assert (many.code, many.height) == (38, 2)
    assert "failed to load state at height 2; version does not exist" in many.log
    state.event = lambda: state.apply(app.undo_changes(4))
    gone = app.query("/cosmos.bank.v1beta1.Query/Balance", request, 0, False)
    assert (gone.code, gone.value) == (26, b"")


def test_a_range_of_balances_is_read_at_a_past_height(chain: EmbeddedChain) -> None:
    fresh = (send(ALICE, NOBODY, coin(5)),)
    delivered(chain, Draft(fresh).signed())
    delivered(chain, Draft((send(ALICE, NOBODY, coin(3, "stake")),), sequence=1).signed())

    def amounts(height: int) -> list[tuple[str, str]]:
        found = ask(chain, "bank/AllBalances", string(1, NOBODY), height)
        coins = map(Message, Message(found.value).blobs(1))
        return [(each.text(1), each.text(2)) for each in coins]

    assert amounts(1) == [("token", "5")]
    assert amounts(2) == [("stake", "3"), ("token", "5")]


def test_queries_have_the_texts_of_the_sdk(chain: EmbeddedChain) -> None:
    chain.produce()
    nobody = ask(chain, "auth/Account", string(1, NOBODY))
    broken = ask(chain, "auth/Account", string(1, "cosmos1"))
    unknown = ask(chain, "gov/Params", b"")
    supply = ask(chain, "bank/SupplyOf", string(1, "token"))

    assert (nobody.code, nobody.codespace, nobody.log) == (
        22,
        "sdk",
        f"rpc error: code = NotFound desc = account {NOBODY} not found: key not found",
    )
    assert (broken.code, broken.log) == (
        18,
        "decoding bech32 failed: invalid bech32 string length 7: invalid request",
    )
    assert (unknown.code, unknown.log) == (6, "unknown query path: unknown request")
    assert Message(Message(supply.value).blob(1)).text(2) == str(10 * RICH)
    assert supply.height == 1


def test_a_simulation_tells_the_gas_behind_those_that_wait(chain: EmbeddedChain) -> None:
    assert chain.mempool.submit(Draft(fee=()).signed()).code == 0
    given = Draft(sequence=1, fee=(), gas=0, mode=0)
    unsigned = txs.encode(given.body(), given.auth_info(), [b""])
    path = "/cosmos.tx.v1beta1.Service/Simulate"

    found = chain.application.query(path, blob(2, unsigned), 0, False)
    first, second = delivered(chain, Draft(sequence=1, fee=()).signed())

    assert found.code == 0, found.log
    gas = Message(Message(found.value).blob(1)).integer(2)
    assert abs(gas - second.gas_used) < second.gas_used // 20
    assert first.code == second.code == 0
    wrong = chain.application.query(path, blob(2, unsigned), 0, False)
    assert "rpc error: code = Unknown desc = account sequence mismatch" in wrong.log
    assert (wrong.code, "with gas used: '" in wrong.log) == (6, True)


def test_a_price_of_gas_is_required_where_it_is_set(open_chain: Open) -> None:
    def priced(state: AppState) -> Bank:
        return Bank(state, min_gas_prices="0.01stake,5token")

    chain = opened(open_chain, priced)

    cheap = chain.mempool.submit(Draft().signed())
    assert (cheap.code, cheap.log) == (
        13,
        "insufficient fees; got: 500stake required: 2000stake,1000000token: insufficient fee",
    )
    assert chain.mempool.submit(Draft(fee=(coin(2000, "stake"),)).signed()).code == 0
    for text in ("stake", "1", "-1stake", "0.1s"):
        with pytest.raises(InvalidSetting, match="min_gas_prices"):
            Bank(chain.store.app_state, min_gas_prices=text)


def _genesis(change: Callable[[Any], None]) -> bytes:
    document = json.loads(dev.app_state())
    change(document)
    return json.dumps(document).encode()


def _more_supply(document: Any) -> None:
    document["bank"]["supply"][0]["amount"] = "1"


def _same_account(document: Any) -> None:
    document["auth"]["accounts"].append(document["auth"]["accounts"][0])


def _other_prefix(document: Any) -> None:
    document["bank"]["balances"][0]["address"] = bech32.encode("osmo", bytes(20))


def _vesting(document: Any) -> None:
    document["auth"]["accounts"][0]["@type"] = "/cosmos.vesting.v1beta1.DelayedVestingAccount"


def _no_amount(document: Any) -> None:
    del document["bank"]["balances"][0]["coins"][0]["amount"]


def _unsorted(document: Any) -> None:
    document["bank"]["balances"][0]["coins"][0]["amount"] = "-3"


def _set(value: Any, *path: str | int) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        *before, last = path
        for step in before:
            document = document[step]
        document[last] = value

    return change


def _account_in_upper_case(document: Any) -> None:
    accounts = document["auth"]["accounts"]
    accounts.append(accounts[0] | {"address": ALICE.upper(), "account_number": "77"})


_MULTISIG = {"@type": MultisigKey.type_url, "threshold": 1, "public_keys": []}


def _deep(depth: int) -> dict[str, Any]:
    return _MULTISIG | {"public_keys": [_deep(depth - 1)] if depth else []}


_AMOUNT = ("bank", "balances", 0, "coins", 0, "amount")
_FIRST = ("auth", "accounts", 0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_more_supply, "genesis supply is incorrect, expected"),
        (_same_account, "duplicate account found in genesis state; address: "),
        (_account_in_upper_case, "duplicate account found in genesis state; address: COSMOS"),
        (_other_prefix, "expected addresses with one prefix, got cosmos, osmo"),
        (_vesting, "auth.accounts[0]: invalid coins: "),
        (_no_amount, "bank.balances[0].coins[0].amount: expected a string that is not empty"),
        (_unsorted, "coin -3stake amount is not positive"),
        (_set("", *_AMOUNT), "coins[0].amount: expected a string that is not empty, got ''"),
        (_set(5, *_AMOUNT), "coins[0].amount: expected a string, got 5"),
        (
            _set("-1", *_FIRST, "account_number"),
            "auth.accounts[0].account_number: expected a whole number from 0 to",
        ),
        (_set("1_0", *_FIRST, "sequence"), "sequence: expected a whole number from 0 to"),
        (
            _set(str(1 << 64), *_FIRST, "sequence"),
            "a whole number from 0 to 184467",
        ),
        (
            _set("0", "auth", "params", "tx_sig_limit"),
            "auth.params.tx_sig_limit: expected at least 1",
        ),
        (_set("x", *_FIRST), "auth.accounts[0]: expected an object, got 'x'"),
        (_set([], "auth", "params", "tx_sig_limit"), "tx_sig_limit: expected a whole number"),
        (
            _set(_MULTISIG | {"threshold": -1}, *_FIRST, "pub_key"),
            "threshold: expected 0 to 4294967295, got",
        ),
        (_set(_deep(100), *_FIRST, "pub_key"), "expected at most 10 levels of multisig keys"),
        (_set({"params": {"max_validators": 1 << 32}}, "staking"), "got 4294967296"),
        (_set([], "bank"), "bank: expected an object, got []"),
        (_set({}, "bank", "balances"), "bank.balances: expected a list, got {}"),
        (_set("true", "bank", "params", "default_send_enabled"), "expected true or false"),
        (_set([{"address": ALICE}], "accounts"), "genesis of Cosmos SDK 0.40 or later"),
        (_set({"supply": []}, "supply"), "genesis of Cosmos SDK 0.40 or later"),
        (_set(True, "bank", "send_enabled"), "genesis of Cosmos SDK 0.40 or later"),
        (
            _set([{"type": "cosmos-sdk/Account", "value": {}}], "auth", "accounts"),
            "genesis of Cosmos SDK 0.40 or later",
        ),
    ],
)
def test_a_broken_genesis_is_refused(
    open_chain: Open, change: Callable[[Any], None], text: str
) -> None:
    with pytest.raises(ConfigurationError, match="app_state of the genesis document") as caught:
        opened(open_chain, app_state=_genesis(change))
    assert text in str(caught.value)
    # The file exists, so that operators can correct it.
    assert "config/genesis.json: " in str(caught.value)


@pytest.mark.parametrize("state", [b"{", b"\xff", b"[" * 5_000])
def test_a_genesis_state_that_is_no_json_is_not_stored(open_chain: Open, state: bytes) -> None:
    with pytest.raises(ConfigurationError, match="app_state of a new chain: "):
        opened(open_chain, app_state=state)


@pytest.mark.parametrize("prefix", ["", "OSMO", "a b", "\u00e9", "a" * 84])
def test_a_prefix_that_no_address_can_have_is_refused(open_chain: Open, prefix: str) -> None:
    for make in (lambda: dev.app_state(prefix), lambda: Bank(DictState(), prefix=prefix)):
        with pytest.raises(InvalidSetting, match="NODERPC_BANK_PREFIX = "):
            make()


def test_a_denomination_may_be_kept_from_being_sent(open_chain: Open) -> None:
    def disable(document: Any) -> None:
        document["bank"]["send_enabled"] = [{"denom": "token", "enabled": False}]

    chain = opened(open_chain, app_state=_genesis(disable))

    (result,) = delivered(chain, Draft().signed())

    assert (result.code, result.codespace) == (5, "bank")
    assert (
        "token transfers are currently disabled: send transactions are disabled" in result.log
    )


_MISTAKE = MessageType(
    "/acme.v1.MsgMistake",
    Kind("*acme.MsgMistake", {1: Field("author", TEXT, signer=True), 2: Field("text", TEXT)}),
)


def _mistake(context: Context, message: Values) -> bytes | None:
    context.store(b"acme/").set(b"key", b"value")
    if message["text"] == "loop":
        return _mistake(context, message)
    if message["text"] == "response":
        return cast("bytes", "text")
    raise KeyError("none")


class WithMistakes(Bank):
    handlers = (*BANK_HANDLERS, Handler(_MISTAKE, _mistake))


@pytest.mark.parametrize(
    ("text", "error"),
    [("key", "KeyError('none')"), ("response", "TypeError"), ("loop", "Recur")],
)
def test_a_mistake_of_a_handler_is_an_error_of_its_transaction(
    open_chain: Open, caplog: pytest.LogCaptureFixture, text: str, error: str
) -> None:
    chain = opened(open_chain, WithMistakes)
    given = any_of(_MISTAKE.type_url, string(1, ALICE) + string(2, text))

    failed, sent = delivered(
        chain, draft(messages=(given,), gas=10**9).signed(), draft(1).signed()
    )

    assert (failed.code, failed.codespace) == (111222, "undefined")
    assert error in failed.log
    assert "Traceback" in caplog.text
    assert "message handler of /acme.v1.MsgMistake raised an error" in caplog.text
    # The fee is paid, and nothing else is written.
    assert sent.code == 0
    assert account(chain, ALICE) == (0, 2)
    assert chain.store.app_state.get(b"acme/key") is None


def run_block(app: Bank, state: DictState, height: int, *raw: bytes) -> list[ExecTxResult]:
    """Execute a block of an application without a chain."""
    members = ValidatorSet(())
    commit = Commit(0, 0, BlockID())
    request = BlockRequest(height, GENESIS_TIME, raw, (), b"", b"", commit, members, members)
    execution = app.finalize_block(request)
    state.apply(execution.changes)
    return list(execution.tx_results)


def test_a_block_has_a_limit_of_gas() -> None:
    state = DictState()
    app = Bank(state)
    params = ConsensusParams(block=BlockParams(max_gas=100_000))
    genesis = Genesis(
        CHAIN_ID, GENESIS_TIME, consensus_params=params, app_state=dev.app_state()
    )
    state.apply(app.init_chain(genesis).changes)
    waiting = [Draft(sequence=at, gas=90_000).signed() for at in range(3)]

    first, second, third = run_block(app, state, 1, *waiting)
    greedy = app.check_tx(Draft(sequence=2, gas=100_001).signed())

    assert first.code == 0
    assert (second.code, third.code) == (11, 11)
    assert second.log.startswith("out of gas in location: block gas meter; gasWanted: 90000")
    assert third.log == "no block gas left to run tx: out of gas"
    # The message is reverted, but the fee and the sequence are not.
    assert (greedy.code, greedy.codespace) == (41, "sdk")
    assert greedy.log == ("tx gas limit 100001 exceeds block max gas 100000: invalid gas limit")
    assert app.check_tx(Draft(sequence=2, gas=90_000).signed()).code == 0


def test_a_genesis_may_have_no_accounts(open_chain: Open) -> None:
    chain = opened(open_chain, app_state=b"")
    chain.produce()

    assert ask(chain, "auth/Account", string(1, ALICE)).code == 22
    assert chain.mempool.submit(Draft().signed()).code == 9


def test_another_prefix_and_other_coins_are_chosen(open_chain: Open) -> None:
    state = dev.app_state("osmo", "5uosmo,10atom")
    chain = opened(open_chain, app_state=state)
    alice = dev.dev_addresses("osmo")[0]
    chain.produce()

    assert balance(chain, alice, "uosmo") == 5
    for text in ("uosmo", "5", "5uosmo,5uosmo", "0uosmo"):
        with pytest.raises(InvalidSetting, match="NODERPC_BANK_COINS"):
            dev.app_state("osmo", text)


def test_the_example_of_a_message_is_signed_and_stored(open_chain: Open) -> None:
    notes = runpy.run_path(str(EXAMPLE))
    chain = opened(open_chain, notes["Notes"])

    def note(text: str, sequence: int) -> bytes:
        value = string(1, ALICE) + string(2, text)
        return draft(sequence, messages=(any_of("/acme.notes.v1.MsgWrite", value),)).signed()

    short, long = delivered(chain, note("hello", 0), note("x" * 101, 1))

    assert (short.code, long.code, long.codespace) == (0, 2, "notes")
    assert long.log.endswith("101 characters: note is too long")
    assert f"note author={ALICE} msg_index=0" in shown(short.events)
    assert Message(Message(short.data).blob(2)).text(1) == "/acme.notes.v1.MsgWriteResponse"
    stored = chain.store.app_state.get(b"notes/" + KEYS[0].public.address)
    assert stored == b"hello"


@pytest.mark.parametrize(
    "raw",
    [
        message(1, b"\x80\x40\x01" * 90_000),
        message(
            1, message(1, message(1, b"/cosmos.bank.v1beta1.MsgSend") + message(2, b"")) * 5_000
        ),
        message(1, b"") + message(2, message(1, b"") * 90_000),
        message(1, b"") + message(2, b"") + message(3, b"") * 90_000,
    ],
    ids=["unknown fields", "messages", "signers", "signatures"],
)
def test_a_transaction_has_only_so_many_fields(chain: EmbeddedChain, raw: bytes) -> None:
    """Reading each field takes time, and a transaction of a megabyte could have 500,000."""
    check = chain.mempool.submit(raw)

    assert check.code == 2
    assert "expected at most 8192 fields" in check.log
