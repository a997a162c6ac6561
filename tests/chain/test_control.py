"""Tests of the control of development chains: clock, snapshots and accounts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base import location
from flask_noderpc.backends.base.verify import verify_chain
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import Busy, LeaseLost, NotSupported, ValueNotAllowed
from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.patches import Change, app_state, patch_tx
from flask_noderpc.ethereum.application.state import EvmRuntime, ExecutionLimits
from flask_noderpc.ethereum.domain.execution import Account, AccountOverride
from flask_noderpc.ethereum.protocol import accounts
from flask_noderpc.ethereum.protocol.transactions import decode, encode_unsigned
from flask_noderpc.ethereum.state import EVM_STATE
from flask_noderpc.signals import block_committed

from ..ethereum.protocol.signing import CHAIN_ID, OTHER, sender, transfer

SLOT, WORD = bytes(32), (9).to_bytes(32)
SOMEBODY = b"\x77" * 20


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedChain]:
    chain = opened(tmp_path_factory.mktemp("control") / "chain.db")
    chain.control.mine(3)
    yield chain
    chain.close()


def opened(path: Path) -> EmbeddedChain:
    chain = made(str(path), dev=True)
    chain.start()
    return chain


def made(path: str, *, dev: bool) -> EmbeddedChain:
    return EmbeddedChain(
        path,
        clock=ManualClock(),
        # With this lease time, the lease does not expire while a test waits on a slow machine.
        schedule=BlockSchedule(lease_s=3600),
        produce=False,
        application=lambda state: EvmApplication(
            state,
            EvmRuntime(state, location.location_of(path).path, ExecutionLimits()),
            CHAIN_ID,
            dev=dev,
        ),
        app_state=app_state({sender(): 10**22}),
        dev=dev,
    )


def time_of(chain: EmbeddedChain, height: int) -> int:
    return chain.reads.block_meta(height).header.time // SECOND


def account(chain: EmbeddedChain, address: bytes) -> Account:
    evm = EVM_STATE.of(chain)
    return accounts.account(evm.record, evm.root(chain.reads.latest_height()), address)


def dump(path: str) -> dict[str, list[tuple[object, ...]]]:
    """Return every table except those that only grow: nodes of trees, assigned numbers, the
    lease; and without counts of 0, which are as if they were missing."""
    left_out = {"app_state", "lease", "sqlite_sequence", "signatures", "commits", "rewinds"}
    with closing(sqlite3.connect(path)) as at:
        names = at.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        found = {
            name: sorted(at.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for (name,) in names
            if name not in left_out
        }
    found["tx_counts"] = [(heights, count) for heights, count in found["tx_counts"] if count]
    return found


def test_mined_blocks_are_at_least_a_second_apart(chain: EmbeddedChain) -> None:
    first = chain.control.mine(3)
    times = [time_of(chain, height) for height in range(first - 2, first + 1)]
    assert times == [times[0], times[0] + 1, times[0] + 2]


MANY = 1_100


def test_many_blocks_are_as_those_that_are_made_one_by_one(
    chain: EmbeddedChain, tmp_path: Path
) -> None:
    """The chain continues after a restart, and after blocks are reverted."""
    path = tmp_path / "many.db"
    with closing(opened(path)) as one:
        sent = transfer(0)
        one.mempool.submit(sent)
        assert one.control.mine(MANY) == MANY
        assert one.reads.block(1)[1].txs == (sent,)
        times = [time_of(one, height) for height in range(1, MANY + 1)]
        assert times == [*range(times[0], times[0] + MANY)]
        # The commits of these blocks equal the commits that their next blocks contain.
        for height in (1, 2, 500, 501, MANY - 1):
            assert one.reads.commit(height) == one.reads.block(height + 1)[1].last_commit
            (vote,) = one.reads.commit(height).signatures
            assert one.reads.block_meta(height + 1).header.time == vote.timestamp
        assert verify_chain(one.reads) == MANY
        number = one.control.snapshot()
        one.control.mine(600, step=7)
        assert time_of(one, MANY + 600) == time_of(one, MANY + 1) + 599 * 7
        assert one.control.revert(number)
        assert one.reads.latest_height() == MANY
    with closing(opened(path)) as again:
        assert again.control.mine(MANY) == 2 * MANY
        assert verify_chain(again.reads) == 2 * MANY


def test_many_blocks_are_signalled_one_by_one(chain: EmbeddedChain) -> None:
    heights = []

    def note(sender: object, height: int) -> None:
        heights.append(height)

    first = chain.reads.latest_height() + 1
    with block_committed.connected_to(note, sender=chain):
        last = chain.control.mine(700)
    assert heights == [*range(first, last + 1)]


def test_blocks_with_pending_transactions_are_made_one_by_one(tmp_path: Path) -> None:
    """A transaction that waits for another one is in no block, and is not lost."""
    with closing(opened(tmp_path / "gap.db")) as chain:
        chain.control.mine(2)
        chain.mempool.submit(transfer(1))
        chain.control.mine(5)
        assert chain.mempool.pending(5).txs == (transfer(1),)
        chain.mempool.submit(transfer(0))
        assert chain.control.mine(300) == 307
        assert chain.reads.block(8)[1].txs == (transfer(0), transfer(1))
        assert verify_chain(chain.reads) == 307


def test_too_many_blocks_are_refused_with_the_reason(chain: EmbeddedChain) -> None:
    height = chain.reads.latest_height()
    with pytest.raises(ValueNotAllowed, match="expected at most 100000 per call"):
        chain.control.mine(100_001)
    assert chain.reads.latest_height() == height


def test_a_kvstore_makes_many_blocks_too(tmp_path: Path) -> None:
    with closing(EmbeddedChain(tmp_path / "kv.db", dev=True, produce=False)) as chain:
        chain.start()
        chain.mempool.submit(b"a=b")
        assert chain.control.mine(600) == 600
        assert chain.application.query("", b"a", 0, False).value == b"b"
        assert verify_chain(chain.reads) == 600
        chain.mempool.submit(b"c=d")
        assert chain.reads.block(chain.control.mine())[1].txs == (b"c=d",)


def test_shift_moves_the_time_of_blocks(chain: EmbeddedChain) -> None:
    control = chain.control
    before = time_of(chain, control.mine())
    ahead = control.shift(100_000)
    assert time_of(chain, control.mine()) >= before + 90_000
    assert control.shift(1) == ahead + 1


def test_the_next_block_has_the_time_that_is_set_and_time_goes_on(
    chain: EmbeddedChain,
) -> None:
    control = chain.control
    expected = time_of(chain, chain.reads.latest_height()) + 12_345
    control.set_next_time(expected)
    assert time_of(chain, control.mine()) == expected
    assert expected < time_of(chain, control.mine()) <= expected + 1


def test_a_revert_undoes_a_set_time(chain: EmbeddedChain) -> None:
    control = chain.control
    before = time_of(chain, control.mine())
    number = control.snapshot()
    control.set_next_time(before + 10**6)
    assert control.revert(number)
    assert time_of(chain, control.mine()) < before + 10**5


def test_time_does_not_go_back(chain: EmbeddedChain) -> None:
    with pytest.raises(ValueNotAllowed, match="lower than or equal to the previous"):
        chain.control.set_next_time(time_of(chain, chain.reads.latest_height()))


def test_time_does_not_go_where_no_block_can_follow(chain: EmbeddedChain) -> None:
    control = chain.control
    for ahead in (
        lambda: control.shift(10_000_000_000),
        lambda: control.set_time(10_000_000_000),
        lambda: control.set_next_time(10_000_000_000),
        lambda: control.mine(2, step=10_000_000_000),
    ):
        with pytest.raises(ValueNotAllowed, match="timestamp: expected at most"):
            ahead()
    before = time_of(chain, chain.reads.latest_height())
    assert before < time_of(chain, control.mine()) < before + 100


def test_mined_blocks_can_be_a_given_step_apart(chain: EmbeddedChain) -> None:
    last = chain.control.mine(4, step=600)
    assert [time_of(chain, last - n) - time_of(chain, last - n - 1) for n in range(3)] == [
        600
    ] * 3


def test_accounts_are_changed_in_a_block_of_the_chain(chain: EmbeddedChain) -> None:
    height = chain.reads.latest_height()
    change = AccountOverride(balance=5, nonce=7, code=b"\x60\x00", state_diff={SLOT: WORD})
    chain.control.include(patch_tx(Change(overrides={SOMEBODY: change})))
    found = account(chain, SOMEBODY)
    assert (found.balance, found.nonce) == (5, 7)
    assert accounts.storage(EVM_STATE.of(chain).record, found.storage_root, SLOT) == 9
    assert chain.reads.latest_height() == height + 1
    chain.control.include(patch_tx(Change(overrides={SOMEBODY: AccountOverride(balance=6)})))
    assert account(chain, SOMEBODY).nonce == 7
    chain.store.verify()


def test_a_change_by_hand_leaves_waiting_transactions_for_the_next_block(
    chain: EmbeddedChain,
) -> None:
    number = chain.control.snapshot()
    assert chain.mempool.submit(transfer(account(chain, sender()).nonce)).code == 0
    chain.control.include(patch_tx(Change(overrides={SOMEBODY: AccountOverride(balance=8)})))
    assert chain.mempool.pending_count().total == 1
    assert len(chain.reads.block(chain.reads.latest_height())[1].txs) == 1
    chain.control.mine()
    assert chain.mempool.pending_count().total == 0
    assert chain.control.revert(number)


def test_a_change_that_loses_the_lease_is_not_applied_later(chain: EmbeddedChain) -> None:
    before = account(chain, SOMEBODY)
    with closing(made(chain.store.location.path, dev=True)) as other:
        chain.control.mine()
        with pytest.raises(LeaseLost):
            other.control.include(
                patch_tx(Change(overrides={SOMEBODY: AccountOverride(balance=99)}))
            )
    chain.control.mine()
    assert account(chain, SOMEBODY) == before


def test_a_production_chain_drops_development_transactions(tmp_path: Path) -> None:
    path = str(tmp_path / "chain.db")
    unsigned = encode_unsigned(SOMEBODY, replace(decode(transfer(0)), value=0))
    change = patch_tx(Change(overrides={SOMEBODY: AccountOverride(balance=10**20)}))
    with closing(made(path, dev=True)) as chain:
        chain.start()
        chain.control.include(
            patch_tx(Change(overrides={SOMEBODY: AccountOverride(balance=10**19)}))
        )
        for tx in (unsigned, change):
            assert chain.mempool.submit_local(tx, replaces=True).code == 0
    with closing(made(path, dev=False)) as chain:
        height = chain.produce()
        assert chain.reads.block(height)[1].txs == ()
        assert chain.mempool.pending_count().total == 0
        assert account(chain, SOMEBODY) == Account(balance=10**19)


@pytest.mark.sqlite
def test_revert_restores_the_chain(chain: EmbeddedChain) -> None:
    control = chain.control
    nonce = account(chain, sender()).nonce
    before, height = dump(chain.store.location.path), chain.reads.latest_height()
    number = control.snapshot()
    chain.mempool.submit(transfer(nonce))
    control.mine(2)
    control.include(patch_tx(Change(overrides={SOMEBODY: AccountOverride(balance=10**9)})))
    assert account(chain, sender()).nonce == nonce + 1
    assert dump(chain.store.location.path) != before

    assert control.revert(number)

    assert dump(chain.store.location.path) == before
    assert chain.reads.latest_height() == height
    assert account(chain, sender()).nonce == nonce
    chain.store.verify()


def test_reverted_transactions_can_be_sent_again(chain: EmbeddedChain) -> None:
    control = chain.control
    nonce = account(chain, sender()).nonce
    for _ in range(2):
        number = control.snapshot()
        assert chain.mempool.submit(transfer(nonce)).code == 0
        control.mine()
        assert account(chain, sender()).nonce == nonce + 1
        assert control.revert(number)
    chain.store.verify()


def test_revert_drops_pending_transactions_that_became_invalid(chain: EmbeddedChain) -> None:
    control = chain.control
    nonce = account(chain, sender()).nonce
    number = control.snapshot()
    control.include(
        patch_tx(Change(overrides={sender(OTHER): AccountOverride(balance=10**22)}))
    )
    chain.mempool.submit(transfer(0, OTHER))
    assert control.revert(number)
    assert chain.mempool.pending_count().total == 0
    assert account(chain, sender()).nonce == nonce


def test_a_snapshot_is_used_once_and_ends_those_after_it(chain: EmbeddedChain) -> None:
    control = chain.control
    first, second = control.snapshot(), control.snapshot()
    assert control.revert(first)
    assert not control.revert(second)
    assert not control.revert(first)
    assert not control.revert(10**6)


def test_a_revert_to_a_frozen_mempool_never_lets_a_block_take_transactions(
    chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = chain.control
    control.freeze(True)
    number = control.snapshot()
    control.freeze(False)
    frozen: list[bool] = []
    monkeypatch.setattr(type(control), "freeze", lambda _, on: frozen.append(on))

    assert control.revert(number)

    assert frozen
    assert all(frozen)


def test_no_more_than_10_000_snapshots_are_held(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "chain.db")) as chain:
        first = chain.control.snapshot()
        for _ in range(9_999):
            chain.control.snapshot()

        with pytest.raises(Busy, match="revert to one, which deletes it"):
            chain.control.snapshot()

        assert chain.control.revert(first)
        assert chain.control.snapshot() == first + 10_000


def test_a_reset_reverts_the_chain_to_its_genesis(chain: EmbeddedChain) -> None:
    chain.control.reset()
    assert chain.reads.latest_height() == 0
    assert account(chain, sender()) == Account(balance=10**22)
    assert chain.control.mine(2) == 2
    chain.store.verify()


def test_other_chains_are_not_driven_by_hand(tmp_path: Path) -> None:
    with (
        closing(EmbeddedChain(tmp_path / "chain.db")) as chain,
        pytest.raises(NotSupported, match="NODERPC_DEV"),
    ):
        _ = chain.control


@pytest.mark.parametrize("seconds", [1 << 34, 1 << 40, 1 << 300])
def test_time_ends_before_the_numbers_of_the_store_do(
    chain: EmbeddedChain, seconds: int
) -> None:
    control = chain.control
    before = control.shift(0)
    for change in (
        lambda: control.shift(seconds),
        lambda: control.set_time(seconds),
        lambda: control.set_next_time(seconds),
        lambda: control.mine(time=seconds),
        lambda: control.mine(2, step=seconds),
    ):
        with pytest.raises(ValueNotAllowed, match="timestamp: expected at most 91"):
            change()
    assert control.shift(0) - before < 60
    control.mine()


def test_the_process_that_makes_the_blocks_is_driven_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with closing(opened(path)) as first, closing(opened(path)) as second:
        first.control.mine()
        control = second.control
        for drive in (
            control.mine,
            control.snapshot,
            lambda: control.revert(1),
            control.reset,
            lambda: control.shift(5),
            lambda: control.set_time(5_000_000_000),
            lambda: control.set_next_time(5_000_000_000),
            lambda: control.set_interval(1),
            lambda: control.set_automine(True),
            lambda: control.include(
                patch_tx(Change(overrides={SOMEBODY: AccountOverride(balance=5)}))
            ),
        ):
            with pytest.raises(LeaseLost, match=r"another process .*produces blocks"):
                drive()
        # A mempool on any host asks this before it accepts a transaction.
        assert not control.automines()
        assert second.mempool.pending_count().total == 0


def test_a_snapshot_of_reverted_blocks_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with closing(opened(path)) as first, closing(opened(path)) as second:
        first.control.mine(2)
        number = first.control.snapshot()
        first.block_scheduler().stop()
        second.control.reset()
        second.control.mine()
        second.block_scheduler().stop()
        assert not first.control.revert(number)
        assert first.control.mine() == 2
        first.store.verify()


def test_a_balance_overflow_does_not_halt_the_chain(chain: EmbeddedChain) -> None:
    control = chain.control
    nonce = account(chain, sender()).nonce
    control.include(patch_tx(Change(overrides={SOMEBODY: AccountOverride(balance=2**256 - 1)})))
    to = f"0x{SOMEBODY.hex()}"
    assert chain.mempool.submit(transfer(nonce, to=to, value=5)).code == 0
    assert chain.reads.block(control.mine())[1].txs
    assert account(chain, SOMEBODY).balance == 4


def test_a_crash_before_blocks_are_stored_loses_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = opened(tmp_path / "chain.db")
    chain.control.mine()
    append = SQLiteBackend.append_block

    def full(self: Any, *blocks: Any, **more: Any) -> None:
        if len(blocks) > 1:
            raise OSError("no space left on device")
        append(self, *blocks, **more)

    with monkeypatch.context() as patched:
        patched.setattr(SQLiteBackend, "append_block", full)
        with pytest.raises(OSError, match="no space"):
            chain.control.mine(30)
    height = chain.reads.latest_height()
    chain.close()
    # The start would fail if the key's record were ahead of the stored blocks.
    again = opened(tmp_path / "chain.db")
    try:
        assert again.control.mine(30) == height + 30
    finally:
        again.close()
