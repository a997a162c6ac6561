"""Tests of which connections make room for new ones, and of how many are looked at for that."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from flask_noderpc.server import places
from flask_noderpc.server.places import Phase, Place, Places
from flask_noderpc.web.rules.head import ClientLimit, client_key

OPEN = 900
HOG, GUEST = "192.0.2.1", "192.0.2.2"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, as connections are checked once in a hundredth of a second."""
    monkeypatch.setattr(places, "time", SimpleNamespace(monotonic=lambda: 1000.0))


class Open(Place):
    """An open connection that counts how often it is looked at."""

    looks = 0

    def __init__(self, client: str, since: float, phase: Phase, can_go: bool = True) -> None:
        super().__init__(client)
        self.since, self.phase, self.can_go = since, phase, can_go
        self.is_open = True

    @property
    def is_awaited(self) -> bool:
        return True

    def can_be_evicted(self, _now: float) -> bool:
        Open.looks += 1
        return self.can_go

    def drop(self) -> None:
        self.is_open = False


def _filled(client: str, count: int, *, can_go: bool) -> tuple[Places, list[Open]]:
    taken = Places(count, None)
    found = [Open(client, float(number), Phase.HEADERS, can_go) for number in range(count)]
    for each in found:
        taken.add(each)
    Open.looks = 0
    return taken, found


def test_the_idle_one_goes_first_and_all_are_looked_at_once() -> None:
    taken, found = _filled(HOG, OPEN, can_go=True)
    found[99].phase = Phase.REQUEST
    assert taken.refusal(GUEST) == b""
    assert not found[99].is_open
    taken.add(Open(GUEST, 1e9, Phase.NOTHING, False))

    for _ in range(99):
        assert taken.refusal(GUEST) == b""
        taken.add(Open(GUEST, 1e9, Phase.NOTHING, False))

    # The idle connection comes first, then those that have been slow for the longest time.
    assert [each for each in found if not each.is_open] == found[:100]
    # Each connection is looked at once, and each that made room once more.
    assert Open.looks <= OPEN + 2 * 100


def test_where_none_can_go_all_are_looked_at_once_for_many() -> None:
    taken, _ = _filled(HOG, OPEN, can_go=False)

    refused = sum(taken.refusal(GUEST) != b"" for _ in range(100))

    assert refused == 100
    assert Open.looks == OPEN


def test_a_client_at_its_limit_is_refused_after_a_few_of_its_connections() -> None:
    _, found = _filled(HOG, 256, can_go=True)
    taken = Places(OPEN, ClientLimit())
    for each in found:
        taken.add(each)

    refused = 0
    for _ in range(100):
        if taken.refusal(HOG):
            refused += 1
        else:
            taken.add(Open(HOG, 1e9, Phase.REQUEST))

    assert refused == 98
    assert taken.refusal(GUEST) == b""


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.9", ""])
def test_without_a_setting_this_machine_has_no_limit(address: str) -> None:
    assert not ClientLimit().counts(client_key(address))
    assert ClientLimit(2).counts(client_key(address)) == bool(address)


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "::2", "pages at 127.0.0.1"])
def test_without_a_setting_others_have_a_limit_of_256(address: str) -> None:
    limit = ClientLimit()
    assert (limit.counts(client_key(address)), limit.count) == (True, 256)
