"""Protobuf messages and REST paths of x/slashing; SDK: proto/cosmos/slashing."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message SlashingParams {
  int64 signed_blocks_window = 1; Dec! min_signed_per_window = 2;
  Duration! downtime_jail_duration = 3; Dec! slash_fraction_double_sign = 4;
  Dec! slash_fraction_downtime = 5;
}
message cosmos.slashing.v1beta1.MsgUpdateParams {
  string authority = 1; SlashingParams! params = 2;
}
message cosmos.slashing.v1beta1.MsgUpdateParamsResponse { }
message ValidatorSigningInfo {
  string address = 1; int64 start_height = 2; int64 index_offset = 3;
  Timestamp! jailed_until = 4; bool tombstoned = 5; int64 missed_blocks_counter = 6;
}
message cosmos.slashing.v1beta1.MsgUnjail { string validator_addr(address) = 1; }
message cosmos.slashing.v1beta1.MsgUnjailResponse { }
message slashing.ParamsRequest { }
message slashing.ParamsResponse { SlashingParams! params = 1; }
message slashing.SigningInfoRequest { string cons_address = 1; }
message slashing.SigningInfoResponse { ValidatorSigningInfo! val_signing_info = 1; }
message slashing.SigningInfosRequest { PageRequest pagination = 1; }
message slashing.SigningInfosResponse {
  repeated ValidatorSigningInfo info = 1; PageResponse pagination = 2;
}
""")

ROUTES = """
GET /cosmos/slashing/v1beta1/params Params
GET /cosmos/slashing/v1beta1/signing_infos SigningInfos
GET /cosmos/slashing/v1beta1/signing_infos/{cons_address} SigningInfo
"""
"""REST paths, and the query methods that they call."""
