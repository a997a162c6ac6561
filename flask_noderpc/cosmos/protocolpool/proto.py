"""Protobuf messages and REST paths of x/protocolpool; SDK: proto/cosmos/protocolpool."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message PoolParams {
  repeated string enabled_distribution_denoms = 1; uint64 distribution_frequency = 2;
}
message ContinuousFund { string recipient = 1; Dec percentage = 2; Timestamp expiry = 3; }
message cosmos.protocolpool.v1.MsgFundCommunityPool {
  string depositor = 1; repeated Coin amount = 2;
}
message cosmos.protocolpool.v1.MsgFundCommunityPoolResponse { }
message cosmos.protocolpool.v1.MsgCommunityPoolSpend {
  string authority = 1; string recipient = 2; repeated Coin amount = 3;
}
message cosmos.protocolpool.v1.MsgCommunityPoolSpendResponse { }
message cosmos.protocolpool.v1.MsgCreateContinuousFund {
  string authority = 1; string recipient = 2; Dec percentage = 3; Timestamp expiry = 4;
}
message cosmos.protocolpool.v1.MsgCreateContinuousFundResponse { }
message cosmos.protocolpool.v1.MsgCancelContinuousFund {
  string authority = 1; string recipient = 2;
}
message cosmos.protocolpool.v1.MsgCancelContinuousFundResponse {
  Timestamp! canceled_time = 1; uint64 canceled_height = 2; string recipient = 3;
}
message cosmos.protocolpool.v1.MsgUpdateParams { string authority = 1; PoolParams! params = 2; }
message cosmos.protocolpool.v1.MsgUpdateParamsResponse { }
message protocolpool.CommunityPoolRequest { }
message protocolpool.CommunityPoolResponse { repeated Coin pool = 1; }
message protocolpool.ContinuousFundRequest { string recipient = 1; }
message protocolpool.ContinuousFundResponse { ContinuousFund! continuous_fund = 1; }
message protocolpool.ContinuousFundsRequest { }
message protocolpool.ContinuousFundsResponse { repeated ContinuousFund continuous_funds = 1; }
message protocolpool.ParamsRequest { }
message protocolpool.ParamsResponse { PoolParams! params = 1; }
""")

ROUTES = """
GET /cosmos/protocolpool/v1/community_pool CommunityPool
GET /cosmos/protocolpool/v1/continuous_funds ContinuousFunds
GET /cosmos/protocolpool/v1/continuous_funds/{recipient} ContinuousFund
GET /cosmos/protocolpool/v1/params Params
"""
"""REST paths, and the query methods that they call."""
