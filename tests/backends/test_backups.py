"""Tests of backups, forks, and many threads on one backend."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite import copies
from flask_noderpc.errors import StoreError
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.helpers.until import PATIENCE

from .conftest import OpenStore

pytestmark = pytest.mark.sqlite


def test_a_read_view_belongs_to_one_thread_and_ends(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    store.append_block(maker.block())
    with store.reads.read_view() as then:
        store.append_block(maker.block())
        assert (
            store.reads.latest_height(),
            store.reads.block_metas(1, 9)[0].header.height,
        ) == (1, 1)
        with store.reads.read_view() as again:
            assert again == then
        assert store.reads.latest_height() == 1
        assert store.reads.version() != then
        with ThreadPoolExecutor(1) as others:
            assert others.submit(store.reads.latest_height).result(PATIENCE) == 2
    assert store.reads.latest_height() == 2


def test_a_backup_during_writes_is_a_consistent_chain(
    store: SQLiteBackend, open_store: OpenStore, maker: ChainMaker, tmp_path: Path
) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            store.append_block(maker.block(b"height=%d" % maker.head.height))

    writer = threading.Thread(target=write)
    writer.start()
    copies = []
    for number in range(5):
        store.reads.wait_for_height(number * 3, PATIENCE)
        copies.append(tmp_path / f"copy{number}.db")
        store.backup(copies[-1])
    stop.set()
    writer.join(PATIENCE)

    heights = [open_store(copy).verify() for copy in copies]

    assert heights == sorted(heights)
    assert heights[-1] >= 13
    assert store.verify() == maker.head.height


def test_a_stepwise_backup_is_one_snapshot(
    store: SQLiteBackend,
    open_store: OpenStore,
    maker: ChainMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The backup does not start again when another process writes between two steps, and that
    process need not wait."""
    monkeypatch.setattr(copies, "_COPIED_PAGES", 4)
    store.append_block(*(maker.block(b"k%d=v" % number) for number in range(20)))
    other = open_store()
    left: list[int] = []

    def write(remaining: int, total: int) -> None:
        left.append(remaining)
        if len(left) < 20:
            other.append_block(maker.block(b"more%d=v" % remaining))

    store.backup(tmp_path / "copy.db", write)

    assert len(left) > 10
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert other.reads.latest_height() > 30
    assert open_store(tmp_path / "copy.db").verify() == 20


def test_a_backup_is_one_file_that_is_served_where_nothing_can_be_written(
    full: SQLiteBackend, open_store: OpenStore, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    full.backup(folder / "copy.db")
    folder.chmod(0o500)

    copy = open_store(f"{(folder / 'copy.db').as_uri()}?mode=ro")

    status = app_for(copy).test_client().get("/status").get_json()["result"]["sync_info"]
    assert status["latest_block_height"] == "10"
    assert copy.verify() == 10
    folder.chmod(0o700)
    assert [path.name for path in folder.iterdir()] == ["copy.db"]


def test_a_backup_can_be_continued_as_a_separate_chain(
    store: SQLiteBackend, open_store: OpenStore, maker: ChainMaker, tmp_path: Path
) -> None:
    store.append_block(maker.block(b"a=1"))
    store.backup(tmp_path / "copy.db")

    copy = open_store(tmp_path / "copy.db")
    copy.append_block(maker.block(b"b=2"))

    assert copy.verify() == 2
    assert store.verify() == 1


def test_a_backup_never_overwrites(store: SQLiteBackend, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("precious")

    with pytest.raises(StoreError, match="there: the file exists already"):
        store.backup(tmp_path / "there")

    assert (tmp_path / "there").read_text() == "precious"


def test_a_backup_to_nowhere_names_its_target(store: SQLiteBackend, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere.copy\.db: the file can't be opened"):
        store.backup(tmp_path / "nowhere" / "copy.db")


def test_a_backend_may_be_closed_while_threads_read(
    full: SQLiteBackend, maker: ChainMaker
) -> None:
    stop = threading.Event()
    errors: list[BaseException] = []

    def read() -> None:
        while not stop.is_set():
            try:
                assert full.reads.latest_height() > 0
                assert full.reads.block(2)[1].header.height == 2
            except BaseException as error:
                errors.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        full.close()
    stop.set()
    for reader in readers:
        reader.join(PATIENCE)

    assert errors == []
    assert full.verify() == full.reads.latest_height()


def test_no_descriptor_is_left_open_after_a_close(
    open_store: OpenStore, maker: ChainMaker, path: Path
) -> None:
    backend = open_store()
    backend.init_chain(maker.genesis, maker.state)
    threads = [threading.Thread(target=backend.reads.latest_height) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    with backend._open().readers.snapshot() as at:
        at.execute("SELECT 1 FROM chain").fetchone()
        backend.close()

    names = []
    for handle in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{handle}"))
        except OSError:
            continue
    assert [name for name in names if name.startswith(str(path))] == []


def test_a_lease_holds_until_it_expires_or_is_released(store: SQLiteBackend) -> None:
    first = store.acquire_lease("one", 3600)
    assert first is not None
    assert store.acquire_lease("two", 3600) is None
    assert store.renew_lease(first, 3600)

    store.release_lease(first)
    second = store.acquire_lease("two", 0.0)

    assert second is not None
    assert second.epoch == first.epoch + 1
    assert not store.renew_lease(first, 3600)
    assert store.acquire_lease("one", 3600) is not None


def test_a_lease_given_back_late_does_not_end_another_s(store: SQLiteBackend) -> None:
    first = store.acquire_lease("one", 0.0)
    second = store.acquire_lease("two", 3600)
    assert first is not None
    assert second is not None

    store.release_lease(first)

    assert store.acquire_lease("three", 3600) is None
    assert store.renew_lease(second, 3600)
