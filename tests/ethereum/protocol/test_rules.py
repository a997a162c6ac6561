"""Tests of Ethereum's rules for gas, fees, reverts and validity, by vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as some

from flask_noderpc.errors import InvalidTransaction
from flask_noderpc.ethereum.domain.execution import DELEGATION, Account, Environment
from flask_noderpc.ethereum.domain.forks import LONDON, OSAKA, PRAGUE
from flask_noderpc.ethereum.domain.records import AccessListEntry, Authorization, Transaction
from flask_noderpc.ethereum.engine.base import reason
from flask_noderpc.ethereum.protocol import validity
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.ethereum.protocol.validity import (
    MAX_INITCODE,
    floor_gas,
    intrinsic_gas,
    next_base_fee,
)

from .signing import CHAIN_ID, TYPES, sample, sender

LIMIT = 15_000_000
_ENTRY = AccessListEntry(bytes(20), (bytes(32), bytes(32)))
_ALLOWED = Authorization(chain_id=0, address=bytes(20), nonce=0, y_parity=0, r=1, s=1)


@pytest.mark.parametrize(
    ("gas", "expected"),
    [
        (intrinsic_gas(OSAKA, b"", False), 21_000),
        (intrinsic_gas(OSAKA, b"\0\1\0", False), 21_000 + 4 + 16 + 4),
        (intrinsic_gas(OSAKA, b"", True), 53_000),
        (intrinsic_gas(OSAKA, b"\1" * 33, True), 53_000 + 33 * 16 + 2 * 2),
        (intrinsic_gas(OSAKA, b"", False, (_ENTRY,)), 21_000 + 2_400 + 2 * 1_900),
        (intrinsic_gas(OSAKA, b"", False, (), (_ALLOWED, _ALLOWED)), 71_000),
        (floor_gas(OSAKA, b""), 21_000),
        (floor_gas(OSAKA, b"\0\1"), 21_000 + 10 + 40),
        (intrinsic_gas(OSAKA, b"\0" * 32, True), 53_000 + 4 * 32 + 2),
        (
            intrinsic_gas(OSAKA, b"\0" * MAX_INITCODE, True),
            53_000 + 4 * MAX_INITCODE + 2 * 1_536,
        ),
    ],
)
def test_gas_before_anything_runs(gas: int, expected: int) -> None:
    # Appendix G of the Yellow Paper; EIPs 2028, 2930, 3860, 7623, 7702.
    assert gas == expected


@pytest.mark.parametrize(
    ("used", "following"),
    # geth: consensus/misc/eip1559/eip1559_test.go.
    [(10_000_000, 10**9), (9_000_000, 987_500_000), (11_000_000, 1_012_500_000)],
)
def test_the_base_fee_follows_the_use(used: int, following: int) -> None:
    assert next_base_fee(10**9, used, 20_000_000) == following


def test_the_base_fee_at_its_ends() -> None:
    assert next_base_fee(7, 10_000_001, 20_000_000) == 8
    assert next_base_fee(7, 0, 20_000_000) == 7
    assert next_base_fee(8, 0, 20_000_000) == 7
    assert next_base_fee(0, 20_000_000, 20_000_000) == 0
    assert next_base_fee(800, 20_000_000, 20_000_000) == 900
    assert next_base_fee(800, 5, 1) == 800


def call(signature: str, kinds: list[str], *values: object) -> bytes:
    return bytes.fromhex(signature) + bytes(encode(kinds, values))


@given(some.text())
def test_a_revert_reason_is_decoded(text: str) -> None:
    message = text.encode("utf-8", "ignore").decode()
    assert reason(call("08c379a0", ["string"], message)) == message


@pytest.mark.parametrize(
    ("code", "text"),
    # geth: accounts/abi/abi.go, panicReasons.
    [
        (0x01, "assert(false)"),
        (0x11, "arithmetic underflow or overflow"),
        (0x12, "division or modulo by zero"),
        (0x32, "out-of-bounds access of an array or bytesN"),
        (0x77, "unknown panic code: 0x77"),
        ((1 << 256) - 1, "unknown panic code: 0x" + "f" * 64),
    ],
)
def test_a_panic_is_named(code: int, text: str) -> None:
    assert reason(call("4e487b71", ["uint256"], code)) == text


@given(some.binary(max_size=120), some.sampled_from(["", "08c379a0", "4e487b71", "12345678"]))
def test_other_revert_data_has_no_reason(data: bytes, selector: str) -> None:
    assert isinstance(reason(bytes.fromhex(selector) + data), str)


def test_a_sentence_cut_short_is_none() -> None:
    whole = call("08c379a0", ["string"], "a sentence that is longer than a word of the machine")
    assert reason(whole[:80]) == ""
    assert reason(b"") == ""
    assert reason(call("4e487b71", ["uint256"], 1)[:-1]) == ""


def block(chain_id: int, gas_limit: int) -> Environment:
    return Environment(chain_id=chain_id, number=1, timestamp=1, gas_limit=gas_limit)


@pytest.mark.parametrize("name", TYPES)
def test_a_transaction_of_each_type_may_run(name: str) -> None:
    tx = decode(sample(name))
    validity.check_form(tx, block(CHAIN_ID, LIMIT))
    validity.check_turn(tx, Account(nonce=tx.nonce))
    validity.check_funds(tx, Account(balance=validity.max_cost(tx)))


DYNAMIC = decode(sample("dynamic fee"))


def refused(**changes: object) -> str:
    tx: Transaction = replace(DYNAMIC, **changes)  # type: ignore[arg-type]
    with pytest.raises(InvalidTransaction) as received:
        validity.check_form(tx, block(CHAIN_ID, LIMIT))
    return str(received.value)


def test_statically_invalid_transactions_are_refused() -> None:
    # geth: core/txpool/validation.go.
    least = intrinsic_gas(OSAKA, DYNAMIC.data, False, DYNAMIC.access_list)
    assert refused(chain_id=1) == "invalid chain id for signer: have 1 want 9000"
    assert (
        refused(raw=bytes(131_073)) == "oversized data: transaction size 131073, limit 131072"
    )
    assert refused(gas=LIMIT + 1) == "exceeds block gas limit"
    assert refused(gas=least - 1) == f"intrinsic gas too low: have {least - 1}, want {least}"
    assert refused(to=None, data=b"\0" * (MAX_INITCODE + 1)) == (
        "max initcode size exceeded: code size 49153, limit 49152"
    )
    assert refused(max_priority_fee_per_gas=6 * 10**9) == (
        "max priority fee per gas higher than max fee per gas:"
        " maxPriorityFeePerGas: 6000000000, maxFeePerGas: 5000000000"
    )
    many = b"\1" * 10_000
    between = intrinsic_gas(OSAKA, many, False, DYNAMIC.access_list)
    assert refused(data=many, gas=between) == (
        f"insufficient gas for floor data gas cost: have {between},"
        f" want {floor_gas(OSAKA, many)}"
    )
    assert refused(type=4) == "set code tx must have at least one authorization tuple"
    assert refused(type=3) == "blobless blob transaction"
    assert refused(blob_versioned_hashes=(bytes(32),)) == "blob 0 has invalid hash version"


def test_nonces_too_low_or_too_high_are_refused() -> None:
    with pytest.raises(InvalidTransaction, match=r"^nonce too low: next nonce 4, tx nonce 3$"):
        validity.check_turn(DYNAMIC, Account(nonce=4))
    with pytest.raises(InvalidTransaction, match=r"^nonce too high: next nonce 2, tx nonce 3$"):
        validity.check_turn(DYNAMIC, Account(nonce=2))
    validity.check_nonce(DYNAMIC, Account(nonce=2))


def test_senders_with_code_or_without_funds_are_refused() -> None:
    validity.check_sender(DYNAMIC, b"")
    validity.check_sender(DYNAMIC, DELEGATION + bytes(20))
    with pytest.raises(InvalidTransaction, match=f"not an eoa: address 0x{sender().hex()}"):
        validity.check_sender(DYNAMIC, b"\x60")
    cost = 90_000 * 5 * 10**9 + 7
    with pytest.raises(InvalidTransaction) as received:
        validity.check_funds(DYNAMIC, Account(balance=cost - 1))
    assert str(received.value) == (
        f"insufficient funds for gas * price + value: balance {cost - 1}, tx cost {cost},"
        " overshot 1"
    )
    with pytest.raises(InvalidTransaction, match="max fee per gas less than block base fee"):
        validity.check_fee(DYNAMIC, 5 * 10**9 + 1)
    validity.check_fee(DYNAMIC, 5 * 10**9)


def test_blobs_are_paid_and_never_run() -> None:
    blob = decode(sample("blob"))
    assert validity.max_cost(blob) == validity.max_cost(DYNAMIC) + 9 * 131_072
    validity.check_form(blob, block(blob.chain_id or 0, 10**7))
    hashes = blob.blob_versioned_hashes[:1] * 7
    for wrong, text in (
        (
            replace(blob, max_fee_per_blob_gas=0),
            "max fee per blob gas less",
        ),
        (replace(blob, blob_versioned_hashes=()), "blobless blob transaction"),
        (replace(blob, blob_versioned_hashes=hashes), "have 7, permitted 6"),
    ):
        with pytest.raises(InvalidTransaction, match=text):
            validity.check_form(wrong, block(blob.chain_id or 0, 10**7))


def test_a_transaction_s_gas_is_capped_from_osaka_on() -> None:
    cap, roomy = 1 << 24, block(CHAIN_ID, 1 << 25)
    more = replace(DYNAMIC, gas=cap + 1)
    capped = replace(roomy, caps_tx_gas=True)
    validity.check_form(more, roomy)
    validity.check_form(more, replace(capped, fork=PRAGUE))
    validity.check_form(replace(DYNAMIC, gas=cap), capped)
    text = rf"^transaction gas limit too high \(cap: {cap}, tx: {cap + 1}\)$"
    with pytest.raises(InvalidTransaction, match=text):
        validity.check_form(more, capped)


def test_rules_of_earlier_forks() -> None:
    london = replace(block(CHAIN_ID, LIMIT), fork=LONDON)
    # Init code has no limit, and calldata no minimum of gas.
    data = b"\1" * (MAX_INITCODE + 1)
    gas = intrinsic_gas(LONDON, data, True)
    validity.check_form(replace(DYNAMIC, to=None, data=data, gas=gas, access_list=()), london)
    for kind in (3, 4):
        with pytest.raises(InvalidTransaction, match=f"type {kind} rejected"):
            validity.check_form(replace(DYNAMIC, type=kind), london)


def test_the_last_nonce_is_never_used() -> None:
    with pytest.raises(InvalidTransaction, match="nonce has max value"):
        validity.check_form(replace(DYNAMIC, nonce=(1 << 64) - 1), block(CHAIN_ID, LIMIT))
