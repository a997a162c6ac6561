"""Tests that a mount's clock survives an error of one connection, and restarts in a child."""

from __future__ import annotations

import logging
import os
import socket
import threading
from contextlib import ExitStack

import pytest

from flask_noderpc.web.connection import Connection, Timing
from flask_noderpc.web.connections import Connections

from ..helpers.until import PATIENCE


class Ticked(Connection):
    """A connection that counts its ticks, and may fail in them."""

    fails = False

    def __init__(self, stack: ExitStack) -> None:
        ours, theirs = socket.socketpair()
        stack.enter_context(ours)
        stack.enter_context(theirs)
        super().__init__(ours, Timing(), 1000)
        self.ticked = threading.Event()

    def check_deadlines(self) -> None:
        if self.fails:
            raise RuntimeError("a slip")
        self.ticked.set()


def test_a_fault_of_one_leaves_the_others_their_clock(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    with ExitStack() as stack:
        one, other = Ticked(stack), Ticked(stack)
        one.fails = True
        clock = Connections(tick_s=0.01)
        with clock.watch(one), clock.watch(other):
            assert other.ticked.wait(PATIENCE)
            other.ticked.clear()
            assert other.ticked.wait(PATIENCE)


def test_the_clock_stops_with_the_last_and_starts_with_the_next() -> None:
    with ExitStack() as stack:
        clock = Connections(tick_s=0.01)
        for _ in range(3):
            connection = Ticked(stack)
            with clock.watch(connection):
                assert connection.ticked.wait(PATIENCE)
        for thread in threading.enumerate():
            if "clock" in thread.name:
                thread.join(PATIENCE)
                assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_its_own_clock() -> None:
    with ExitStack() as stack:
        clock, parents = Connections(tick_s=0.01), Ticked(stack)
        with clock.watch(parents):
            assert parents.ticked.wait(PATIENCE)
            child = os.fork()
            if child == 0:
                own = Ticked(stack)
                with clock.watch(own):
                    os._exit(0 if own.ticked.wait(PATIENCE) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
