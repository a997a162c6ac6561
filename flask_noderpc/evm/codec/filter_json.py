"""Filter objects as a store keeps them: the JSON that clients write, in one form."""

from __future__ import annotations

from ... import jsoncodec
from . import hex
from .log_filter import FilterObject, LogFilter
from .params import Height


def criteria_text(wanted: LogFilter) -> str:
    """The filter as JSON."""
    members: dict[str, object] = {
        "address": [hex.data(address) for address in wanted.addresses],
        "topics": [[hex.data(topic) for topic in topics] for topics in wanted.topics],
    }
    if wanted.block_hash is not None:
        members["blockHash"] = hex.data(wanted.block_hash)
    else:
        members["fromBlock"], members["toBlock"] = _block(wanted.first), _block(wanted.last)
    return jsoncodec.encode(members).decode()


def _block(height: Height) -> str:
    return hex.quantity(height) if isinstance(height, int) else height.value


def criteria_of(text: str) -> LogFilter:
    """The filter that a text says."""
    return FilterObject().from_json(jsoncodec.decode(text))
