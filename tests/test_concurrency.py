"""Tests of the native thread: order, errors, and a stop that leaves no caller waiting."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from flask_noderpc import concurrency
from flask_noderpc.concurrency import NativeThread, is_patched, usable_cores
from tests.helpers.until import PATIENCE


@pytest.fixture
def thread() -> Iterator[NativeThread]:
    made = NativeThread("worker")
    yield made
    made.stop()


def test_a_job_runs_on_the_named_thread(thread: NativeThread) -> None:
    names = [thread.run(lambda: threading.current_thread().name) for _ in range(2)]

    assert names == ["worker", "worker"]


def test_the_thread_is_the_same_for_every_caller(thread: NativeThread) -> None:
    found: list[int] = []
    callers = [
        threading.Thread(target=lambda: found.append(thread.run(threading.get_ident)))
        for _ in range(5)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENCE)

    assert len(found) == 5
    assert len(set(found)) == 1


def test_a_jobs_exception_reaches_its_caller_and_the_thread_survives(
    thread: NativeThread,
) -> None:
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        thread.run(fail)

    assert thread.run(lambda: 5) == 5


def test_a_stopped_thread_starts_again_when_it_is_used(thread: NativeThread) -> None:
    first = thread.run(threading.current_thread)

    thread.stop()
    thread.stop()
    second = thread.run(threading.current_thread)

    assert first is not second
    first.join(PATIENCE)
    assert not first.is_alive()


def test_a_stop_strands_no_caller(thread: NativeThread) -> None:
    done: list[int] = []

    def call() -> None:
        done.extend(thread.run(threading.get_ident) for _ in range(300))

    callers = [threading.Thread(target=call, daemon=True) for _ in range(4)]
    for caller in callers:
        caller.start()
    while any(caller.is_alive() for caller in callers) and len(done) < 1200:
        thread.stop()
    for caller in callers:
        caller.join(PATIENCE)

    assert len(done) == 1200


def test_nothing_is_patched_without_gevent() -> None:
    assert not is_patched()


UNDER_GEVENT = """
from gevent import monkey
monkey.patch_all()
import threading
import gevent
from gevent.threadpool import ThreadPool
from flask_noderpc.concurrency import NativeThread, is_patched, native_lock

assert type(native_lock()) is not type(threading.Lock())
assert is_patched()
thread = NativeThread("worker")
ident = monkey.get_original("threading", "get_ident")
assert thread.run(ident) == thread.run(ident) != ident()

# Two at once are two threads. One that is not needed waits for the next who needs one: by the
# kernel's name for it, since get_ident is reused when a thread has ended.
native = monkey.get_original("_thread", "get_native_id")
first, other = thread.run(native), NativeThread("other")
assert other.run(native) != first
other.stop()
seen = set()
for number in range(100):
    short = NativeThread("short")
    seen.add(short.run(native))
    short.stop()
    gevent.sleep(0)
assert first not in seen and len(seen) < 50, len(seen)

sleep = monkey.get_original("time", "sleep")
# The hub goes on while the thread waits for it.
ticked = monkey.get_original("_thread", "allocate_lock")()
ticked.acquire()
def tick():
    for _ in range(5):
        gevent.sleep(0.001)
    ticked.release()
ticking = gevent.spawn(tick)
assert thread.run(lambda: ticked.acquire(True, 60))

# From the hub, where nothing may wait, while the thread is at work.
stopped = []
def stop():
    thread.stop()
    stopped.append(True)
at_work = gevent.spawn(thread.run, lambda: sleep(0.1) or "done")
gevent.sleep(0)
gevent.get_hub().loop.run_callback(stop)
assert at_work.get(timeout=120) == "done" and stopped

try:
    thread.run(lambda: 1 // 0)
except ZeroDivisionError:
    pass
else:
    raise AssertionError("nothing was raised")

done = []
def call():
    for number in range(50):
        done.append(thread.run(lambda: number))
callers = [gevent.spawn(call) for _ in range(4)]
for _ in range(20):
    gevent.sleep(0)
    thread.stop()
gevent.joinall(callers, timeout=120)
print(len(done))
thread.stop()
"""


OTHER_HUBS = """
from gevent import monkey
monkey.patch_all()
import os
import gevent, gevent.threadpool
from flask_noderpc.concurrency import NativeThread
# Two hubs that are made at once may load gevent's modules crosswise, and wait for ever.
gevent.sleep(0)
begin = monkey.get_original("_thread", "start_new_thread")
def threads():
    return len(os.listdir("/proc/self/task"))
def use():
    thread = NativeThread("worker")
    thread.run(threads)
    thread.stop()
    gevent.get_hub().destroy(True)
    ended.append(1)
ended = []
for number in range(1, 21):
    begin(use, ())
    while len(ended) < number:
        gevent.sleep(0.001)
with gevent.Timeout(120):
    while threads() > 1:
        gevent.sleep(0.001)
print("ended")
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_threads_of_other_hubs_end() -> None:
    made = subprocess.run(
        [sys.executable, "-c", OTHER_HUBS], capture_output=True, text=True, timeout=PATIENCE
    )

    assert (made.stdout, made.returncode) == ("ended\n", 0), made.stderr


def test_under_gevent_only_the_calling_greenlet_waits() -> None:
    made = subprocess.run(
        [sys.executable, "-c", UNDER_GEVENT], capture_output=True, text=True, timeout=PATIENCE
    )

    assert (made.stdout, made.returncode) == ("200\n", 0), made.stderr


NEXT_TURN = """
from gevent import monkey; monkey.patch_all()
import socket, threading
from flask_noderpc.concurrency import next_turn
ours, theirs = socket.socketpair()
read = []
threading.Thread(target=lambda: read.append(theirs.recv(1)), daemon=True).start()
next_turn()
ours.send(b"x")
for _ in range(2):
    next_turn()
print(read)
"""


def test_next_turn_polls_sockets() -> None:
    made = subprocess.run(
        [sys.executable, "-c", NEXT_TURN], capture_output=True, text=True, timeout=PATIENCE
    )

    assert (made.stdout, made.returncode) == ("[b'x']\n", 0), made.stderr


IMPORTED = "from flask_noderpc import EmbeddedChain"
PATCHED = "from gevent import monkey; monkey.patch_all()"
STARTED = "import sys; chain = EmbeddedChain(sys.argv[1]); chain.start(); chain.close()"


@pytest.mark.parametrize(
    ("lines", "warns"), [((IMPORTED, PATCHED), True), ((PATCHED, IMPORTED), False)]
)
def test_a_chain_warns_of_gevent_that_came_after_it(
    tmp_path: Path, lines: tuple[str, ...], warns: bool
) -> None:
    script = "\n".join((*lines, STARTED))
    made = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "chain.db")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert made.returncode == 0, made.stderr
    assert ("call gevent.monkey.patch_all() first" in made.stderr) == warns


@pytest.mark.parametrize(
    ("quota", "most"), [("max 100000", None), ("50000 100000", 1), ("150000 100000", 2)]
)
def test_a_containers_quota_limits_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, most: int | None
) -> None:
    file = tmp_path / "cpu.max"
    monkeypatch.setattr(concurrency, "_QUOTA_FILE", str(file))
    cores = usable_cores()
    file.write_text(f"{quota}\n")

    assert usable_cores() == (cores if most is None else min(cores, most))
