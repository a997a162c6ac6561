"""Short text forms of votes and vote sets, as nodes print them."""

from __future__ import annotations

from ..domain.block import Vote, VoteType
from ..domain.consensus import VoteSet
from ..domain.time import to_text

# CometBFT: types/vote.go, the type's own name and a shorter one.
_TYPES: dict[int, str] = {
    VoteType.PREVOTE: "SIGNED_MSG_TYPE_PREVOTE(Prevote)",
    VoteType.PRECOMMIT: "SIGNED_MSG_TYPE_PRECOMMIT(Precommit)",
}


def vote_repr(vote: Vote | None) -> str:
    """Return the text of a vote, or of an absent one, in CometBFT 0.38 and later."""
    return _text(vote, (vote.extension,) if vote else ())


def short_vote_repr(vote: Vote | None) -> str:
    """Return the text of a vote in CometBFT 0.34 and 0.37, without vote extensions."""
    return _text(vote, ())


def _text(vote: Vote | None, extension: tuple[bytes, ...]) -> str:
    if vote is None:
        return "nil-Vote"
    if vote.type not in _TYPES:
        raise ValueError("Unknown vote type")
    prints = " ".join(map(fingerprint, (vote.block_id.hash, vote.signature, *extension)))
    return (
        f"Vote{{{vote.validator_index}:{fingerprint(vote.validator_address)}"
        f" {vote.height}/{vote.round:02}/{_TYPES[vote.type]} {prints}"
        f" @ {to_text(vote.timestamp)}}}"
    )


def fingerprint(value: bytes) -> str:
    """Return the first six bytes, padded with zeros."""
    # CometBFT: libs/bytes/byteslice.go.
    return value[:6].ljust(6, b"\0").hex().upper()


def bit_array_text(votes: VoteSet) -> str:
    """Return the bit array of the votes, and their part of the voting power."""
    # CometBFT: types/vote_set.go, bitArrayString.
    bits = "".join("_" if vote is None else "x" for vote in votes.votes)
    voted, total = votes.voted_power, votes.total_power
    share = f"{float(voted) / float(total):.2f}" if total else "NaN"
    return f"BA{{{len(bits)}:{bits}}} {voted}/{total} = {share}"
