"""Tests of the limit that waiting calls, websockets, executors and filters share among
clients."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.fairness import FairLimit, LimitReached

_STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", ""]), st.integers(0, 30), st.booleans()),
    max_size=60,
)


@given(steps=_STEPS, limit=st.integers(0, 5), newest=st.booleans())
def test_an_entry_is_evicted_only_from_a_client_that_has_more(
    steps: list[tuple[str, int, bool]], limit: int, newest: bool
) -> None:
    fair = FairLimit[int](limit, evicts_newest=newest)
    model: dict[int, str] = {}
    for entry, (client, place, adds) in enumerate(steps):
        if not adds:
            released = place - 1
            fair.release(released)
            model.pop(released, None)
            continue
        owned, is_full = Counter(model.values()), len(model) >= limit
        try:
            evicted = fair.acquire(entry, client)
        except LimitReached:
            assert is_full
            assert max(owned.values(), default=0) <= owned[client] + 1
            continue
        assert (evicted is not None) == is_full
        if evicted is not None:
            owner = model[evicted]
            assert owned[owner] == max(owned.values()) > owned[client] + 1
            theirs = [name for name, own in model.items() if own == owner]
            assert evicted == theirs[-1 if newest else 0]
            del model[evicted]
        model[entry] = client
        assert list(fair) == list(model)
        assert fair.owned(client) == Counter(model.values())[client]


def test_a_named_client_has_a_separate_limit() -> None:
    fair = FairLimit[int](10, per_client=1)
    fair.acquire(1, "a")
    with pytest.raises(LimitReached) as reached:
        fair.acquire(2, "a")
    assert (reached.value.count, reached.value.of_client) == (1, True)
    for entry in range(2, 8):
        assert fair.acquire(entry, "") is None


def test_an_entry_that_was_touched_is_evicted_last() -> None:
    fair = FairLimit[int](3)
    for entry in range(3):
        fair.acquire(entry, "a")
    fair.touch(0)

    assert fair.acquire(3, "b") == 1


def test_nothing_is_evicted_for_an_entry_that_may_not_evict() -> None:
    fair = FairLimit[int](2)
    fair.acquire(1, "a")
    fair.acquire(2, "a")

    with pytest.raises(LimitReached):
        fair.acquire(3, "b", evict=False)
    assert list(fair) == [1, 2]
