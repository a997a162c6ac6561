"""Properties of the application ``bank`` that hold for all transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc.cosmos.bank import Bank, dev
from flask_noderpc.cosmos.bank.accounts import Account, decode
from flask_noderpc.cosmos.bank.state import head, undo_changes
from flask_noderpc.cosmos.protocol import bech32, coins
from flask_noderpc.cosmos.protocol.coins import InvalidCoins
from flask_noderpc.cosmos.protocol.mnemonic import derive, seed
from flask_noderpc.cosmos.protocol.tx import AMINO_JSON, DIRECT
from flask_noderpc.domain.genesis import Genesis
from flask_noderpc.testing.chains import GENESIS_TIME, DictState

from .bank_txs import CHAIN_ID, KEYS, NOBODY, Draft, coin, multi_send, send
from .test_bank import run_block

# Small balances, so that accounts run out of coins.
STATE = dev.app_state("cosmos", "10000stake,20token")
PEOPLE = [*dev.dev_addresses()[:3], NOBODY]


def started() -> tuple[Bank, DictState]:
    state = DictState()
    app = Bank(state)
    genesis = Genesis(CHAIN_ID, GENESIS_TIME, app_state=STATE)
    state.apply(app.init_chain(genesis).changes)
    return app, state


def balances(state: DictState) -> dict[tuple[bytes, str], int]:
    found = state.range(b"bank/\2", limit=10_000)
    return {
        (key[7 : 7 + key[6]], key[7 + key[6] :].decode()): int(value) for key, value in found
    }


def accounts(state: DictState) -> dict[str, Account]:
    found = [decode(value) for _, value in state.range(b"acc/\1", limit=10_000)]
    return {account.address: account for account in found}


def total(state: DictState, denom: str) -> int:
    return sum(amount for (_, of), amount in balances(state).items() if of == denom)


messages = st.one_of(
    st.builds(
        lambda sender, recipient, amount, denom: (
            sender,
            send(PEOPLE[sender], recipient, coin(amount, denom)),
        ),
        st.integers(0, 2),
        st.sampled_from(PEOPLE),
        st.integers(-1, 25),
        st.sampled_from(["stake", "token", "gold"]),
    ),
    st.builds(
        lambda sender, amounts, off: (
            sender,
            multi_send(PEOPLE[sender], amounts, sum(amounts.values()) + off),
        ),
        st.integers(0, 2),
        st.dictionaries(st.sampled_from(PEOPLE), st.integers(0, 12), max_size=3),
        st.sampled_from([0, 0, 0, 1]),
    ),
)
drafts = st.tuples(
    messages,
    st.sampled_from([0, 0, 0, 0, 1, -1]),
    st.integers(0, 4000),
    st.sampled_from([200_000, 200_000, 60_000, 5_000]),
    st.sampled_from([DIRECT, AMINO_JSON]),
)
blocks = st.lists(st.lists(drafts, max_size=4), max_size=4)


# A transaction: sender and message, an offset of its sequence, fee, gas and sign mode.
Chosen = tuple[tuple[int, bytes], int, int, int, int]


def signed(state: DictState, sent: dict[int, int], draft: Chosen) -> bytes:
    (who, message), skip, fee, gas, mode = draft
    own = accounts(state)[PEOPLE[who]]
    sequence = max(0, own.sequence + sent.get(who, 0) + skip)
    sent[who] = sent.get(who, 0) + (skip == 0)
    given = Draft((message,), sequence, own.number, KEYS[who], gas=gas, mode=mode)
    return replace(given, fee=(coin(fee, "stake"),)).signed()


@given(blocks, st.integers(0, 4))
@settings(max_examples=60)
def test_supply_is_conserved_and_sequences_never_skip(
    chosen: Sequence[Sequence[Chosen]], back: int
) -> None:
    app, state = started()
    states = [dict(state)]
    for height, drafted in enumerate(chosen, 1):
        before = accounts(state)
        sent: dict[int, int] = {}
        raw = [signed(state, sent, draft) for draft in drafted]
        results = run_block(app, state, height, *raw)

        assert (total(state, "stake"), total(state, "token")) == (100_000, 200)
        assert all(amount > 0 for amount in balances(state).values())
        after = accounts(state)
        counted = sum(one.sequence for one in after.values())
        # A sender that paid the fee has used a sequence, and the fee's events are in the
        # result.
        paid = sum(bool(result.events) for result in results)
        assert counted == sum(one.sequence for one in before.values()) + paid
        assert all(result.code or result.data for result in results)
        states.append(dict(state))

    target = max(0, len(chosen) - back)
    state.apply(undo_changes(state, head(state), target))
    assert dict(state) == states[target]


RAW = Draft().signed()


@given(
    st.lists(
        st.tuples(st.integers(0, len(RAW) - 1), st.integers(0, 255)), min_size=1, max_size=4
    ),
    st.integers(0, len(RAW)),
    st.binary(max_size=3),
)
@settings(max_examples=1000)
def test_a_mutated_transaction_is_refused_with_a_code(
    bytes_at: list[tuple[int, int]], cut: int, inserted: bytes
) -> None:
    app, _ = _SHARED
    raw = bytearray(RAW)
    for at, byte in bytes_at:
        raw[at] = byte
    mutated = bytes(raw[:cut]) + inserted + bytes(raw[cut:])

    results = (app.check_tx(mutated), app.simulate(mutated), app.recheck_tx(mutated))

    if mutated != RAW:
        assert results[0].code != 0
    assert all(result.log or not result.code for result in results)


_SHARED = started()


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_code(raw: bytes) -> None:
    app, _ = _SHARED

    assert app.check_tx(raw).code != 0


@given(st.binary(min_size=1, max_size=255), st.sampled_from(["cosmos", "osmo", "a"]))
def test_an_address_is_read_as_it_was_written(data: bytes, prefix: str) -> None:
    text = bech32.encode(prefix, data)

    assert bech32.decode(text) == (prefix, data)
    assert bech32.decode(text.upper()) == (prefix, data)
    with pytest.raises(bech32.InvalidBech32, match="invalid checksum"):
        bech32.decode(text[:-1] + ("q" if text[-1] != "q" else "p"))


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("12", 12),
        ("-12", -12),
        ("+1", 1),
        ("0x10", 16),
        ("017", 15),
        ("1_000", 1000),
        ("0" * 9000 + "7", 7),
    ],
)
def test_an_amount_is_read_as_go_reads_it(text: str, amount: int) -> None:
    assert coins.parse_amount(text) == amount


@pytest.mark.parametrize("text", ["a", "08", "1.0", " 1", "1 ", "\u0661", "--1", "9" * 5000])
def test_other_texts_are_no_amount(text: str) -> None:
    with pytest.raises(InvalidCoins):
        coins.parse_amount(text)
    with pytest.raises(InvalidCoins, match="integer out of range; got: 257, max: 256"):
        coins.parse_amount(str(1 << 256))


def test_a_mnemonic_gives_the_keys_of_its_standards() -> None:
    """The first example of BIP 39 gives the seed, and CosmJS the key of the path."""
    words = " ".join(["abandon"] * 11 + ["about"])

    assert (
        seed(words)
        .hex()
        .startswith("5eb00bbddcf069084889a8ab9155568165f5c453ccb85e70811aaed6f6da5fc1")
    )
    assert (
        bech32.encode("cosmos", derive(words).public.address)
        == "cosmos19rl4cm2hmr8afy4kldpxz3fka4jguq0auqdal4"
    )
    with pytest.raises(ValueError, match="12, 15, 18, 21 or 24 words, got 2"):
        seed("too few")
