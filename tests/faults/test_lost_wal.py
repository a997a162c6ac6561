"""Kill ``noderpc start`` with SIGKILL, and cut the WAL at a random byte: the next start reports
the missing blocks, and signs none of them again."""

from __future__ import annotations

import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.chain import home
from flask_noderpc.chain.validator_keys import read_record
from tests.helpers.until import until

from ..server.node_process import Node, refusal, started
from .processes import is_long

KILLS = 30 if is_long() else 2
FLAGS: tuple[str, ...] = ("--block-interval", "0.02", "--empty-blocks")


def signed_height(folder: Path) -> int:
    found = read_record(folder / "data" / "priv_validator_state.json")
    assert found is not None
    return found.height


def run_until_killed(node: Node, folder: Path, randomness: random.Random) -> None:
    node.until_up()
    enough = signed_height(folder) + 6 + randomness.randrange(20)
    until(lambda: signed_height(folder) > enough, "some blocks are signed")
    node.kill()


def checkpointed(wal: Path) -> int:
    """Return the number of the WAL's bytes that are already in the database file.

    Cutting those would leave pages of two times in the file, as no crash does.
    """
    # SQLite's walformat.html describes the checkpoint info after the header of the WAL index:
    # frames that are in the file, and frames whose copying had begun.
    index = wal.with_name(wal.name.removesuffix("wal") + "shm").read_bytes()
    frames = max(int.from_bytes(index[at : at + 4], sys.byteorder) for at in (96, 128))
    page = int.from_bytes(wal.read_bytes()[8:12])
    return 32 + frames * (24 + page)


def cut_wal(database: Path, randomness: random.Random) -> int:
    """Cut the WAL at a random byte; return the height that is left."""
    wal = database.with_name(f"{database.name}-wal")
    size, least = wal.stat().st_size, checkpointed(wal)
    # Mostly cut near the end, where the last blocks are.
    keep = randomness.choice((randomness.randrange(size), size - randomness.randrange(1 << 15)))
    with wal.open("r+b") as file:
        file.truncate(max(least, keep))
    store = SQLiteBackend(database)
    try:
        return store.reads.latest_height()
    finally:
        store.close()


@pytest.mark.parametrize("development", [False, True])
def test_the_next_start_says_how_many_blocks_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], development: bool
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    folder, saved = tmp_path / "home", tmp_path / "saved"
    home.create(folder, None, time.time_ns(), development=development)
    database = folder / "data" / "noderpc.db"
    flags, lost = FLAGS, 0

    for number in range(KILLS):
        with started(folder, *flags, log=f"{number}.log") as node:
            run_until_killed(node, folder, randomness)
        if "--accept-loss" in flags:
            assert "--accept-loss: blocks" in node.log.read_text()
        flags = FLAGS
        shutil.rmtree(saved, ignore_errors=True)
        shutil.copytree(folder, saved)
        signed, head = signed_height(folder), cut_wal(database, randomness)
        if signed <= head + 1:
            continue
        lost += 1
        said = refusal("--home", str(folder), *FLAGS)
        assert f"blocks {head + 1} to {signed} are missing ({signed - head}; " in said
        assert "Traceback" not in said
        assert signed_height(folder) == signed
        if development:
            flags = (*FLAGS, "--accept-loss")
            continue
        assert "--accept-loss is for" in refusal("--home", str(folder), *FLAGS, "--accept-loss")
        assert signed_height(folder) == signed
        # Restore the lost blocks.
        shutil.rmtree(folder)
        saved.rename(folder)

    with started(folder, *flags, log="last.log") as node:
        node.until_up()
        before = node.height()
        until(lambda: node.height() > before, "another block")
        assert node.end(signal.SIGTERM) == 0
    store = SQLiteBackend(database)
    try:
        assert store.verify() == store.reads.latest_height()
    finally:
        store.close()
    with capsys.disabled():
        print(f" [{KILLS} kills, {lost} with lost blocks, seed {seed}]", end=" ")
