"""Decoding of bytes to text as Go does it."""

from __future__ import annotations

import codecs

_GO_ERRORS = "go-replace"


def _replace_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error(_GO_ERRORS, _replace_bytes)


def text_of(value: bytes) -> str:
    """Decode UTF-8; each invalid byte becomes one U+FFFD."""
    # Go: unicode/utf8, DecodeRune: an invalid sequence is one byte long. Python's "replace"
    # makes one U+FFFD of a truncated character.
    return value.decode("utf-8", _GO_ERRORS)
