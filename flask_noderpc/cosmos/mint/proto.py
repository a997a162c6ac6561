"""Protobuf messages and REST paths of x/mint; SDK: proto/cosmos/mint."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message MintParams {
  string mint_denom = 1; Dec! inflation_rate_change = 2; Dec! inflation_max = 3;
  Dec! inflation_min = 4; Dec! goal_bonded = 5; uint64 blocks_per_year = 6;
}
message cosmos.mint.v1beta1.MsgUpdateParams { string authority = 1; MintParams! params = 2; }
message cosmos.mint.v1beta1.MsgUpdateParamsResponse { }
message Minter { Dec inflation = 1; Dec annual_provisions = 2; }
message mint.ParamsRequest { }
message mint.ParamsResponse { MintParams! params = 1; }
message mint.InflationRequest { }
message mint.InflationResponse { Dec inflation = 1; }
message mint.AnnualProvisionsRequest { }
message mint.AnnualProvisionsResponse { Dec annual_provisions = 1; }
""")

ROUTES = """
GET /cosmos/mint/v1beta1/annual_provisions AnnualProvisions
GET /cosmos/mint/v1beta1/inflation Inflation
GET /cosmos/mint/v1beta1/params Params
"""
"""REST paths, and the query methods that they call."""
