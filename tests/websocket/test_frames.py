"""Tests of valid and invalid handshakes and frames."""

from __future__ import annotations

import socket
import struct
import threading
import zlib
from urllib.parse import urlsplit

import pytest

from flask_noderpc.testing import Node
from flask_noderpc.web.connection import Connection, Timing, text_frame
from flask_noderpc.web.connections import Connections

from ..helpers.until import PATIENCE
from .conftest import Connect
from .socket_pair import nothing

PING = b"\x89\x80\0\0\0\0"


def handshake(node: Node, *lines: str) -> bytes:
    parts = urlsplit(node.url)
    with socket.create_connection((parts.hostname, parts.port or 80), 10) as sock:
        head = "\r\n".join(["GET /websocket HTTP/1.1", "Host: localhost", *lines, "", ""])
        sock.sendall(head.encode())
        return sock.recv(4096).split(b"\r\n", 1)[0]


UPGRADE = ("Upgrade: websocket", "Connection: Upgrade")
KEY = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ((), b"400"),
        (UPGRADE, b"426"),
        ((*UPGRADE, "Sec-WebSocket-Version: 8", KEY), b"426"),
        ((*UPGRADE, "Sec-WebSocket-Version: 13"), b"400"),
        ((*UPGRADE, "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: short"), b"400"),
        ((*UPGRADE, "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: !!"), b"400"),
        ((*UPGRADE, "Sec-WebSocket-Version: 13", KEY), b"101"),
    ],
)
def test_a_bad_handshake_is_the_client_s_fault(
    node: Node, lines: tuple[str, ...], status: bytes
) -> None:
    assert handshake(node, *lines).split()[1] == status


@pytest.mark.parametrize("bit", [0x40, 0x20, 0x10])
def test_compression_and_other_extensions_are_not_agreed_on(connect: Connect, bit: int) -> None:
    # Ten megabytes, if the server inflated it.
    bomb = zlib.compress(bytes(10_000_000), wbits=-15)
    client = connect()
    client.frame(bit | 1, bomb)

    assert client.read() is None
    assert client.closed == 1002


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x81\x05hello", 1002),
        (b"\x83\x80\0\0\0\0", 1002),
        (b"\x81\x82\0\0\0\0\xff\xfe", 1007),
        (b"\x80\x81\0\0\0\0x", 1002),
        (b"\x89\xfe\x00\x80\0\0\0\0" + b"x" * 128, 1002),
        (b"\x88\x81\0\0\0\0x", 1002),
    ],
    ids=["unmasked", "unknown", "bad utf-8", "stray part", "long ping", "short close"],
)
def test_a_broken_frame_closes_with_its_code(connect: Connect, frame: bytes, code: int) -> None:
    client = connect()
    client.raw(frame)

    assert client.read() is None
    assert client.closed == code


def test_a_message_over_the_limit_closes_with_1009(connect: Connect) -> None:
    client = connect()
    client.frame(1, b"x" * 600_000, fin=False)
    client.frame(0, b"x" * 600_000, fin=False)

    assert client.read() is None
    # gorilla/websocket sends no reason either.
    assert (client.closed, client.reason) == (1009, "")


def test_a_length_over_the_limit_closes_before_anything_of_it_comes(connect: Connect) -> None:
    client = connect()
    client.frame(1, b"", size=1 << 62)

    assert client.read() is None
    assert client.closed == 1009


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"", PING),
        (b"", b"\x8a\x80\0\0\0\0"),
        (b"\x01\x80\0\0\0\0", b"\x00\x80\0\0\0\0"),
        (b"\x01\x81\0\0\0\0 ", b"\x00\x81\0\0\0\0 "),
        (b"\x01\x81\0\0\0\0 ", b"\x00\xbf\0\0\0\0" + b" " * 63),
    ],
    ids=["pings", "pongs", "empty parts", "parts of a byte", "parts of 63 bytes"],
)
def test_many_small_frames_a_second_close_with_1008(
    connect: Connect, first: bytes, again: bytes
) -> None:
    client = connect()
    client.raw(first + again * 10_000)

    assert client.read() is None
    assert client.closed == 1008
    assert client.reason is not None
    assert client.reason.startswith("more than 100 pings, pongs and fragments under 64 bytes")


def test_parts_of_64_bytes_are_not_limited(connect: Connect) -> None:
    body = b'{"id":1,"method":"health"}'.ljust(640_000)
    parts = [b"\x00\xc0\0\0\0\0" + body[at : at + 64] for at in range(0, len(body), 64)]
    parts[0] = b"\x01" + parts[0][1:]
    parts[-1] = b"\x80" + parts[-1][1:]
    client = connect()
    client.raw(b"".join(parts))

    assert client.json()["result"] == {}


def test_last_parts_are_not_limited_whatever_their_size(connect: Connect) -> None:
    head, tail = b'{"id":1,"method":"health"'.ljust(100), b"}"
    client = connect()
    client.raw((b"\x01\xe4\0\0\0\0" + head + b"\x80\x81\0\0\0\0" + tail) * 500)

    assert [client.json()["result"] for _ in range(500)] == [{}] * 500


def test_a_message_in_a_few_small_parts_is_read(connect: Connect) -> None:
    client = connect()
    body = b'{"jsonrpc":"2.0","id":1,"method":"health"}'
    for at, byte in enumerate(body):
        client.frame(0 if at else 1, bytes((byte,)), fin=at == len(body) - 1)

    assert client.json()["result"] == {}


def test_a_binary_message_is_read_like_a_text(connect: Connect) -> None:
    client = connect()
    client.frame(2, b'{"id":1,"method":"health"}')

    assert client.json()["result"] == {}


def test_pings_are_answered_between_messages(connect: Connect) -> None:
    client = connect()
    client.raw(PING * 100)

    assert client.asked("health")["result"] == {}


def test_a_close_is_answered_and_the_socket_ends(connect: Connect) -> None:
    client = connect()
    client.frame(8, struct.pack("!H", 1000))

    assert client.read() is None
    assert client.closed == 1000


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536, 20_000_000])
def test_a_message_of_any_size_reaches_a_reader_whole(size: int) -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, Timing(), 1000)
    asked: list[bytes] = []

    def receive(message: bytes) -> None:
        asked.append(message)
        connection.send(b"x" * size)

    serving = threading.Thread(target=connection.run, args=(receive, nothing))
    serving.start()
    theirs.sendall(b"\x81\x81\0\0\0\0a")
    expected = len(text_frame(b"x" * size))
    received = bytearray()
    while len(received) < expected:
        received += theirs.recv(1 << 20)
    theirs.close()
    serving.join(PATIENCE)
    ours.close()

    assert asked == [b"a"]
    assert bytes(received) == text_frame(b"x" * size)


def test_concurrent_sends_never_interleave() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, Timing(), 1000)
    serving = threading.Thread(target=connection.run, args=(lambda message: None, nothing))
    serving.start()

    def send(mark: bytes) -> None:
        for _ in range(20):
            connection.send(mark * 70_000)

    senders = [threading.Thread(target=send, args=(mark,)) for mark in (b"a", b"b")]
    for sender in senders:
        sender.start()
    received = bytearray()
    while len(received) < 40 * len(text_frame(b"a" * 70_000)):
        received += theirs.recv(1 << 20)
    for sender in senders:
        sender.join(PATIENCE)
    theirs.close()
    serving.join(PATIENCE)
    ours.close()

    frames = [received[at : at + 70_010] for at in range(0, len(received), 70_010)]
    assert all(frame[10:] in (b"a" * 70_000, b"b" * 70_000) for frame in frames)


def test_a_reader_that_reads_nothing_is_dropped_at_the_deadline() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, Timing(write_s=0.2), 1000)
    theirs.sendall(b"\x81\x81\0\0\0\0a")

    # The connection would wait forever without a deadline.
    with Connections(tick_s=0.01).watch(connection):
        connection.run(lambda message: connection.send(b"x" * 50_000_000), nothing)

    theirs.close()
    ours.close()


def test_a_silent_peer_is_pinged_and_then_disconnected() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, Timing(ping_s=0.05, read_s=2), 1000)

    with Connections(tick_s=0.01).watch(connection):
        connection.run(lambda message: None, nothing)

    assert theirs.recv(2) == b"\x89\x00"
    theirs.close()
    ours.close()


def test_a_peer_that_ignores_our_close_is_cut_off() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(ours, Timing(close_s=0.5), 5)
    theirs.sendall(b"\x81\x86\0\0\0\0toobig")

    with Connections(tick_s=0.01).watch(connection):
        connection.run(lambda message: None, nothing)

    assert theirs.recv(4)[2:] == struct.pack("!H", 1009)
    theirs.close()
    ours.close()
