"""Bits that flip and pages that are torn anywhere in a store's file: each answer is as before,
or an error that says what to do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.errors import InvalidBlock, StoreError
from flask_noderpc.testing.node import app_for
from tests.faults.processes import is_long

from .conftest import OpenStore
from .eventful import Eventful, answers

BLOCKS = 24
PAGE, SECTOR = 4096, 512
DAMAGES = 400 if is_long() else 12
# Of a table that lost its last rows: the chain seems shorter, which verify notices.
FEWER = ("must be less than or equal to", "could not find", "not available", "not found")
OF_HEAD = ("blockchain?minHeight=1", "dump_consensus_state")
CURE = "restore a backup"

Answers = dict[str, tuple[int, bytes]]


def seems_shorter(store: SQLiteBackend) -> bool:
    try:
        if store.latest_height() == BLOCKS:
            return False
    except StoreError:
        return False
    with pytest.raises((InvalidBlock, StoreError)):
        store.verify()
    return True


@dataclass
class Damaged:
    """A store as it is now and was half as high, and all its answers."""

    content: bytes
    earlier: bytes
    chain: Eventful
    expected: Answers

    def variants(self, seed: int) -> Iterator[bytes]:
        """Yield the content with a bit flipped, or with a sector of before."""
        randomness = random.Random(seed)
        for number in range(DAMAGES):
            content = bytearray(self.content)
            page = randomness.randrange(len(content) // PAGE) * PAGE
            if number % 3:
                # Most of what SQLite writes for itself is at the beginning of a page.
                at = page + randomness.choice((randomness.randrange(PAGE), number % 100))
                content[at] ^= 1 << randomness.randrange(8)
            else:
                at = (page + randomness.randrange(PAGE // SECTOR) * SECTOR) % len(self.earlier)
                content[at : at + SECTOR] = self.earlier[at : at + SECTOR]
            yield bytes(content)


@pytest.fixture
def damaged(open_store: OpenStore, tmp_path: Path) -> Damaged:
    path, chain = tmp_path / "whole.db", Eventful(random.Random(7))
    contents = []
    for _ in range(2):
        store = open_store(path)
        store.init_chain(chain.maker.genesis, chain.maker.state)
        store.append_block(*chain.more(BLOCKS // 2))
        store.close()
        contents.append(path.read_bytes())
    client = app_for(open_store(path)).test_client()
    return Damaged(contents[1], contents[0], chain, dict(answers(client, 1, chain)))


def test_no_answer_is_altered(
    damaged: Damaged, open_store: OpenStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seed = random.randrange(1 << 32) if is_long() else 7
    print(f"seed {seed}")
    counts, odd = {"as before": 0, "errors": 0}, set[tuple[int, str, str]]()
    for number, content in enumerate(damaged.variants(seed)):
        path.write_bytes(content)
        store = open_store()
        client = app_for(store).test_client()
        for request, (status, body) in answers(client, 1, damaged.chain):
            if request in OF_HEAD and seems_shorter(store):
                continue
            if (status, body) == damaged.expected[request]:
                counts["as before"] += 1
                continue
            text = body.decode()
            counts["errors"] += 1
            if status == 200 or not any(each in text for each in (CURE, *FEWER)):
                odd.add((number, request, text))
        store.close()
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    print(counts)

    assert not odd
    assert counts["as before"] > counts["errors"] > 0
    assert not [record for record in caplog.records if record.exc_info]
