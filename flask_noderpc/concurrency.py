"""Native threads, locks and yields that work the same with and without gevent.

The only module outside ``server`` that depends on gevent. It never imports gevent by itself: an
app that has patched the standard library has already imported it.
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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from gevent.threadpool import ThreadPool

T = TypeVar("T")


def is_patched() -> bool:
    """Return true if gevent has replaced the blocking parts of the standard library."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


_PATCHED_FIRST = is_patched()


def is_patched_late() -> bool:
    """Return true if locks may have been created before gevent patched them: such locks stop
    the hub."""
    return is_patched() and not _PATCHED_FIRST


# libev: EV_READ.
_READ = 1

# libev: one iteration of the loop calls each due watcher once. With this priority gevent.idle()
# returns in the next iteration.
_IN_EACH_ITERATION = 2


def next_turn() -> None:
    """Yield to other threads, or to other greenlets and to those whose socket is ready.

    gevent's ``sleep(0)`` returns before sockets are polled, up to fifty times.
    """
    if is_patched():
        from gevent import idle

        idle(_IN_EACH_ITERATION)
    else:
        time.sleep(0)


# Reading 200 overridden accounts, the slowest items, takes about 15 ms.
_IN_A_TURN = 200


def in_turns(items: Iterable[T]) -> Iterator[T]:
    """Yield items that take long to read, and let other requests run after each 200 of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _IN_A_TURN == 0:
            next_turn()


def has_input(sock: socket.socket) -> bool:
    """Return true if reading from a socket would not block."""
    if isinstance(sock, ssl.SSLSocket) and sock.pending():
        return True
    poll = select.poll
    if is_patched():
        from gevent.monkey import get_original

        # gevent's poll runs the hub even with a timeout of 0.
        poll = get_original("select", "poll")
    poller = poll()
    try:
        poller.register(sock, select.POLLIN)
    except ValueError:
        # Closed meanwhile: the next read raises the error.
        return True
    return bool(poller.poll(0))


def wait_until_readable(descriptor: int, seconds: float) -> bool:
    """Let other greenlets run until a socket has input; without gevent just wait.

    Return false if it has none after ``seconds``.
    """
    if not is_patched():
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(1000 * seconds))
    from gevent.hub import get_hub
    from gevent.timeout import Timeout

    hub = get_hub()
    # gevent's select and poll create many objects for a socket that is ready soon.
    watcher = hub.loop.io(descriptor, _READ)
    is_readable = False
    try:
        # With false as its exception, the timeout ends the block without an error.
        with Timeout(seconds, False):
            hub.wait(watcher)
            is_readable = True
    finally:
        watcher.close()
    return is_readable


def native_lock() -> threading.Lock:
    """Return a lock between native threads; hold it briefly: it stops gevent's hub."""
    if is_patched():
        from gevent.monkey import get_original

        lock: threading.Lock = get_original("_thread", "allocate_lock")()
        return lock
    return threading.Lock()


def in_thread(function: Callable[[], T]) -> T:
    """Return a function's result; under gevent from a thread, so that its hub continues."""
    if not is_patched():
        return function()
    from gevent.hub import get_hub

    result: T = get_hub().threadpool.apply(function)
    return result


@dataclass(frozen=True, slots=True)
class Pending(Generic[T]):
    """Work that has begun or is queued."""

    result: Callable[[], T]
    """Function that waits for the result and returns it, or raises the error of the work. Call
    it once."""
    is_done: Callable[[float], bool] = lambda seconds: True
    """Function that waits up to ``seconds`` and returns true as soon as :attr:`result` would
    not block."""


class _Done(Protocol):
    def wait(self, timeout: float | None = None) -> object:
        """Wait until the job is done or the timeout ends."""


class _Runner(Protocol):
    def spawn(self, job: Callable[[], None]) -> _Done:
        """Queue a job."""

    def stop(self) -> None:
        """End the thread once its queued jobs are done."""


class _Job(Generic[T]):
    """A job and its result or error; gevent's threads would print an error that the job
    raises."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._values: list[T] = []
        self._error: BaseException | None = None
        self.is_done = False

    def work(self) -> None:
        try:
            self._values.append(self._function())
        except BaseException as error:
            self._error = error
        self.is_done = True

    def result(self) -> T:
        if self._error is not None:
            try:
                raise self._error
            finally:
                # The error's traceback references this frame, which references the error.
                self._error = None
        return self._values[0]


class NativeThread:
    """One native thread that runs submitted functions in order.

    The caller waits for its result; under gevent only its greenlet waits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._runner: _Runner | None = None

    def run(self, job: Callable[[], T]) -> T:
        """Run a job and return its result, or raise its exception."""
        return self.begin(job).result()

    def begin(self, job: Callable[[], T]) -> Pending[T]:
        """Queue a job."""
        queued = _Job(job)
        with self._lock:
            if self._runner is None:
                self._runner = _GeventRunner() if is_patched() else _ThreadRunner(self._name)
            # Under the lock, before another thread can stop the runner: a job queued later
            # would never run.
            done = self._runner.spawn(queued.work)

        def result() -> T:
            done.wait()
            return queued.result()

        def is_done(seconds: float) -> bool:
            done.wait(seconds)
            return queued.is_done

        return Pending(result, is_done)

    def stop(self) -> None:
        """End the thread once its queued jobs are done."""
        with self._lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.stop()


# Pools of the main thread's hub; only its greenlets may use them.
_idle_pools: list[ThreadPool] = []


class _GeventRunner:
    """A thread pool of gevent with one thread; pools of the main thread's hub are reused.

    gevent reports a thread as ended while it still shuts down, and an interpreter that exits at
    that moment may crash or hang.
    """

    def __init__(self) -> None:
        from gevent.hub import get_hub
        from gevent.threadpool import ThreadPool

        hub = get_hub()
        for pool in tuple(_idle_pools):
            # A forked process does not have the thread.
            if pool.hub is hub and pool.pid == os.getpid() and not len(pool):
                _idle_pools.remove(pool)
                self._pool = pool
                return
        self._pool = ThreadPool(1)

    def spawn(self, job: Callable[[], None]) -> _Done:
        done: _Done = self._pool.spawn(job)
        return done

    def stop(self) -> None:
        if self._pool.pid != os.getpid():
            return
        if self._pool.hub.main_hub:
            _idle_pools.append(self._pool)
        else:
            self._pool.kill()


class _ThreadRunner:
    """A daemon thread with a queue.

    ThreadPoolExecutor refuses work at interpreter exit, when a producer still has to release
    its lease.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None], threading.Event] | None]
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def spawn(self, job: Callable[[], None]) -> _Done:
        done = threading.Event()
        self._jobs.put((job, done))
        return done

    def stop(self) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            job()
            done.set()
            # An idle thread must not reference the last result.
            del item, job, done
