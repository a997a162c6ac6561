"""Bytes that are shown as a text."""

from __future__ import annotations

import codecs

_MARKS = "go-marks"


def _marked(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error(_MARKS, _marked)


def text_of(value: bytes) -> str:
    """The text that bytes are; each byte that is no UTF-8 becomes one U+FFFD."""
    # Go: unicode/utf8, DecodeRune: what is wrong is one byte long. Python's own "replace"
    # makes one mark of the beginning of a character.
    return value.decode("utf-8", _MARKS)
