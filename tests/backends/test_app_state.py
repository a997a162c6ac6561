"""Tests of the application's state in order, and of pending transactions."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from flask_noderpc.backends.base.application import AppState, InitChain
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.testing.chains import DictState, make_chain
from tests.helpers.stores import make_store

# Few bytes, so that keys share prefixes, and one key longer than PostgreSQL can index.
_KEYS = st.lists(st.sampled_from([b"\0", b"a", b"\xff"]), max_size=4).map(b"".join)
_LONG = b"a" * 3000


def pages(state: AppState, prefix: bytes, size: int) -> list[tuple[bytes, bytes]]:
    """Return all pairs with a prefix, read page by page."""
    found: list[tuple[bytes, bytes]] = []
    while page := state.range(prefix, found[-1][0] if found else None, size):
        assert len(page) <= size
        found += page
    return found


@given(st.sets(_KEYS), _KEYS, st.integers(1, 5))
@example({_LONG, _LONG + b"\0", _LONG + b"a", b"a", b"b"}, b"a", 2)
@example({b"\xff\xff", b"\xff", b""}, b"\xff", 1)
def test_a_range_has_the_keys_with_a_prefix_in_order(
    keys: set[bytes], prefix: bytes, size: int
) -> None:
    state = DictState({key: b"value of " + key[:5] for key in keys})
    chain = make_chain(1)
    with TemporaryDirectory() as folder, closing(make_store(Path(folder) / "x.db")) as store:
        store.init_chain(chain.genesis, InitChain(b"", changes=state))

        found = pages(store.app_state, prefix, size)

    assert found == [(key, state[key]) for key in sorted(keys) if key.startswith(prefix)]
    assert found == pages(state, prefix, size)


def test_waiting_transactions_are_read_in_order(tmp_path: Path) -> None:
    with closing(make_store(tmp_path / "x.db", application=KVStore)) as store:
        store.init_chain(make_chain(1).genesis, InitChain())
        for number in range(5):
            store.mempool.submit(b"key=%d" % number)
        state = store.app_state

        first = state.waiting(limit=3)
        rest = state.waiting(first.stored[-1][0])

    assert [tx for _, tx in first.stored + rest.stored] == [b"key=%d" % n for n in range(5)]
    assert (first.total, rest.total, rest.incoming) == (5, 5, ())
