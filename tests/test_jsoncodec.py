"""Tests of the JSON codec: what it decodes and refuses, in any process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flask_noderpc import jsoncodec
from tests.helpers.until import PATIENCE

DEEP = """
import sys
sys.setrecursionlimit(100_000)
from flask_noderpc import jsoncodec
for document in (b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000, b'["[", ' * 50_000):
    try:
        jsoncodec.decode(document)
    except jsoncodec.NotJSON as error:
        print(error)
print(jsoncodec.decode('["' + "[" * 5000 + '"' + ",[]" * 5000 + "]")[1:3])
"""


def test_a_host_with_deeper_recursion_does_not_bring_the_process_down() -> None:
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["nested too deeply"] * 3 + ["[[], []]"]


def test_deep_nesting_is_refused_before_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getrecursionlimit", lambda: 100_000)

    with pytest.raises(jsoncodec.NotJSON, match="nested too deeply"):
        jsoncodec.decode(b"[" * 100_000)
    assert jsoncodec.decode(b"[" * 100 + b"]" * 100)


RACE = """
import sys, threading
from dataclasses import make_dataclass
from typing import Optional
from flask_noderpc import jsoncodec
sys.setswitchinterval(1e-6)
for _ in range(100):
    kind = int
    for _ in range(8):
        kind = make_dataclass("Kind", [(f"f{i}", Optional[kind], None) for i in range(8)])
    start = threading.Barrier(3)
    def read():
        start.wait()
        assert jsoncodec.decode(b'{"f7": {"f7": {"f0": null}}}', kind).f7.f7.f0 is None
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("alive")
"""


def test_threads_that_read_a_kind_for_the_first_time_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RACE], capture_output=True, text=True, timeout=PATIENCE
    )

    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


FORK = """
import os, signal, sys, threading
from dataclasses import make_dataclass
from typing import Optional
from flask_noderpc import jsoncodec
sys.setswitchinterval(1e-5)
def fresh():
    kind = int
    for _ in range(8):
        kind = make_dataclass("Kind", [(f"f{i}", Optional[kind], None) for i in range(8)])
    return kind
kinds, own = [fresh() for _ in range(500)], fresh()
reader = threading.Thread(target=lambda: [jsoncodec.decode(b"{}", kind) for kind in kinds])
reader.start()
children = 0
while reader.is_alive() and children < 10:
    child = os.fork()
    if not child:
        signal.alarm(120)
        jsoncodec.decode(b"{}", own)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    children += 1
reader.join()
print(children > 0)
"""


# Python 3.12 warns about forks in processes with threads.
def test_a_child_forked_while_another_thread_compiles_a_decoder_can_decode() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
