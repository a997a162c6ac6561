"""Evidence that a validator has misbehaved."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.block import Evidence
from ..domain.rpc_results import ResultBroadcastEvidence
from ..errors import EvidencePoolFull, InvalidEvidence, ValueNotAllowed
from ..jsonrpc.context import Context
from ..jsonrpc.params import Params, param
from ..protocol.comet.validate_basic import check_evidence_basics
from ..wire.comet.evidence import EvidenceObject


@dataclass(frozen=True, slots=True)
class EvidenceParams(Params):
    """Parameters of ``broadcast_evidence``."""

    evidence: Evidence | None = param(
        EvidenceObject(),
        default=None,
        doc="The evidence: an object with the name of its ``type``, and its ``value``.",
    )


def broadcast_evidence(ctx: Context, params: EvidenceParams) -> ResultBroadcastEvidence:
    """The hash of a piece of evidence, which then waits for a block.

    Evidence that waits already, or is in a block, is answered the same way.
    """
    if params.evidence is None:
        raise ValueNotAllowed("no evidence was provided")
    # CometBFT: rpc/core/evidence.go; its text ends with the evidence, which the caller knows.
    try:
        check_evidence_basics(params.evidence)
    except ValueError as error:
        raise InvalidEvidence(f"evidence.ValidateBasic failed: {error}") from None
    try:
        return ResultBroadcastEvidence(ctx.backend.evidence.submit(params.evidence))
    except InvalidEvidence as error:
        raise InvalidEvidence(f"failed to add evidence: Invalid evidence: {error}") from None
    except EvidencePoolFull as error:
        raise InvalidEvidence(f"failed to add evidence: {error}") from None
