"""Tests of processes that run jobs: each job ends, and none affects the next."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.errors import (
    ExecutionTimedOut,
    ExecutorDied,
    ExecutorsBusy,
    InvalidTransaction,
)
from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.patches import app_state
from flask_noderpc.ethereum.application.state import EvmRuntime, ExecutionLimits
from flask_noderpc.ethereum.domain.execution import (
    NO_STORAGE,
    AccountOverride,
    Environment,
    Message,
)
from flask_noderpc.ethereum.domain.forks import CANCUN
from flask_noderpc.ethereum.engine.base import Job
from flask_noderpc.ethereum.engine.jobs import Estimate, Patch, TraceCalls, TracedCall, Tracing
from flask_noderpc.ethereum.engine.tracers.base import TracerConfig
from flask_noderpc.ethereum.engine.tracers.call_tracer import CallTracer, FlatCalls
from flask_noderpc.ethereum.engine.tracers.parity import KINDS, Replay
from flask_noderpc.ethereum.state import EVM_STATE
from flask_noderpc.executors.pool import Executors
from flask_noderpc.executors.process import pickled
from tests.ethereum.protocol.signing import CHAIN_ID, sender
from tests.faults.processes import ROOT
from tests.helpers.until import PATIENCE, until

from .jobs import (
    ADDRESS,
    Asks,
    DropsOldCycle,
    Endless,
    Held,
    Killed,
    Large,
    Notes,
    Raises,
    RaisesUnreadable,
    Runs,
    Unreadable,
    Unsendable,
    WhoAmI,
    executors,
    let_start,
    starting,
)

LONG_S = PATIENCE
# Longer than an empty job takes, and shorter than the waits below.
SHORT_S = 2.0


@pytest.fixture
def one() -> Iterator[Executors]:
    """Executors with one process and a queue for one job."""
    made = executors()
    yield made
    made.close()


def test_a_process_does_one_job_after_the_other(one: Executors) -> None:
    first = one.run(WhoAmI(), LONG_S)
    assert first == one.run(WhoAmI(), LONG_S) != os.getpid()


def test_a_job_that_never_ends_is_ended_with_its_process(one: Executors) -> None:
    # The time to start a new process is not part of the job's time, and is limited by itself.
    for _ in range(2):
        with pytest.raises(ExecutionTimedOut):
            one.run(Endless(), 0.2)

    assert one.run(WhoAmI(), LONG_S)


def test_no_job_s_time_goes_by_while_the_first_process_starts(tmp_path: Path) -> None:
    with closing(executors(gate=tmp_path)) as one, ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(one.run, WhoAmI(), SHORT_S) for _ in range(2)]
        until(lambda: bool(starting(tmp_path)), "a process starts")
        # A job that is still queued has waited longer than it may wait for a free process.
        assert not wait(asked, SHORT_S).done
        (pid,) = starting(tmp_path)
        let_start(tmp_path, pid)
        assert [each.result(LONG_S) for each in asked] == [pid, pid]


def test_a_job_that_waits_is_done_by_the_first_that_is_free(tmp_path: Path) -> None:
    with closing(executors(2, gate=tmp_path)) as two, ThreadPoolExecutor(2) as threads:
        held = threads.submit(two.run, Held(tmp_path), LONG_S)
        until(lambda: bool(starting(tmp_path)), "the first starts")
        (first,) = starting(tmp_path)
        let_start(tmp_path, first)
        assert begun(tmp_path) == first
        waiting = threads.submit(two.run, WhoAmI(), LONG_S)
        until(lambda: len(starting(tmp_path)) == 2, "a second starts, for who waits")
        (tmp_path / "end").touch()
        assert held.result(LONG_S) == "done"
        assert waiting.result(LONG_S) == first
        let_start(tmp_path, starting(tmp_path)[1])


def test_a_process_is_started_before_there_are_jobs(tmp_path: Path) -> None:
    with closing(executors(2, gate=tmp_path)) as two, ThreadPoolExecutor(1) as threads:
        two.start()
        until(lambda: bool(starting(tmp_path)), "a process starts")
        two.start()
        asked = threads.submit(two.run, WhoAmI(), LONG_S)
        (pid,) = starting(tmp_path)
        let_start(tmp_path, pid)
        assert asked.result(LONG_S) == pid
        assert starting(tmp_path) == [pid]


def test_a_job_fails_when_its_worker_dies_at_start(tmp_path: Path) -> None:
    with closing(executors(gate=tmp_path)) as one, ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(one.run, WhoAmI(), LONG_S) for _ in range(2)]
        until(lambda: len(one._pool.queue) == 2 and bool(starting(tmp_path)), "both wait")
        (lost,) = starting(tmp_path)
        os.kill(lost, signal.SIGKILL)
        for each in asked:
            with pytest.raises(ExecutorDied):
                each.result(LONG_S)
        again = threads.submit(one.run, WhoAmI(), LONG_S)
        until(lambda: len(starting(tmp_path)) == 2, "another starts")
        pid = starting(tmp_path)[1]
        let_start(tmp_path, pid)
        assert again.result(LONG_S) == pid


def test_jobs_fail_while_no_process_can_be_started() -> None:
    with closing(Executors(("/no/such/program",), 1, 1)) as none:
        for _ in range(2):
            with pytest.raises(ExecutorDied):
                none.run(WhoAmI(), LONG_S)


def test_a_job_that_cannot_be_read_fails_at_once(one: Executors) -> None:
    before = one.run(WhoAmI(), LONG_S)
    with pytest.raises(ExecutorDied):
        one.run(Unreadable(), LONG_S)
    assert one.run(WhoAmI(), LONG_S) != before


def test_queued_jobs_fail_when_the_pool_closes(one: Executors, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        held = threads.submit(one.run, Held(tmp_path), LONG_S)
        begun(tmp_path)
        waiting = threads.submit(one.run, WhoAmI(), LONG_S)
        until(lambda: len(one._pool.queue) == 1, "the second waits")
        one.close()
        with pytest.raises(ExecutorDied):
            waiting.result(LONG_S)
        (tmp_path / "end").touch()
        assert held.result(LONG_S) == "done"


def test_a_dead_worker_fails_its_job_and_is_replaced(one: Executors) -> None:
    before = one.run(WhoAmI(), LONG_S)
    with pytest.raises(ExecutorDied) as received:
        one.run(Killed(), LONG_S)
    assert str(received.value)
    assert one.run(WhoAmI(), LONG_S) not in (before, os.getpid())


def test_a_process_killed_from_outside_in_the_middle_of_a_job(
    one: Executors, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(one.run, Held(tmp_path), LONG_S)
        pid = begun(tmp_path)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ExecutorDied):
            held.result(LONG_S)
    assert one.run(WhoAmI(), LONG_S) != pid


def begun(folder: Path) -> int:
    """Return the PID of the process whose job is held."""
    message = folder / "begun"
    until(lambda: message.exists() and bool(message.read_text()), "the job has begun")
    return int(message.read_text())


def test_an_idle_worker_that_is_killed_fails_no_job(one: Executors) -> None:
    pid = one.run(WhoAmI(), LONG_S)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert one.run(WhoAmI(), LONG_S) != pid


def test_no_more_wait_than_may(one: Executors, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        held = threads.submit(one.run, Held(tmp_path), LONG_S)
        begun(tmp_path)
        waiting = threads.submit(one.run, WhoAmI(), LONG_S)
        until(lambda: len(one._pool.queue) == 1, "the second waits")
        with pytest.raises(ExecutorsBusy) as received:
            one.run(WhoAmI(), LONG_S)
        assert "NODERPC_EVM_EXECUTORS" in str(received.value)
        (tmp_path / "end").touch()
        assert held.result(LONG_S) == "done"
        assert waiting.result(LONG_S) > 0
    assert one.run(WhoAmI(), LONG_S)


def test_a_job_queued_beyond_its_deadline_fails(one: Executors, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(one.run, Held(tmp_path), LONG_S)
        begun(tmp_path)
        with pytest.raises(ExecutorsBusy):
            one.run(WhoAmI(), 0.05)
        (tmp_path / "end").touch()
        assert held.result(LONG_S) == "done"


def test_closing_the_pool_finishes_the_running_job(one: Executors, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(one.run, Held(tmp_path), LONG_S)
        pid = begun(tmp_path)
        one.close()
        (tmp_path / "end").touch()
        assert held.result(LONG_S) == "done"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    # The next job starts the process again.
    assert one.run(WhoAmI(), LONG_S) != pid


HOG, GUEST = "10.0.0.1", "10.0.0.2"


def test_the_queue_is_shared_fairly_among_clients(tmp_path: Path) -> None:
    done: list[str] = []
    with closing(executors(queue_size=4)) as one, ThreadPoolExecutor(6) as threads:

        def ask(client: str) -> bool:
            """Run a job; return false if the queue is full."""
            try:
                one.run(WhoAmI(), LONG_S, client)
            except ExecutorsBusy:
                return False
            done.append(client)
            return True

        held = threads.submit(one.run, Held(tmp_path), LONG_S, HOG)
        begun(tmp_path)
        hogs = [threads.submit(ask, HOG) for _ in range(4)]
        until(lambda: len(one._pool.queue) == 4, "the line is full")
        guest = threads.submit(ask, GUEST)
        # One of the hog's jobs makes room for the guest, and further jobs of the hog are
        # refused.
        until(lambda: any(each.done() for each in hogs), "one made room")
        until(lambda: len(one._pool.queue) == 4, "the guest is in line")
        assert not ask(HOG)
        (tmp_path / "end").touch()
        assert held.result(LONG_S) == "done"
        assert guest.result(LONG_S)
        assert sorted(each.result(LONG_S) for each in hogs) == [False, True, True, True]
    assert sorted(done) == [HOG, HOG, HOG, GUEST]


def test_the_least_recently_served_client_is_next(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with closing(executors(queue_size=8)) as one, ThreadPoolExecutor(8) as threads:
        asked: list[Future[Any]] = [threads.submit(one.run, Held(tmp_path), LONG_S, HOG)]
        begun(tmp_path)
        for number, client in enumerate((HOG, HOG, HOG, GUEST, GUEST), 1):
            job: Job[Any] = Notes(notes, client)
            asked.append(threads.submit(one.run, job, LONG_S, client))
            until(lambda: len(one._pool.queue) == number, "it is in line")  # noqa: B023
        (tmp_path / "end").touch()
        for each in asked:
            each.result(LONG_S)
    assert notes.read_text().split() == [GUEST, HOG, GUEST, HOG, HOG]


def test_errors_travel(one: Executors) -> None:
    with pytest.raises(InvalidTransaction, match=r"^why not$"):
        one.run(Raises(InvalidTransaction("why not")), LONG_S)
    with pytest.raises(RuntimeError, match="can't be pickled"):
        one.run(Unsendable(), LONG_S)
    assert one.run(WhoAmI(), LONG_S)


def test_an_error_that_cannot_be_read_again_leaves_the_process_to_others(
    one: Executors,
) -> None:
    before = one.run(WhoAmI(), LONG_S)
    with pytest.raises(RuntimeError, match="why not"):
        one.run(RaisesUnreadable(), LONG_S)
    assert one.run(WhoAmI(), LONG_S) == before


def test_an_error_that_is_no_exception_fails_its_job_alone(one: Executors) -> None:
    pid = one.run(WhoAmI(), LONG_S)
    with pytest.raises(RuntimeError, match="why not"):
        one.run(Raises(BaseException("why not")), LONG_S)
    assert one.run(WhoAmI(), LONG_S) == pid


def test_a_job_asks_its_parent() -> None:
    asked: list[object] = []

    def answer(question: object) -> object:
        asked.append(question)
        if question == "bad":
            raise InvalidTransaction("the question is bad")
        return [question] * 2

    with closing(executors(answer=answer)) as pool:
        pid = pool.run(WhoAmI(), PATIENCE)
        assert pool.run(Asks((1, b"two")), PATIENCE) == ([1, 1], [b"two"] * 2)
        # The error of an answer is the job's, and ends neither the process nor later jobs.
        with pytest.raises(InvalidTransaction, match="is bad"):
            pool.run(Asks(("bad", "never asked")), PATIENCE)
        assert asked == [1, b"two", "bad"]
        assert pool.run(WhoAmI(), PATIENCE) == pid


def test_the_time_for_answers_is_not_the_job_s() -> None:
    def answer(question: object) -> object:
        threading.Event().wait(0.35)
        return None

    with closing(executors(answer=answer)) as pool:
        pool.run(WhoAmI(), PATIENCE)
        # Ten answers take longer.
        assert pool.run(Asks(tuple(range(10))), 3.0) == (None,) * 10


def test_the_time_for_answers_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(question: object) -> object:
        threading.Event().wait(0.35)
        return None

    monkeypatch.setattr("flask_noderpc.executors.process.ANSWERS_S", 1.0)
    with closing(executors(answer=answer)) as pool:
        pool.run(WhoAmI(), PATIENCE)
        with pytest.raises(ExecutionTimedOut):
            pool.run(Asks(tuple(range(10))), 1.0)
        pool.run(WhoAmI(), PATIENCE)


def test_a_question_that_nobody_expects_fails_its_job(one: Executors) -> None:
    with pytest.raises(RuntimeError, match="must not"):
        one.run(Asks((1,)), PATIENCE)


def test_large_values_travel(one: Executors) -> None:
    data = os.urandom(5 << 20)
    assert one.run(Large(data), LONG_S) == data


def test_cycles_of_former_jobs_are_freed_soon(one: Executors) -> None:
    assert one.run(DropsOldCycle(), LONG_S)


def test_calls_a_thousand_deep(one: Executors) -> None:
    # Code that calls itself with all its gas, and counts the calls in its storage: SLOAD, ADD,
    # SSTORE.
    pid = one.run(WhoAmI(), LONG_S)
    code = bytes.fromhex("5f5460010180" + "5f55" + "5f5f5f5f5f305af1" + "505f545f5260205ff3")
    outcome = one.run(Runs(code, 1 << 50), LONG_S)

    assert (outcome.error, int.from_bytes(outcome.output)) == ("", 1025)
    assert one.run(WhoAmI(), LONG_S) == pid


@pytest.mark.parametrize("tracer", [CallTracer(), FlatCalls(), Replay(frozenset(KINDS))])
def test_traces_of_calls_a_thousand_deep(one: Executors, tracer: TracerConfig) -> None:
    # The code calls itself with all its gas.
    code = bytes.fromhex("5f5f5f5f5f305af1")
    message = Message(to=ADDRESS, gas=1 << 50)
    block = Environment(chain_id=1, number=1, timestamp=1, gas_limit=1 << 50)
    overrides = {ADDRESS: AccountOverride(code=code)}
    call = TracedCall(block, message, Tracing(tracer, 1 << 30))
    (trace,) = one.run(TraceCalls(NO_STORAGE, (call,), overrides), LONG_S)
    assert isinstance(trace, bytes)
    assert trace.lower().count(b'"call"') > 1024


SCRIPT = """
import os, sys
{before}
from tests.ethereum.engine.jobs import *
made = executors(2, 2)
{after}
made.close()
"""


def run_script(after: str, before: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before, after=after)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_after_a_fork_each_process_has_its_workers() -> None:
    message = run_script(
        """
parents = made.run(WhoAmI(), 120)
child = os.fork()
if not child:
    assert made.run(WhoAmI(), 120) != parents
    made.close()
    print("child", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert made.run(WhoAmI(), 120) == parents
print("parent")
"""
    )
    assert message.split() == ["child", "parent"]


def test_under_gevent_others_run_while_one_waits() -> None:
    message = run_script(
        """
import pathlib, tempfile
from flask_noderpc.errors import ExecutionTimedOut
made.run(WhoAmI(), 120)
def endless():
    try:
        made.run(Endless(), 0.5)
    except ExecutionTimedOut:
        return "timed out"
jobs = [gevent.spawn(endless), gevent.spawn(made.run, WhoAmI(), 120)]
gevent.joinall(jobs)
assert jobs[0].value == "timed out" and jobs[1].value, jobs
# The file that ends it comes from another greenlet.
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    held = gevent.spawn(made.run, Held(folder), 120)
    while not (folder / "begun").exists():
        gevent.sleep(0.01)
    (folder / "end").touch()
    assert held.get(timeout=120) == "done"
# A waiting greenlet is killed: its process ends, and no other job gets the result.
lost = gevent.spawn(made.run, Endless(), 120)
gevent.sleep(0.1)
lost.kill()
assert len({made.run(WhoAmI(), 120) for _ in range(4)}) == 1
print("done")
""",
        before="import gevent.monkey; gevent.monkey.patch_all(); import gevent",
    )
    assert message == "done\n"


@pytest.mark.parametrize("job", ["WhoAmI", "Endless"])
def test_a_process_ends_with_its_parent(job: str) -> None:
    after = f"print(made.run(WhoAmI(), 120), flush=True); made.run({job}(), 1000); input()"
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(before="", after=after)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline()
        parent.kill()
        # The child has the pipe, too, so it ends when both have ended.
        reading = threading.Thread(target=parent.stdout.read)
        reading.start()
        reading.join(PATIENCE)
        assert not reading.is_alive()


@pytest.mark.parametrize("name", ["chain.db", "file:chain.db"])
def test_executors_find_the_store_where_the_process_has_moved_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    chain = EmbeddedChain(
        name,
        produce=False,
        application=lambda state: EvmApplication(
            state, EvmRuntime(state, name, ExecutionLimits()), CHAIN_ID
        ),
        app_state=app_state({sender(): 10**22}),
    )
    (tmp_path / "other").mkdir()
    with closing(chain):
        chain.start()
        monkeypatch.chdir(tmp_path / "other")
        own = EVM_STATE.of(chain)
        assert isinstance(own, EvmRuntime)
        change = Patch(own.root(0), {sender(): AccountOverride(nonce=1)})
        assert own.run(change).root != own.root(0)
    assert not list((tmp_path / "other").iterdir())


def test_jobs_and_results_arrive_as_they_were_sent() -> None:
    environment = Environment(chain_id=1, number=2, timestamp=3, gas_limit=4, fork=CANCUN)
    message = Message(sender=ADDRESS, to=None, nonce=None, gas=5, gas_price=6)
    override = AccountOverride(balance=7)
    estimate = Estimate(b"root", environment, message, {ADDRESS: override})
    sent = estimate, Reduced(8), WithoutSlots(9, 10), Failed(11)

    received = pickle.loads(pickled(sent))

    assert received == sent
    # A fork is an object of its process, found by name.
    assert received[0].environment.fork is CANCUN


@dataclass(frozen=True, slots=True)
class Slotted:
    first: int


@dataclass(frozen=True)
class WithoutSlots(Slotted):
    """A class that keeps its own field in a dictionary."""

    second: int


@dataclass(frozen=True, slots=True)
class Failed(Exception):
    """An exception, which only its own class makes."""

    code: int


class Reduced:
    """A class with methods of its own for pickle."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reduced) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> tuple[type[Reduced], tuple[int]]:
        return Reduced, (self._value,)
