"""Replace values that depend on the clock by their meaning."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

from .sides import Side

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_NEVER = ("0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z")
# A block's size depends on the digits of its times.
_SIZE = re.compile(r'"block_size":"\d+"')
_ADDRESS = re.compile(r"(?:tcp|http)?:?//(?:127\.0\.0\.1|0\.0\.0\.0|\[::\]):\d+")


def mask_of(side: Side, heights: int) -> Callable[[str], str]:
    """Return a function that replaces values of this chain in any text of its node."""
    labels: dict[str, str] = {}
    for height in range(1, heights + 1):
        _learn(labels, side.call("commit", height=str(height))["signed_header"], height)
    pattern = re.compile("|".join(sorted(map(re.escape, labels), key=len, reverse=True)))

    def mask(text: str) -> str:
        text = pattern.sub(lambda found: labels[found[0]], text)
        text = _TIME.sub(lambda found: found[0] if found[0] in _NEVER else "<time>", text)
        return _ADDRESS.sub("<address>", _SIZE.sub('"block_size":"<size>"', text))

    return mask


def _learn(labels: dict[str, str], signed: dict[str, dict[str, object]], height: int) -> None:
    header, commit = signed["header"], signed["commit"]
    block_id = commit["block_id"]
    assert isinstance(block_id, dict)
    _learn_bytes(labels, bytes.fromhex(block_id["hash"]), f"block {height}")
    _learn_bytes(labels, bytes.fromhex(block_id["parts"]["hash"]), f"parts {height}")
    if height > 1:
        own = bytes.fromhex(str(header["last_commit_hash"]))
        _learn_bytes(labels, own, f"commit in {height}")
        labels[str(header["time"])] = f"<time of {height}>"
    assert isinstance(commit["signatures"], list)
    for index, sig in enumerate(commit["signatures"]):
        if sig["signature"]:
            own = base64.b64decode(sig["signature"])
            _learn_bytes(labels, own, f"signature {index} of {height}")
            labels.setdefault(sig["timestamp"], f"<time of vote {index} of {height}>")


def _learn_bytes(labels: dict[str, str], value: bytes, meaning: str) -> None:
    digits = value.hex()
    labels[digits] = labels[digits.upper()] = f"<{meaning}>"
    labels[base64.b64encode(value).decode()] = f"<{meaning}>"
    # CometBFT writes six bytes of each hash into a vote's text.
    labels[digits[:12].upper()] = f"<{meaning} in short>"
