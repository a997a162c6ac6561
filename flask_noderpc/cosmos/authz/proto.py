"""Protobuf messages and REST paths of x/authz; SDK: proto/cosmos/authz, and authorizations in
proto/cosmos/bank and proto/cosmos/staking."""

from __future__ import annotations

from ..protocol.proto import ENUMS, declare

ENUMS["AuthorizationType"] = {
    0: "AUTHORIZATION_TYPE_UNSPECIFIED",
    1: "AUTHORIZATION_TYPE_DELEGATE",
    2: "AUTHORIZATION_TYPE_UNDELEGATE",
    3: "AUTHORIZATION_TYPE_REDELEGATE",
    4: "AUTHORIZATION_TYPE_CANCEL_UNBONDING_DELEGATION",
}

declare("""
message cosmos.authz.v1beta1.GenericAuthorization { string msg = 1; }
message cosmos.bank.v1beta1.SendAuthorization {
  repeated Coin spend_limit = 1; repeated string allow_list = 2;
}
message StakeValidators { repeated string address = 1; }
message cosmos.staking.v1beta1.StakeAuthorization {
  Coin max_tokens = 1; StakeValidators? allow_list = 2; StakeValidators? deny_list = 3;
  AuthorizationType authorization_type = 4;
}
message AuthzGrant { Any authorization = 1; Timestamp expiration = 2; }
message GrantAuthorization {
  string granter = 1; string grantee = 2; Any authorization = 3; Timestamp expiration = 4;
}
message GrantQueueItem { repeated string msg_type_urls = 1; }
message cosmos.authz.v1beta1.MsgGrant {
  string granter = 1; string grantee = 2; AuthzGrant! grant = 3;
}
message cosmos.authz.v1beta1.MsgGrantResponse { }
message cosmos.authz.v1beta1.MsgExec { string grantee = 1; repeated Any msgs = 2; }
message cosmos.authz.v1beta1.MsgExecResponse { repeated bytes results = 1; }
message cosmos.authz.v1beta1.MsgRevoke {
  string granter = 1; string grantee = 2; string msg_type_url = 3;
}
message cosmos.authz.v1beta1.MsgRevokeResponse { }
message authz.GrantsRequest {
  string granter = 1; string grantee = 2; string msg_type_url = 3; PageRequest pagination = 4;
}
message authz.GrantsResponse { repeated AuthzGrant grants = 1; PageResponse pagination = 2; }
message authz.GranterGrantsRequest { string granter = 1; PageRequest pagination = 2; }
message authz.GranterGrantsResponse {
  repeated GrantAuthorization grants = 1; PageResponse pagination = 2;
}
message authz.GranteeGrantsRequest { string grantee = 1; PageRequest pagination = 2; }
message authz.GranteeGrantsResponse {
  repeated GrantAuthorization grants = 1; PageResponse pagination = 2;
}
""")

ROUTES = """
GET /cosmos/authz/v1beta1/grants Grants
GET /cosmos/authz/v1beta1/grants/grantee/{grantee} GranteeGrants
GET /cosmos/authz/v1beta1/grants/granter/{granter} GranterGrants
"""
"""REST paths, and the query methods that they call."""
