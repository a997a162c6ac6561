"""Tests of bytes that are shown as text."""

from __future__ import annotations

import pytest

from flask_noderpc.jsoncodec import text_of


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"", ""),
        ("schlüssel €😀".encode(), "schlüssel €😀"),
        (b"\xff=\xfe", "\ufffd=\ufffd"),
        # An incomplete character: Go replaces each of its bytes.
        (b"\xe2\x82x", "\ufffd\ufffdx"),
        (b"\xf0\x9f\x98", "\ufffd\ufffd\ufffd"),
        # Half of a surrogate pair, and a code point beyond the last.
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
    ],
)
def test_each_byte_that_is_no_utf_8_becomes_one_mark(value: bytes, shown: str) -> None:
    assert text_of(value) == shown
