"""Protobuf messages and REST paths of x/upgrade; SDK: x/upgrade, proto/cosmos/upgrade."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message UpgradePlan {
  string name = 1; Timestamp! time = 2; int64 height = 3; string info = 4;
  Any upgraded_client_state = 5;
}
message ModuleVersion { string name = 1; uint64 version = 2; }
message upgrade.CurrentPlanRequest { }
message upgrade.CurrentPlanResponse { UpgradePlan plan = 1; }
message upgrade.AppliedPlanRequest { string name = 1; }
message upgrade.AppliedPlanResponse { int64 height = 1; }
message upgrade.UpgradedConsensusStateRequest { int64 last_height = 1; }
message upgrade.UpgradedConsensusStateResponse { bytes upgraded_consensus_state = 2; }
message upgrade.ModuleVersionsRequest { string module_name = 1; }
message upgrade.ModuleVersionsResponse { repeated ModuleVersion module_versions = 1; }
message upgrade.AuthorityRequest { }
message upgrade.AuthorityResponse { string address = 1; }
""")

ROUTES = """
GET /cosmos/upgrade/v1beta1/applied_plan/{name} AppliedPlan
GET /cosmos/upgrade/v1beta1/authority Authority
GET /cosmos/upgrade/v1beta1/current_plan CurrentPlan
GET /cosmos/upgrade/v1beta1/module_versions ModuleVersions
GET /cosmos/upgrade/v1beta1/upgraded_consensus_state/{last_height} UpgradedConsensusState
"""
"""REST paths, and the query methods that they call."""
