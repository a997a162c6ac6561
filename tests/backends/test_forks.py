"""Tests that a fork of a process with an open store can use it, and so can its parent."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from tests.helpers.until import PATIENCE


def run(program: str, *words: object) -> tuple[str, str, int]:
    made = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return made.stdout, made.stderr, made.returncode


FORK = """
import os, sys, threading
from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.chains import ChainMaker

maker = ChainMaker((10,))
backend = SQLiteBackend(sys.argv[1])
backend.init_chain(maker.genesis, maker.state)
backend.append_block(maker.block(b"parent=1"))
block = maker.block(b"child=1")
pid = os.fork()
if pid == 0:
    try:
        assert backend.verify() == 1
        backend.append_block(block)
        assert backend.verify() == 2
        if sys.argv[2] == "closes":
            backend.close()
    except BaseException as error:
        print("child:", repr(error), flush=True)
        os._exit(1)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert backend.reads.latest_height() == 2
backend.append_block(maker.block(b"parent=2"))
print(backend.verify())
backend.close()
"""


@pytest.mark.parametrize("child", ["closes", "leaves"])
def test_a_forked_child_works_and_its_parent_goes_on(path: Path, child: str) -> None:
    assert run(FORK, path, child) == ("3\n", "", 0)


UNUSED = """
import os, sys
from flask_noderpc import SQLiteBackend

backend = SQLiteBackend(sys.argv[1])
assert backend.reads.latest_height() == 0
pid = os.fork()
if pid == 0:
    backend.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(backend.reads.latest_height())
backend.close()
"""


def test_a_forked_child_that_only_closes_does_no_harm(path: Path) -> None:
    assert run(UNUSED, path) == ("0\n", "", 0)


LEFT_ALONE = """
import os, sys
from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.chains import ChainMaker

maker = ChainMaker((10,))
backend = SQLiteBackend(sys.argv[1])
backend.init_chain(maker.genesis, maker.state)
backend.append_block(maker.block(b"parent=1"))
blocks = [maker.block(b"child=1"), maker.block(b"child=2")]
written, closed = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    backend.append_block(blocks[0])
    os.write(written[1], b"x")
    os.read(closed[0], 1)
    backend.append_block(blocks[1])
    os._exit(0 if backend.verify() == 3 else 1)
os.read(written[0], 1)
backend.close()
os.write(closed[1], b"x")
assert os.waitpid(pid, 0)[1] == 0
print(backend.verify())
backend.close()
"""


def test_writes_of_a_forked_child_survive_the_parents_close(path: Path) -> None:
    assert run(LEFT_ALONE, path) == ("3\n", "", 0)


BUSY = """
import os, sys
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.block_scheduler import BlockSchedule

chain = EmbeddedChain(sys.argv[1], schedule=BlockSchedule(0.001, empty_blocks=True, lease_s=2))
chain.start()
chain.reads.wait_for_height(2, 120)
for number in range(12):
    pid = os.fork()
    if pid == 0:
        try:
            chain.start()
            chain.mempool.submit(b"child%d=here" % number)
            height = chain.reads.latest_height()
            assert chain.reads.wait_for_height(height, 120) > height
            chain.close()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
height = chain.reads.latest_height()
chain.reads.wait_for_height(height, 120)
chain.close()
found = chain.application.query("", b"child11", 0, False).value
print(found.decode(), chain.store.verify() > height)
chain.close()
"""


def test_children_forked_during_block_production_can_write(path: Path) -> None:
    assert run(BUSY, path) == ("here True\n", "", 0)


# Python 3.12 warns about threads at a fork, which this test is about.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_waits_for_the_write_at_hand(store: SQLiteBackend) -> None:
    began, resume, forked = threading.Event(), threading.Event(), threading.Event()

    def hold(at: sqlite3.Connection) -> None:
        began.set()
        resume.wait(PATIENCE)

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        forked.set()

    writer = threading.Thread(target=store._open().writer.run, args=(hold,))
    writer.start()
    began.wait(PATIENCE)
    forker = threading.Thread(target=fork)
    forker.start()

    assert not forked.wait(0.1)
    resume.set()
    assert forked.wait(PATIENCE)
    writer.join(PATIENCE)
    forker.join(PATIENCE)


READING = """
import os, sys, threading
from flask_noderpc import NodeRPCError, SQLiteBackend
from flask_noderpc.backends.sqlite import handles as module
from flask_noderpc.testing.chains import ChainMaker

module._FORK_PATIENCE_S = float(sys.argv[2])
maker = ChainMaker((10,))
backend = SQLiteBackend(sys.argv[1])
backend.init_chain(maker.genesis, maker.state)
backend.append_block(maker.block(b"parent=1"))
began, resume = threading.Event(), threading.Event()

def read():
    with backend._open().readers.snapshot() as at:
        began.set()
        resume.wait(float(sys.argv[3]))
        # A read within a read goes on while a fork waits.
        assert backend.reads.latest_height() == 1

reader = threading.Thread(target=read)
reader.start()
began.wait(120)
block = maker.block(b"child=1")
pid = os.fork()
if pid == 0:
    try:
        backend.append_block(block)
        print(backend.reads.latest_height(), flush=True)
    except NodeRPCError as error:
        print(error.reason, flush=True)
    os._exit(0)
resume.set()
reader.join()
os.waitpid(pid, 0)
print(backend.verify())
backend.close()
"""


def test_a_fork_waits_for_reads_that_are_under_way(path: Path) -> None:
    assert run(READING, path, 30, 0.1) == ("2\n2\n", "", 0)


def test_a_child_forked_during_a_read_raises_a_clear_error(path: Path) -> None:
    out, err, code = run(READING, path, 0.1, 30)

    assert out.startswith("this process was forked while the store was in use")
    assert (out.splitlines()[-1], err, code) == ("1", "", 0)


CROWDED = """
import os, signal, sys, threading
from flask_noderpc import SQLiteBackend
from flask_noderpc.domain.search import SearchLimits, Search, Term, Page
from flask_noderpc.testing.chains import ChainMaker

maker = ChainMaker((10,))
backend = SQLiteBackend(sys.argv[1])
backend.init_chain(maker.genesis, maker.state)
backend.append_block(maker.block(b"parent=1"))
sys.setswitchinterval(1e-5)
wanted = Search((Term("app.key", contains="p"),))

def search():
    while True:
        backend.reads.search_txs(wanted, Page(0, 1), SearchLimits(100.0))

def read():
    while True:
        backend.reads.latest_height()

for work in (search, search, search, search, read, read):
    threading.Thread(target=work, daemon=True).start()
for number in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        signal.alarm(120)
        found = backend.reads.search_txs(wanted, Page(0, 1), SearchLimits(100.0)).total
        os._exit(0 if found == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0, number
print("done", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("forks", [20, pytest.param(100, marks=pytest.mark.integration)])
def test_forks_among_many_reads_and_searches_are_quick_and_whole(
    path: Path, forks: int
) -> None:
    assert run(CROWDED, path, forks) == ("done\n", "", 0)
