"""Protobuf messages and REST paths of x/evidence; SDK: proto/cosmos/evidence."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message cosmos.evidence.v1beta1.Equivocation {
  int64 height = 1; Timestamp! time = 2; int64 power = 3; string consensus_address = 4;
}
message cosmos.evidence.v1beta1.MsgSubmitEvidence { string submitter = 1; Any evidence = 2; }
message cosmos.evidence.v1beta1.MsgSubmitEvidenceResponse { bytes hash = 4; }
message evidence.EvidenceRequest { bytes evidence_hash = 1; string hash = 2; }
message evidence.EvidenceResponse { Any evidence = 1; }
message evidence.AllEvidenceRequest { PageRequest pagination = 1; }
message evidence.AllEvidenceResponse { repeated Any evidence = 1; PageResponse pagination = 2; }
""")

ROUTES = """
GET /cosmos/evidence/v1beta1/evidence AllEvidence
GET /cosmos/evidence/v1beta1/evidence/{hash} Evidence
"""
"""REST paths, and the query methods that they call."""
