"""Tests of event buffers and the query hub: delivery, and slow subscribers."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.events.messages import Message
from flask_noderpc.events.query import parse
from flask_noderpc.jsonrpc.subscriptions import EventBuffer, QueryHub
from tests.helpers.until import PATIENCE

ALL = parse("tm.event EXISTS")


def message(position: int, **keys: str) -> Message:
    return Message(
        1, position, "Tx", None, {name.replace("__", "."): [v] for name, v in keys.items()}
    )


def encode(item: Message) -> bytes:
    return str(item.position).encode()


@given(
    st.lists(st.lists(st.binary(max_size=5), max_size=8), max_size=12),
    st.integers(1, 6),
    st.integers(1, 20),
)
def test_an_event_buffer_holds_the_newest_batch_and_older_events_within_its_limits(
    batches: list[list[bytes]], max_events: int, max_bytes: int
) -> None:
    ring = EventBuffer(ALL, max_events, max_bytes)
    received: list[bytes] = []
    for batch in batches:
        ring.extend(batch)
        received += batch

        kept = ring.since(ring.first)
        assert kept is not None
        assert kept == received[len(received) - len(kept) :]
        assert ring.end == len(received)
        assert len(kept) >= len(batch)
        older = kept[: len(kept) - len(batch)]
        assert not older or (len(older) <= max_events and sum(map(len, kept)) <= max_bytes)


def test_an_evicted_cursor_differs_from_one_without_new_events() -> None:
    ring = EventBuffer(ALL, 2, 100)
    ring.extend([b"a", b"b", b"c"])
    ring.extend([b"d"])

    assert ring.since(0) is None
    assert ring.since(1) == [b"b", b"c", b"d"]
    assert ring.since(4) == []


QUERIES = [
    "tm.event='Tx'",
    "tm.event='Tx' AND a.k='1'",
    "tm.event='Tx' AND a.k='2'",
    "a.k='1' AND a.n='1'",
    "a.k EXISTS",
    "a.n>1",
    "b.k='1'",
]
VALUES = st.sampled_from(["1", "2", "3"])
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"tm__event": st.sampled_from(["Tx", "NewBlock"])},
        optional={"a__k": VALUES, "a__n": VALUES, "b__k": VALUES},
    ),
    max_size=8,
)


@given(MESSAGES, st.lists(st.sampled_from(QUERIES), max_size=12))
def test_every_subscriber_gets_each_match_once_and_in_order(
    received: list[dict[str, str]], asked: list[str]
) -> None:
    messages = [message(position, **keys) for position, keys in enumerate(received)]
    hub = QueryHub(encode, 100)
    joined = [hub.join(parse(text), lambda: None) for text in asked]

    hub.publish(messages)

    for text, (ring, cursor) in zip(asked, joined, strict=True):
        expected = [encode(m) for m in messages if parse(text).matches(m.keys)]
        assert ring.since(cursor) == expected


def test_a_subscriber_is_woken_once_per_block_with_matches() -> None:
    woken: list[str] = []
    hub = QueryHub(encode, 100)
    hub.join(parse("a.k='1'"), lambda: woken.append("one"))
    hub.join(parse("a.k='2'"), lambda: woken.append("two"))

    hub.publish([message(0, a__k="1"), message(1, a__k="1")])

    assert woken == ["one"]


def test_a_message_is_encoded_once_and_only_when_wanted() -> None:
    encoded: list[int] = []

    def counting(item: Message) -> bytes:
        encoded.append(item.position)
        return b"x"

    hub = QueryHub(counting, 100)
    for text in ("a.k='1'", "a.k EXISTS", "a.k='1' AND a.k EXISTS"):
        hub.join(parse(text), lambda: None)

    hub.publish([message(0, a__k="1"), message(1, b__k="1")])

    assert encoded == [0]


def test_nothing_is_left_when_everyone_has_left() -> None:
    def one() -> None: ...

    hub = QueryHub(encode, 100)
    rings = [hub.join(parse(text), one)[0] for number, text in enumerate(QUERIES)]
    assert (len(hub), hub.clients) == (len(QUERIES), 1)

    for ring in rings:
        hub.leave(ring, one)

    assert (len(hub), hub.clients, hub._by_value, hub._others) == (0, 0, {}, [])


def test_a_query_for_an_empty_value_matches_a_bare_event_type() -> None:
    hub = QueryHub(encode, 100)
    ring, cursor = hub.join(parse("transfer=''"), lambda: None)

    hub.publish([message(1, transfer__amount="5"), message(2, mint__amount="5")])

    assert ring.since(cursor) == [b"1"]


def test_subscribing_does_not_wait_while_a_block_is_read_or_encoded() -> None:
    joined: list[bool] = []

    def subscribe() -> None:
        thread = threading.Thread(
            target=hub.join, args=(parse("b.k='1'"), lambda: None), daemon=True
        )
        thread.start()
        thread.join(PATIENCE)
        joined.append(not thread.is_alive())

    def read() -> Iterator[Message]:
        subscribe()
        yield message(1, a__k="1")

    def encode_slowly(item: Message) -> bytes:
        subscribe()
        return encode(item)

    hub = QueryHub(encode_slowly, 100)
    buffer, cursor = hub.join(parse("a.k='1'"), lambda: None)

    hub.publish(read())

    assert joined == [True, True]
    assert buffer.since(cursor) == [b"1"]
