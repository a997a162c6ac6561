"""Tests that a lease is taken over at once if its process on this machine has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flask_noderpc.backends.sql.lease import has_ended, own_name
from flask_noderpc.testing.chains import make_chain
from tests.helpers.stores import make_store

HOLD = """
import sys
from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sql.lease import own_name
assert SQLiteBackend(sys.argv[1]).acquire_lease(own_name(), 60)
print("held", flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/ns/pid").exists(), reason="Linux tells when a process started"
)


@pytest.mark.sqlite
def test_the_lease_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    store, chain = make_store(path), make_chain()
    store.init_chain(chain.genesis, chain.state)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert store.acquire_lease("other", 61) is None
        holder.send_signal(signal.SIGSTOP)
        # The stopped holder could still go on, so the lease has to expire.
        assert store.acquire_lease("other", 61) is None
        holder.kill()
        # The process is a zombie, as the child of a reloader may be.
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        lease = store.acquire_lease("other", 61)
        assert lease is not None
        assert lease.epoch == 2
    store.close()


def test_a_process_that_may_run_elsewhere_has_not_ended() -> None:
    name = own_name()
    pid, rest = name.split("-", 1)
    token, machine = rest.split("@", 1)
    boot, namespace, start = machine.split("/", 2)
    others = {
        "this process": name,
        "another boot": f"{pid}-{token}@{boot[::-1]}/{namespace}/{start}",
        "another container": f"4194305-{token}@{boot}/pid:[1]/{start}",
        "an older version": f"4194305-{token}",
        "a host": "host:4194305:0123abcd",
        "init, of another user or not": f"1-{token}@{boot}/{namespace}/{_start_of_init()}",
    }
    assert {kind: has_ended(each) for kind, each in others.items()} == dict.fromkeys(
        others, False
    )
    assert has_ended(f"{pid}-{token}@{boot}/{namespace}/{int(start) - 1}")
    assert has_ended(f"4194305-{token}@{boot}/{namespace}/{start}")


def _start_of_init() -> str:
    return Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
