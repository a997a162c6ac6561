"""Uncommitted writes to a state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.cosmos.bank.state import Branch, Committed
from flask_noderpc.testing.chains import DictState

KEYS = st.binary(max_size=2)
WRITES = st.lists(st.tuples(KEYS, st.none() | st.just(b"value")), max_size=30)


@given(st.lists(KEYS), st.lists(WRITES, max_size=4), KEYS)
def test_pairs_are_those_of_the_state_with_all_writes(
    stored: list[bytes], steps: list[list[tuple[bytes, bytes | None]]], prefix: bytes
) -> None:
    state = DictState(dict.fromkeys(stored, b"stored"))
    branch, expected = Branch(Committed(state)), dict(state)
    # Each list of writes is applied from a branch on top, after the pairs have been read.
    for step in steps:
        inner = branch.branch()
        inner.writes |= dict(step)
        for key, value in inner.writes.items():
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        wanted = sorted(pair for pair in expected.items() if pair[0].startswith(prefix))
        assert list(inner.pairs(prefix)) == wanted
        branch.apply(inner)
        assert list(branch.pairs(prefix)) == wanted
