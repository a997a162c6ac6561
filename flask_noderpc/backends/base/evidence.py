"""Evidence pool of a backend, and the check that evidence proves an offence on this chain.

CometBFT: evidence/verify.go, with its texts.
"""

from __future__ import annotations

from ...domain.block import Evidence, LightClientAttackEvidence, SignedHeader
from ...domain.time import to_go_text
from ...errors import InvalidEvidence, NotFound, NotSupported
from ...protocol.comet.chain_state import evidence_bytes
from ...protocol.comet.evidence_rules import check_duplicate_vote, check_light_client_attack
from ...protocol.comet.validate_basic import check_evidence_basics
from .reads import ChainReads


class EvidencePool:
    """Pending evidence. The default accepts none."""

    def submit(self, piece: Evidence) -> bytes:
        """The hash of a piece of evidence, which now waits, or is in a block already.

        Raise :exc:`~flask_noderpc.errors.InvalidEvidence` or
        :exc:`~flask_noderpc.errors.EvidencePoolFull`.
        """
        raise NotSupported("this backend does not take evidence")


def check_evidence(backend: ChainReads, piece: Evidence) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidEvidence` unless it may get into a block.

    Whether it is in one already is for the backend to know.
    """
    try:
        check_evidence_basics(piece)
        _check_age(backend, piece)
        if isinstance(piece, LightClientAttackEvidence):
            _check_attack(backend, piece)
        else:
            members = backend.validators(piece.height)
            check_duplicate_vote(piece, backend.chain_id(), members)
    except (ValueError, NotFound) as error:
        raise InvalidEvidence(str(error)) from None


def _check_age(backend: ChainReads, piece: Evidence) -> None:
    time = _header(backend, piece.height, "don't have header #{}").header.time
    if piece.timestamp != time:
        raise ValueError(
            "evidence has a different time to the block it is associated with"
            f" ({to_go_text(piece.timestamp)} != {to_go_text(time)})"
        )
    latest = backend.latest_height()
    now = backend.block_meta(latest).header.time
    params = backend.consensus_params(latest + 1).evidence
    is_old = now - time > params.max_age_duration
    if is_old and latest - piece.height > params.max_age_num_blocks:
        raise ValueError(
            f"evidence from height {piece.height} (created at: {to_go_text(time)}) is too old;"
            f" min height is {latest - params.max_age_num_blocks} and evidence can not be older"
            f" than {to_go_text(now + params.max_age_duration)}"
        )
    # CometBFT lets it wait for a block for ever.
    if evidence_bytes(piece) > params.max_bytes:
        raise ValueError(
            f"it takes {evidence_bytes(piece)} bytes, a block takes {params.max_bytes}"
        )


def _check_attack(backend: ChainReads, piece: LightClientAttackEvidence) -> None:
    common = _header(backend, piece.common_height)
    trusted, shown = common, piece.conflicting_block.signed_header.header
    if shown.height > backend.latest_height():
        # The chain has not come so far; then it is a block that came too early.
        trusted = _header(backend, backend.latest_height())
        if trusted.header.time < shown.time:
            raise ValueError(
                f"latest block time ({to_go_text(trusted.header.time)}) is before"
                f" conflicting block time ({to_go_text(shown.time)})"
            )
    elif shown.height != piece.common_height:
        trusted = _header(backend, shown.height)
    check_light_client_attack(piece, common, trusted, backend.validators(piece.common_height))


def _header(
    backend: ChainReads, height: int, text: str = "don't have header at height #{}"
) -> SignedHeader:
    # CometBFT has no commit at the latest height yet; here it is the one that was seen.
    try:
        return backend.signed_header(height)[0]
    except NotFound:
        raise ValueError(text.format(height)) from None
