"""Protobuf messages and REST paths of x/feegrant; SDK: proto/cosmos/feegrant."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message cosmos.feegrant.v1beta1.BasicAllowance {
  repeated Coin spend_limit = 1; Timestamp expiration = 2;
}
message cosmos.feegrant.v1beta1.PeriodicAllowance {
  cosmos.feegrant.v1beta1.BasicAllowance! basic = 1; Duration! period = 2;
  repeated Coin period_spend_limit = 3; repeated Coin period_can_spend = 4;
  Timestamp! period_reset = 5;
}
message cosmos.feegrant.v1beta1.AllowedMsgAllowance {
  Any allowance = 1; repeated string allowed_messages = 2;
}
message FeeGrant { string granter = 1; string grantee = 2; Any allowance = 3; }
message cosmos.feegrant.v1beta1.MsgGrantAllowance {
  string granter = 1; string grantee = 2; Any allowance = 3;
}
message cosmos.feegrant.v1beta1.MsgGrantAllowanceResponse { }
message cosmos.feegrant.v1beta1.MsgRevokeAllowance { string granter = 1; string grantee = 2; }
message cosmos.feegrant.v1beta1.MsgRevokeAllowanceResponse { }
message cosmos.feegrant.v1beta1.MsgPruneAllowances { string pruner = 1; }
message cosmos.feegrant.v1beta1.MsgPruneAllowancesResponse { }
message feegrant.AllowanceRequest { string granter = 1; string grantee = 2; }
message feegrant.AllowanceResponse { FeeGrant allowance = 1; }
message feegrant.AllowancesRequest { string grantee = 1; PageRequest pagination = 2; }
message feegrant.AllowancesResponse {
  repeated FeeGrant allowances = 1; PageResponse pagination = 2;
}
message feegrant.AllowancesByGranterRequest {
  string granter = 1; PageRequest pagination = 2;
}
message feegrant.AllowancesByGranterResponse {
  repeated FeeGrant allowances = 1; PageResponse pagination = 2;
}
""")

ROUTES = """
GET /cosmos/feegrant/v1beta1/allowance/{granter}/{grantee} Allowance
GET /cosmos/feegrant/v1beta1/allowances/{grantee} Allowances
GET /cosmos/feegrant/v1beta1/issued/{granter} AllowancesByGranter
"""
"""REST paths, and the query methods that they call."""
