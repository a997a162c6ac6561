"""Threads that work the same under plain threads and under gevent.

The one module that knows gevent. It is never imported from here: when the host
has patched the standard library, gevent is loaded already.
"""

from __future__ import annotations

import os
import queue
import select
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from gevent.threadpool import ThreadPool

T = TypeVar("T")


def is_patched() -> bool:
    """Whether gevent has replaced the blocking parts of the standard library."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


_PATCHED_FIRST = is_patched()


def is_patched_late() -> bool:
    """Whether locks may have been made before gevent replaced them: they stop the hub."""
    return is_patched() and not _PATCHED_FIRST


# libev: of what is due in one iteration of the loop, each is called once. With this priority
# gevent.idle() comes back in the next one.
_IN_EACH_ITERATION = 2


def next_turn() -> None:
    """Let other threads run, or other greenlets and those whose socket is ready.

    gevent's ``sleep(0)`` comes back before sockets are looked at, up to fifty times.
    """
    if is_patched():
        from gevent import idle

        idle(_IN_EACH_ITERATION)
    else:
        time.sleep(0)


def has_input(sock: socket.socket) -> bool:
    """Return true if reading from a socket would not wait."""
    if isinstance(sock, ssl.SSLSocket) and sock.pending():
        return True
    poll = select.poll
    if is_patched():
        from gevent.monkey import get_original

        # gevent's own runs the hub, also for no time at all.
        poll = get_original("select", "poll")
    looking = poll()
    try:
        looking.register(sock, select.POLLIN)
    except ValueError:
        # Shut meanwhile, as a read says.
        return True
    return bool(looking.poll(0))


def native_lock() -> threading.Lock:
    """A lock between real threads, for short moments: under gevent it stops the hub."""
    if is_patched():
        from gevent.monkey import get_original

        lock: threading.Lock = get_original("_thread", "allocate_lock")()
        return lock
    return threading.Lock()


class _Promise(Protocol):
    def get(self) -> object: ...

    def wait(self, timeout: float | None = None) -> object: ...


class _Runner(Protocol):
    def spawn(self, job: Callable[[], None]) -> _Promise: ...

    def stop(self) -> None: ...


class _Kept(Generic[T]):
    """A job and what became of it; gevent's threads print what a job raises."""

    def __init__(self, job: Callable[[], T]) -> None:
        self._job = job
        self._values: list[T] = []
        self._error: BaseException | None = None

    def work(self) -> None:
        try:
            self._values.append(self._job())
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        if self._error is not None:
            try:
                raise self._error
            finally:
                # Its traceback holds this frame, which holds it.
                self._error = None
        return self._values[0]


class Begun(Generic[T]):
    """A job that a thread was given."""

    def __init__(self, promise: _Promise, kept: _Kept[T]) -> None:
        self._promise = promise
        self._kept = kept

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is done, or so long."""
        self._promise.wait(seconds)

    def result(self) -> T:
        """Its result, once it is done; what it raises is raised here."""
        self._promise.get()
        return self._kept.result()


class NativeThread:
    """One real thread that runs functions for others, one after another.

    The caller waits for its result; under gevent only its greenlet waits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._runner: _Runner | None = None

    def run(self, job: Callable[[], T]) -> T:
        """The job's result; what it raises is raised here."""
        return self.begin(job).result()

    def begin(self, job: Callable[[], T]) -> Begun[T]:
        """Have a job done, behind those before it."""
        kept = _Kept(job)
        with self._lock:
            if self._runner is None:
                self._runner = _GeventRunner() if is_patched() else _ThreadRunner(self._name)
            # Handed over before another can stop the runner: a job that comes after the
            # end would be waited for in vain.
            promise = self._runner.spawn(kept.work)
        return Begun(promise, kept)

    def stop(self) -> None:
        """Need the thread no more, once its jobs are done."""
        with self._lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.stop()


# Of the main thread's hub, whose greenlets alone may use them.
_kept_pools: list[ThreadPool] = []


class _GeventRunner:
    """A thread of gevent's pools; that of the main thread's hub is kept for the next owner.

    gevent calls a thread gone while it still takes itself apart, and an interpreter that ends
    in that moment may crash or hang.
    """

    def __init__(self) -> None:
        from gevent.hub import get_hub
        from gevent.threadpool import ThreadPool

        hub = get_hub()
        for pool in tuple(_kept_pools):
            # A fork leaves the thread behind.
            if pool.hub is hub and pool.pid == os.getpid() and not len(pool):
                _kept_pools.remove(pool)
                self._pool = pool
                return
        self._pool = ThreadPool(1)

    def spawn(self, job: Callable[[], None]) -> _Promise:
        promise: _Promise = self._pool.spawn(job)
        return promise

    def stop(self) -> None:
        if self._pool.pid != os.getpid():
            return
        if self._pool.hub.main_hub:
            _kept_pools.append(self._pool)
        else:
            self._pool.kill()


class _Done(threading.Event):
    """Asked as gevent's results are."""

    def get(self) -> None:
        self.wait()


class _ThreadRunner:
    """A daemon thread with a queue.

    ThreadPoolExecutor would do, but it refuses work at interpreter exit, when a producer
    still has its lease to give back.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None], _Done] | None]
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def spawn(self, job: Callable[[], None]) -> _Promise:
        done = _Done()
        self._jobs.put((job, done))
        return done

    def stop(self) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            job()
            done.set()
            # An idle thread must not keep the last result alive.
            del item, job, done
