"""The query string of a GET."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote_to_bytes

from ..errors import InvalidParams


def values_of(query: bytes) -> Mapping[str, str]:
    """Return the values in a query string, of a repeated name the first; raise
    :exc:`~flask_noderpc.errors.InvalidParams` if it is not UTF-8."""
    check_text("query string", query)
    return dict(reversed(parse_qsl(query.decode(), keep_blank_values=True)))


def check_text(what: str, escaped: bytes) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidParams` if unescaped bytes are not UTF-8."""
    if escaped.isascii() and b"%" not in escaped:
        return
    # Werkzeug would leave such an escape as it is, and a transaction would be another.
    if not (is_utf8(escaped) and is_utf8(unquote_to_bytes(escaped))):
        raise not_utf8(what)


def not_utf8(what: str) -> InvalidParams:
    """Return the error for bytes that are not UTF-8."""
    return InvalidParams(f"the {what} is no UTF-8; write other bytes as hex behind 0x")


def is_utf8(text: bytes) -> bool:
    """Return true if the bytes are UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
