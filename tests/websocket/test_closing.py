"""Tests that a connection ends after the server's Close frame, even if its peer does
nothing."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from flask_noderpc.web.connection import Timing, text_frame

from ..helpers.until import PATIENCE
from .socket_pair import nothing, served

# Within close_s the writer must get its turn, even on a busy machine.
TIMING = Timing(ping_s=60, read_s=60, write_s=5, close_s=0.5)
TOO_BIG = b"\x81\xfe\x03\xe9\0\0\0\0" + b"x" * 1001
PING = b"\x89\x80\0\0\0\0"


def test_a_peer_that_was_silent_all_along_is_cut_off() -> None:
    with served(TIMING) as pair:
        pair.peer.sendall(PING)
        assert pair.read(2) == b"\x8a\x00"
        pair.connection.close(1001, "the server goes away")

        assert pair.ended.wait(PATIENCE)
        assert pair.read(4)[2:] == struct.pack("!H", 1001)


def test_the_peer_has_close_s_to_answer_a_close() -> None:
    with served(replace(TIMING, close_s=600)) as pair:
        pair.connection.close(1001, "the server goes away")
        assert pair.read(4)[2:] == struct.pack("!H", 1001)
        assert not pair.ended.wait(0.1)

        pair.peer.sendall(b"\x88\x82\0\0\0\0" + struct.pack("!H", 1001))
        assert pair.ended.wait(PATIENCE)


@pytest.mark.parametrize(
    "goes_on",
    [PING, b"\x01\x81\0\0\0\0x", b"\x00\x81\0\0\0\0x", b"\x81\x81\0\0\0\0x", b"\xff"],
    ids=["pings", "text", "parts", "messages", "garbage"],
)
@pytest.mark.parametrize("pause", [0.0, 0.05], ids=["flood", "trickle"])
def test_a_peer_that_goes_on_after_our_close_is_cut_off(goes_on: bytes, pause: float) -> None:
    with served(TIMING) as pair:
        pair.peer.sendall(TOO_BIG)
        pair.send_until_it_ends(goes_on, pause)

        assert pair.ended.wait(PATIENCE)
        assert pair.read(4)[2:] == struct.pack("!H", 1009)


@pytest.mark.parametrize("pause", [0.0, 0.05], ids=["flood", "trickle"])
def test_a_peer_that_goes_on_after_a_broken_frame_is_cut_off(pause: float) -> None:
    with served(TIMING) as pair:
        pair.peer.sendall(b"\x81\x05hello")
        pair.send_until_it_ends(PING, pause)

        assert pair.ended.wait(PATIENCE)
        assert pair.read(4)[2:] == struct.pack("!H", 1002)


def test_a_peer_that_takes_nothing_is_cut_off_at_the_write_deadline() -> None:
    with served(
        Timing(write_s=0.3, close_s=0.2), pull=lambda: iter([b"x" * 10_000_000])
    ) as pair:
        pair.connection.wake()
        pair.connection.close()

        assert pair.ended.wait(PATIENCE)


def test_a_peer_that_reads_late_still_gets_the_close_frame() -> None:
    begun = threading.Event()

    def events() -> Iterator[bytes]:
        # The chunks are more than the kernel's buffers hold.
        for _ in range(2000):
            yield b"x" * 10_000
            begun.set()

    with served(Timing(write_s=60, close_s=0.5), pull=events) as pair:
        assert begun.wait(PATIENCE)
        pair.connection.close(1001)

        assert pair.ended.wait(PATIENCE)
        received = pair.read(100_000_000)
        event = text_frame(b"x" * 10_000)
        assert received.endswith(event + b"\x88\x02\x03\xe9")
        assert len(received[:-4]) % len(event) == 0


def test_a_close_is_the_last_that_is_sent_and_ends_a_stream_of_events() -> None:
    streaming = threading.Event()

    def pull() -> Iterator[bytes]:
        if not streaming.is_set():
            return nothing()
        pair.connection.wake()
        return iter([b"event"])

    with served(TIMING, pull=pull) as pair:
        streaming.set()
        pair.connection.wake()
        assert pair.read(7) == b"\x81\x05event"
        pair.connection.close()
        pair.connection.send(b"late")

        received = pair.read(100_000_000)
        assert pair.ended.wait(PATIENCE)
        assert received.endswith(b"\x88\x02\x03\xe8")
