"""Tests that a client that reads receives everything, at its own speed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from flask_noderpc.web.connection import Timing, text_frame
from tests.helpers.until import until

from ..helpers.until import PATIENCE
from .socket_pair import nothing, served

SIZE = 4_000_000


def test_a_reader_that_is_slow_and_steady_outlasts_the_deadlines() -> None:
    read = bytearray()
    waiting = [b"x" * SIZE]

    def pull() -> Iterator[bytes]:
        while waiting:
            yield waiting.pop()

    expected = text_frame(b"x" * SIZE)
    with served(Timing(read_s=2, write_s=2), pull=pull) as pair:
        pair.connection.wake()
        pause = threading.Event()
        # The whole takes some four seconds, in which the client reads without long pauses.
        while len(read) < len(expected) and (some := pair.peer.recv(50_000)):
            read += some
            pause.wait(0.05)

    assert bytes(read) == expected


def test_no_message_is_read_before_the_last_reply_is_taken() -> None:
    asked: list[bytes] = []

    def receive(message: bytes) -> None:
        asked.append(message)
        pair.connection.send(b"x" * SIZE)

    with served(Timing(write_s=2), receive) as pair:
        pair.peer.sendall(b"\x81\x81\0\0\0\0a" * 2)
        pause = threading.Event()
        # Reading takes longer than the write deadline, and leaves a megabyte for the sockets'
        # buffers.
        for _ in range(0, SIZE - 1_000_000, 50_000):
            assert len(pair.read(50_000)) == 50_000
            pause.wait(0.05)

        assert asked == [b"a"]


def test_pings_are_sent_during_a_stream_of_events() -> None:
    streaming = threading.Event()

    def pull() -> Iterator[bytes]:
        if not streaming.is_set():
            return nothing()
        pair.connection.wake()
        return iter([b"event"])

    with served(Timing(ping_s=0.1), pull=pull) as pair:
        streaming.set()
        pair.connection.wake()
        received = pair.read(7)
        while b"\x89\x00" not in received:
            received = received[-1:] + pair.read(7000)


def test_a_message_is_written_when_sending_it_returns() -> None:
    pulling, pulled, returned = (threading.Event() for _ in range(3))
    waiting = [b"event"]

    def pull() -> Iterator[bytes]:
        while waiting:
            yield waiting.pop()
            pulling.set()
            pulled.wait(PATIENCE)

    def send() -> None:
        pair.connection.send(b"x" * SIZE)
        returned.set()

    with served(Timing(), pull=pull) as pair:
        pair.connection.wake()
        assert pulling.wait(PATIENCE)
        # The writer is still busy with the message before.
        sending = threading.Thread(target=send)
        sending.start()
        until(lambda: bool(pair.connection._frames), "a frame that waits")
        pulled.set()
        # The rest of the frame is larger than the sockets' buffers.
        assert pair.read(8) == text_frame(b"event") + text_frame(b"x" * SIZE)[:1]
        assert not returned.wait(0.2)

        pair.read(SIZE + 9)
        assert returned.wait(PATIENCE)
        sending.join()
