"""Protobuf messages of x/auth/vesting; SDK: proto/cosmos/vesting."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message cosmos.vesting.v1beta1.MsgCreateVestingAccount {
  string from_address = 1; string to_address = 2; repeated Coin amount = 3; int64 end_time = 4;
  bool delayed = 5;
}
message cosmos.vesting.v1beta1.MsgCreateVestingAccountResponse { }
message cosmos.vesting.v1beta1.MsgCreatePermanentLockedAccount {
  string from_address = 1; string to_address = 2; repeated Coin amount = 3;
}
message cosmos.vesting.v1beta1.MsgCreatePermanentLockedAccountResponse { }
message cosmos.vesting.v1beta1.MsgCreatePeriodicVestingAccount {
  string from_address = 1; string to_address = 2; int64 start_time = 3;
  repeated cosmos.vesting.v1beta1.Period vesting_periods = 4;
}
message cosmos.vesting.v1beta1.MsgCreatePeriodicVestingAccountResponse { }
""")

ROUTES = ""
"""The module has no queries."""
