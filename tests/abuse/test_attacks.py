"""Tests that other clients get responses during endless attacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..helpers.raw_http import CLOSING, GET, HEALTH, answers, post
from ..server.node_process import Node, started
from .attacks import TINY_CHUNKS, TRAILERS, UNREAD_BODY, Attack, requests, timed_health, under

ANSWERS, MOST_BYTES = 5, 300_000_000
# More bytes than both socket buffers hold while the server does not read.
UNREAD_BYTES = 40_000_000
CHUNKED = "Transfer-Encoding: chunked"
ENDLESS = {
    "trailers": TRAILERS,
    "chunks of a byte": TINY_CHUNKS,
    "a body that is never read": UNREAD_BODY,
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("node")) as found:
        found.until_up()
        yield found
        assert "Traceback" not in found.log.read_text()


@pytest.mark.parametrize("name", ENDLESS)
def test_others_are_answered_before_a_request_ends(node: Node, name: str) -> None:
    first, again = ENDLESS[name]
    attack = Attack(requests(node, first), again, MOST_BYTES)
    with under(attack):
        answered = len(timed_health(node, lambda: attack.is_over, ANSWERS))
    assert answered == ANSWERS


def test_trailers_without_end_are_cut_off(node: Node) -> None:
    first, again = TRAILERS
    attack = Attack(requests(node, first), again, UNREAD_BYTES)
    with under(attack):
        attack.join()
    assert attack.connections > 1


def chunks(size: int, extension: bytes = b"") -> bytes:
    """Return the body of a call in chunks."""
    parts = (HEALTH[at : at + size] for at in range(0, len(HEALTH), size))
    framed = (b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts)
    return b"".join((*framed, b"0\r\n"))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (chunks(1) + b"\r\n", 200),
        (chunks(7, b";a=b;c") + b"A: b\r\n\r\n", 200),
        # Go: 16 KiB more than 16 bytes for each chunk, and twice the data.
        (chunks(20, b";" + b"a" * 4000) + b"\r\n", 200),
        (chunks(4, b";" + b"a" * 4000) + b"\r\n", 400),
        (chunks(50, b";" + b"a" * 4096) + b"\r\n", 400),
        (chunks(50, b";a\nb") + b"\r\n", 400),
        (chunks(50, b";a\rb") + b"\r\n", 400),
        (chunks(50, b"\n") + b"\r\n", 400),
        (chunks(50, b" ") + b"\r\n", 400),
        (chunks(50) + b"A: b\r\n" * 100 + b"\r\n", 200),
        (chunks(50) + b"A: b\r\n" * 101 + b"\r\n", 400),
        (chunks(50) + (b"A: " + b"b" * 30_000 + b"\r\n") * 3 + b"\r\n", 400),
        (chunks(50) + b"A: b\n\r\n", 400),
        (chunks(50) + b"\n", 400),
        (chunks(50) + b"A : b\r\n\r\n", 400),
    ],
    ids=lambda value: repr(value)[:80],
)
def test_the_framing_of_chunks_is_bounded_and_has_one_meaning(
    node: Node, body: bytes, status: int
) -> None:
    # The bytes after a broken body must not be read as a request.
    expected = [200, 200] if status == 200 else [400]
    assert answers(node, post(CHUNKED, body=body + CLOSING)) == expected


def test_a_body_beside_an_upgrade_is_not_read_twice(node: Node) -> None:
    length = f"Content-Length: {len(HEALTH)}"
    asking = post("Upgrade: websocket", length, body=HEALTH)
    # Each request is as long as the body, so a lost one would go unnoticed if they were counted
    # by bytes.
    assert answers(node, asking + GET + GET + CLOSING) == [200] * 4
