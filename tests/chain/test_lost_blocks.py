"""Tests of a store that has lost its last blocks: the records of the validator keys show how
many."""

from __future__ import annotations

import json
import logging
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flask_noderpc.backends.base.verify import verify_chain
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.validator_keys import LastSigned, read_record
from flask_noderpc.cosmos.bank import Bank
from flask_noderpc.cosmos.bank import dev as bank
from flask_noderpc.errors import ChainHalted, ConfigurationError, LeaseLost
from tests.faults.processes import is_long
from tests.helpers.until import until

from ..cosmos.bank.bank_txs import CHAIN_ID
from .conftest import Open

# The tests cut a file's WAL.
pytestmark = pytest.mark.sqlite

BLOCKS = 8
CUTS = 300 if is_long() else 20
STATE = "data/priv_validator_state.json"


def record(folder: Path) -> LastSigned:
    found = read_record(folder / STATE)
    assert found is not None
    return found


def killed(chain: EmbeddedChain, folder: Path, cut: int | None = None) -> Path:
    """Copy the files of an open chain, as a kill leaves them, and cut its WAL."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in ("config", "data"):
        shutil.copytree(chain.home / name, folder / name)
    for name in ("chain.db", "chain.db-wal"):
        shutil.copy(chain.home / name, folder / name)
    with (folder / "chain.db-wal").open("r+b") as wal:
        wal.truncate(cut)
    return folder


@contextmanager
def reopened(folder: Path, *, accept_loss: bool = False) -> Iterator[EmbeddedChain]:
    """Start a chain that produces blocks by hand, and close it."""
    schedule = BlockSchedule(manual=True)
    chain = EmbeddedChain(folder / "chain.db", schedule=schedule, accept_loss=accept_loss)
    try:
        chain.start()
        until(lambda: has_lease(chain), "the lease of the killed process expires")
        yield chain
    finally:
        chain.close()


def has_lease(chain: EmbeddedChain) -> bool:
    try:
        chain.block_scheduler().producer.acquire_lease()
    except LeaseLost:
        return False
    return True


def head_of(folder: Path) -> int:
    """Return the latest height that is left, read by a process that only serves."""
    chain = EmbeddedChain(folder / "chain.db", produce=False)
    try:
        return chain.store.reads.latest_height()
    finally:
        chain.close()


def cuts(wal: Path) -> Iterator[int]:
    seed = random.randrange(1 << 32) if is_long() else 5
    print(f"seed {seed}")
    randomness, size = random.Random(seed), wal.stat().st_size
    yield from (0, size - 1, size)
    for _ in range(CUTS):
        yield randomness.randrange(size)


def made(open_chain: Open, *, development: bool) -> EmbeddedChain:
    # A copy can start once the lease of the killed process has expired.
    schedule = BlockSchedule(manual=True, lease_s=0.1)
    chain = open_chain(development_keys=development, schedule=schedule)
    for number in range(BLOCKS):
        chain.mempool.submit(b"key%d=value" % number)
        chain.produce()
    return chain


def assert_names(error: ConfigurationError, folder: Path, head: int) -> None:
    text = str(error)
    assert text.startswith(f"{folder}/chain.db: blocks {head + 1} to {BLOCKS} are missing")
    assert f"({BLOCKS - head}; " in text
    assert f"head of the store is block {head}" in text
    assert f"{folder / STATE} says that the validator key has signed height {BLOCKS}" in text
    for cure in ("a backup", "another host's", "--upstream", "a new key or chain ID"):
        assert cure in text
    assert "\n" not in text


@pytest.mark.parametrize("development", [False, True])
def test_a_cut_wal_stops_the_start_with_the_number_of_lost_blocks(
    open_chain: Open, tmp_path: Path, development: bool
) -> None:
    chain = made(open_chain, development=development)
    before = record(chain.home)
    refused, whole = set[int](), 0
    for cut in cuts(tmp_path / "chain.db-wal"):
        folder = killed(chain, tmp_path / "copy", cut)
        head = head_of(folder)
        if head < BLOCKS - 1:
            with pytest.raises(ConfigurationError) as caught, reopened(folder):
                pass
            assert record(folder) == before
            assert_names(caught.value, folder, head)
            assert ("--accept-loss" in str(caught.value)) == development
            refused.add(BLOCKS - head)
            continue
        with reopened(folder) as again:
            assert again.produce() == head + 1
        signed = record(folder)
        is_later = (signed.height, signed.round) > (before.height, before.round)
        # A guarded key may only sign the same block again, or a later round.
        assert development or is_later or signed == before
        whole += 1

    assert whole > 0
    assert len(refused) > 2


def lose(open_chain: Open, folder: Path, *, development: bool) -> int:
    """Leave a store whose last blocks are lost; return its head."""
    chain = made(open_chain, development=development)
    size = (chain.home / "chain.db-wal").stat().st_size
    killed(chain, folder, size // 2)
    head = head_of(folder)
    assert 0 < head < BLOCKS - 1
    return head


def test_a_development_key_goes_on_where_the_loss_is_accepted(
    open_chain: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "copy"
    head = lose(open_chain, folder, development=True)

    with reopened(folder, accept_loss=True) as chain:
        assert chain.reads.latest_height() == head
        assert record(folder).height == head
        assert chain.produce() == head + 1
        assert verify_chain(chain.reads) == head + 1
    with reopened(folder) as chain:
        assert chain.produce() == head + 2

    (warning,) = [each for each in caplog.records if "--accept-loss" in each.message]
    assert warning.levelno == logging.WARNING
    assert f"blocks {head + 1} to {BLOCKS} are missing ({BLOCKS - head})" in warning.message


def test_a_protected_key_never_signs_a_lost_height_again(
    open_chain: Open, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    head = lose(open_chain, folder, development=False)
    before = (folder / STATE).read_bytes()

    with (
        pytest.raises(ConfigurationError, match="-loss is for development keys") as caught,
        reopened(folder, accept_loss=True),
    ):
        pass

    assert_names(caught.value, folder, head)
    assert (folder / STATE).read_bytes() == before


def test_the_lost_blocks_of_a_backup_are_put_back(open_chain: Open, tmp_path: Path) -> None:
    chain = made(open_chain, development=False)
    chain.store.backup(tmp_path / "backup.db")
    folder = killed(chain, tmp_path / "copy", 0)
    with pytest.raises(ConfigurationError, match="are missing"), reopened(folder):
        pass

    for path in folder.glob("chain.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", folder / "chain.db")

    with reopened(folder) as again:
        assert again.produce() == BLOCKS + 1


def test_a_store_that_has_lost_all_names_all(open_chain: Open, tmp_path: Path) -> None:
    folder = killed(made(open_chain, development=True), tmp_path / "copy", 0)
    for path in folder.glob("chain.db*"):
        path.unlink()

    with pytest.raises(ConfigurationError) as caught, reopened(folder):
        pass
    assert_names(caught.value, folder, 0)

    with reopened(folder, accept_loss=True) as chain:
        assert chain.produce() == 1


def test_a_process_that_only_serves_starts_beside_lost_blocks(
    open_chain: Open, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    head = lose(open_chain, folder, development=True)
    chain = EmbeddedChain(folder / "chain.db", produce=False)
    try:
        assert chain.reads.latest_height() == head
        chain.start()
        with pytest.raises(ConfigurationError, match="are missing"):
            chain.produce()
    finally:
        chain.close()


# A chain that was reverted has not lost blocks.


def test_a_chain_that_went_back_starts(open_chain: Open, tmp_path: Path) -> None:
    options = {"dev": True, "application": Bank, "chain_id": CHAIN_ID}
    options |= {"app_state": bank.app_state()}
    chain = open_chain(**options)
    number = chain.control.snapshot()
    for _ in range(5):
        chain.produce()
    assert chain.control.revert(number)
    assert record(tmp_path).height == 0
    for _ in range(2):
        chain.produce()
    chain.close()

    again = open_chain(**options, produce=True, schedule=BlockSchedule(manual=True))

    assert record(tmp_path).height == 2
    assert again.produce() == 3


def test_the_cure_in_the_record_is_taken(open_chain: Open, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    head = lose(open_chain, folder, development=False)
    with pytest.raises(ConfigurationError) as caught, reopened(folder):
        pass

    cure = re.search(r"write (\{.*\}) to", str(caught.value))
    assert cure is not None
    assert json.loads(cure[1])["height"] == "0"
    (folder / STATE).write_text(cure[1])

    with reopened(folder) as chain:
        assert chain.produce() == head + 1


def test_a_height_below_the_record_is_not_signed(open_chain: Open, tmp_path: Path) -> None:
    """The next block notices that the store has lost blocks while the node was running."""
    chain = made(open_chain, development=False)
    state = chain.home / STATE
    state.write_bytes(LastSigned(BLOCKS + 5, 0, 3).document())

    with pytest.raises(ChainHalted, match=f"has already signed height {BLOCKS + 5}"):
        chain.produce()
