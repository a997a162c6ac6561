"""The dialects by their names."""

from __future__ import annotations

from ..errors import ConfigurationError
from .dialect import Dialect
from .document import DOCUMENT

DIALECTS: dict[str, Dialect] = {DOCUMENT.name: DOCUMENT}


def dialect_named(name: str) -> Dialect:
    """The dialect; raise :exc:`~flask_noderpc.errors.ConfigurationError` for another."""
    try:
        return DIALECTS[name]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise ConfigurationError(f"NODERPC_DIALECT = {name!r}: known are {known}") from None
