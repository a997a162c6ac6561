"""Translate ``consensus_state`` and ``dump_consensus_state`` between versions of CometBFT.

The text of votes and one member of the dump differ. Evidence in a proposed block is not
translated.
"""

from __future__ import annotations

import re

from .. import jsoncodec

# CometBFT 0.38's types/vote.go adds a fingerprint of the vote extension to a vote's text.
_VOTE = re.compile(
    rb"(Vote\{\d+:[0-9A-F]{12} \d+/\d+/[^ ]+ [0-9A-F]{12} [0-9A-F]{12})(?: [0-9A-F]{12})?( @ )"
)
_WITHOUT_EXTENSION, _NO_EXTENSION = rb"\1\2", rb"\1 000000000000\2"
_VOTES = {
    "comet-0.34": _WITHOUT_EXTENSION,
    "comet-0.37": _WITHOUT_EXTENSION,
    "comet-0.38": _NO_EXTENSION,
    "comet-0.39": _NO_EXTENSION,
    "comet-0.40": _NO_EXTENSION,
    "comet-1.0": _NO_EXTENSION,
}
# CometBFT 1.0: consensus/types/round_state.go.
_RECEIVED = re.compile(rb'"proposal_receive_time"\s*:\s*"[^"]*"\s*,\s*')
_BLOCK = re.compile(rb'"proposal_block"\s*:')
_NOT_RECEIVED = rb'"proposal_receive_time":"0001-01-01T00:00:00Z",\g<0>'


def has_rounds(dialect: str) -> bool:
    """Return true for a dialect whose nodes serve the state of their consensus round."""
    return dialect in _VOTES


def translate_round(shown: jsoncodec.Raw, source: str, target: str) -> jsoncodec.Raw:
    """Translate the state of a consensus round from one dialect to another."""
    if source == target:
        return shown
    text = bytes(shown)
    if _VOTES[source] != _VOTES[target]:
        text = _VOTE.sub(_VOTES[target], text)
    if source == "comet-1.0":
        text = _RECEIVED.sub(b"", text)
    if target == "comet-1.0":
        text = _BLOCK.sub(_NOT_RECEIVED, text, count=1)
    return jsoncodec.Raw(text)
