"""Protobuf messages and REST paths of x/distribution; SDK: proto/cosmos/distribution."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message DistributionParams {
  Dec! community_tax = 1; Dec! base_proposer_reward = 2; Dec! bonus_proposer_reward = 3;
  bool withdraw_addr_enabled = 4;
}
message FeePool { repeated DecCoin community_pool = 1; }
message BytesValue { bytes value = 1; }
message ValidatorHistoricalRewards {
  repeated DecCoin cumulative_reward_ratio = 1; uint32 reference_count = 2;
}
message ValidatorCurrentRewards { repeated DecCoin rewards = 1; uint64 period = 2; }
message ValidatorAccumulatedCommission { repeated DecCoin commission = 1; }
message ValidatorOutstandingRewards { repeated DecCoin rewards = 1; }
message ValidatorSlashEvent { uint64 validator_period = 1; Dec fraction = 2; }
message DelegatorStartingInfo { uint64 previous_period = 1; Dec stake = 2; uint64 height = 3; }
message DelegationDelegatorReward { string validator_address = 1; repeated DecCoin reward = 2; }

message cosmos.distribution.v1beta1.MsgSetWithdrawAddress {
  string delegator_address = 1; string withdraw_address = 2;
}
message cosmos.distribution.v1beta1.MsgWithdrawDelegatorReward {
  string delegator_address = 1; string validator_address = 2;
}
message cosmos.distribution.v1beta1.MsgWithdrawValidatorCommission {
  string validator_address = 1;
}
message cosmos.distribution.v1beta1.MsgFundCommunityPool {
  repeated Coin amount = 1; string depositor = 2;
}
message cosmos.distribution.v1beta1.MsgDepositValidatorRewardsPool {
  string depositor = 1; string validator_address = 2; repeated Coin amount = 3;
}
message cosmos.distribution.v1beta1.MsgUpdateParams {
  string authority = 1; DistributionParams! params = 2;
}
message cosmos.distribution.v1beta1.MsgCommunityPoolSpend {
  string authority = 1; string recipient = 2; repeated Coin amount = 3;
}
message cosmos.distribution.v1beta1.MsgUpdateParamsResponse { }
message cosmos.distribution.v1beta1.MsgCommunityPoolSpendResponse { }
message cosmos.distribution.v1beta1.MsgSetWithdrawAddressResponse { }
message cosmos.distribution.v1beta1.MsgWithdrawDelegatorRewardResponse {
  repeated Coin amount = 1;
}
message cosmos.distribution.v1beta1.MsgWithdrawValidatorCommissionResponse {
  repeated Coin amount = 1;
}
message cosmos.distribution.v1beta1.MsgFundCommunityPoolResponse { }
message cosmos.distribution.v1beta1.MsgDepositValidatorRewardsPoolResponse { }

message distribution.ParamsRequest { }
message distribution.ParamsResponse { DistributionParams! params = 1; }
message distribution.ValidatorDistributionInfoRequest { string validator_address = 1; }
message distribution.ValidatorDistributionInfoResponse {
  string operator_address = 1; repeated DecCoin self_bond_rewards = 2;
  repeated DecCoin commission = 3;
}
message distribution.ValidatorOutstandingRewardsRequest { string validator_address = 1; }
message distribution.ValidatorOutstandingRewardsResponse {
  ValidatorOutstandingRewards! rewards = 1;
}
message distribution.ValidatorCommissionRequest { string validator_address = 1; }
message distribution.ValidatorCommissionResponse {
  ValidatorAccumulatedCommission! commission = 1;
}
message distribution.ValidatorSlashesRequest {
  string validator_address = 1; uint64 starting_height = 2; uint64 ending_height = 3;
  PageRequest pagination = 4;
}
message distribution.ValidatorSlashesResponse {
  repeated ValidatorSlashEvent slashes = 1; PageResponse pagination = 2;
}
message distribution.DelegationRewardsRequest {
  string delegator_address = 1; string validator_address = 2;
}
message distribution.DelegationRewardsResponse { repeated DecCoin rewards = 1; }
message distribution.DelegationTotalRewardsRequest { string delegator_address = 1; }
message distribution.DelegationTotalRewardsResponse {
  repeated DelegationDelegatorReward rewards = 1; repeated DecCoin total = 2;
}
message distribution.DelegatorValidatorsRequest { string delegator_address = 1; }
message distribution.DelegatorValidatorsResponse { repeated string validators = 1; }
message distribution.DelegatorWithdrawAddressRequest { string delegator_address = 1; }
message distribution.DelegatorWithdrawAddressResponse { string withdraw_address = 1; }
message distribution.CommunityPoolRequest { }
message distribution.CommunityPoolResponse { repeated DecCoin pool = 1; }
""")

ROUTES = """
GET /cosmos/distribution/v1beta1/community_pool CommunityPool
GET /cosmos/distribution/v1beta1/delegators/{delegator_address}/rewards DelegationTotalRewards
GET /cosmos/distribution/v1beta1/delegators/{delegator_address}/rewards/{validator_address} \
DelegationRewards
GET /cosmos/distribution/v1beta1/delegators/{delegator_address}/validators DelegatorValidators
GET /cosmos/distribution/v1beta1/delegators/{delegator_address}/withdraw_address \
DelegatorWithdrawAddress
GET /cosmos/distribution/v1beta1/params Params
GET /cosmos/distribution/v1beta1/validators/{validator_address} ValidatorDistributionInfo
GET /cosmos/distribution/v1beta1/validators/{validator_address}/commission ValidatorCommission
GET /cosmos/distribution/v1beta1/validators/{validator_address}/outstanding_rewards \
ValidatorOutstandingRewards
GET /cosmos/distribution/v1beta1/validators/{validator_address}/slashes ValidatorSlashes
"""
"""REST paths, and the query methods that they call."""
