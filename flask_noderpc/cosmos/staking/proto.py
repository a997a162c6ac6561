"""Protobuf messages and REST paths of x/staking; SDK: proto/cosmos/staking."""

from __future__ import annotations

from ..protocol.proto import declare

declare("""
message Description {
  string moniker = 1; string identity = 2; string website = 3; string security_contact = 4;
  string details = 5;
}
message CommissionRates { Dec! rate = 1; Dec! max_rate = 2; Dec! max_change_rate = 3; }
message Commission { CommissionRates! commission_rates = 1; Timestamp! update_time = 2; }
message StakingValidator {
  string! operator_address = 1; Any consensus_pubkey = 2; bool jailed = 3;
  BondStatus status = 4; Int tokens = 5; Dec delegator_shares = 6; Description! description = 7;
  int64 unbonding_height = 8; Timestamp! unbonding_time = 9; Commission! commission = 10;
  Int min_self_delegation = 11; int64 unbonding_on_hold_ref_count = 12;
  repeated uint64 unbonding_ids = 13;
}
message Delegation {
  string delegator_address = 1; string validator_address = 2; Dec shares = 3;
}
message UnbondingDelegationEntry {
  int64 creation_height = 1; Timestamp! completion_time = 2; Int initial_balance = 3;
  Int balance = 4; uint64 unbonding_id = 5; int64 unbonding_on_hold_ref_count = 6;
}
message UnbondingDelegation {
  string delegator_address = 1; string validator_address = 2;
  repeated UnbondingDelegationEntry entries = 3;
}
message RedelegationEntry {
  int64 creation_height = 1; Timestamp! completion_time = 2; Int initial_balance = 3;
  Dec shares_dst = 4; uint64 unbonding_id = 5; int64 unbonding_on_hold_ref_count = 6;
}
message Redelegation {
  string delegator_address = 1; string validator_src_address = 2;
  string validator_dst_address = 3; repeated RedelegationEntry entries = 4;
}
message DelegatedPair { string delegator_address = 1; string validator_address = 2; }
message DelegatedPairs { repeated DelegatedPair pairs = 1; }
message RedelegatedTriplet {
  string delegator_address = 1; string validator_src_address = 2;
  string validator_dst_address = 3;
}
message RedelegatedTriplets { repeated RedelegatedTriplet triplets = 1; }
message ValidatorAddresses { repeated string addresses = 1; }
message Int64Value { int64 value = 1; }
message HistoricalInfo { Header! header = 1; repeated StakingValidator valset = 2; }
message Pool { Int not_bonded_tokens = 1; Int bonded_tokens = 2; }
message StakingParams {
  Duration! unbonding_time = 1; uint32 max_validators = 2; uint32 max_entries = 3;
  uint32 historical_entries = 4; string bond_denom = 5; Dec! min_commission_rate = 6;
}
message LastValidatorPower { string address = 1; int64 power = 2; }
message DelegationResponse { Delegation! delegation = 1; Coin! balance = 2; }
message RedelegationEntryResponse {
  RedelegationEntry! redelegation_entry = 1; Int balance = 4;
}
message RedelegationResponse {
  Redelegation! redelegation = 1; repeated RedelegationEntryResponse entries = 2;
}

message cosmos.staking.v1beta1.MsgCreateValidator {
  Description! description = 1; CommissionRates! commission = 2; Int! min_self_delegation = 3;
  string delegator_address = 4; string validator_address = 5; Any pubkey = 6; Coin! value = 7;
}
message cosmos.staking.v1beta1.MsgEditValidator {
  Description! description = 1; string validator_address = 2; Dec commission_rate = 3;
  Int min_self_delegation = 4;
}
message cosmos.staking.v1beta1.MsgDelegate {
  string delegator_address = 1; string validator_address = 2; Coin! amount = 3;
}
message cosmos.staking.v1beta1.MsgBeginRedelegate {
  string delegator_address = 1; string validator_src_address = 2;
  string validator_dst_address = 3; Coin! amount = 4;
}
message cosmos.staking.v1beta1.MsgUndelegate {
  string delegator_address = 1; string validator_address = 2; Coin! amount = 3;
}
message cosmos.staking.v1beta1.MsgCancelUnbondingDelegation {
  string delegator_address = 1; string validator_address = 2; Coin! amount = 3;
  int64 creation_height = 4;
}
message cosmos.staking.v1beta1.MsgUpdateParams {
  string authority = 1; StakingParams! params = 2;
}
message cosmos.staking.v1beta1.MsgUpdateParamsResponse { }
message cosmos.staking.v1beta1.MsgCreateValidatorResponse { }
message cosmos.staking.v1beta1.MsgEditValidatorResponse { }
message cosmos.staking.v1beta1.MsgDelegateResponse { }
message cosmos.staking.v1beta1.MsgBeginRedelegateResponse { Timestamp! completion_time = 1; }
message cosmos.staking.v1beta1.MsgUndelegateResponse {
  Timestamp! completion_time = 1; Coin! amount = 2;
}
message cosmos.staking.v1beta1.MsgCancelUnbondingDelegationResponse { }

message staking.ValidatorsRequest { string status = 1; PageRequest pagination = 2; }
message staking.ValidatorsResponse {
  repeated StakingValidator validators = 1; PageResponse pagination = 2;
}
message staking.ValidatorRequest { string validator_addr = 1; }
message staking.ValidatorResponse { StakingValidator! validator = 1; }
message staking.ValidatorDelegationsRequest {
  string validator_addr = 1; PageRequest pagination = 2;
}
message staking.ValidatorDelegationsResponse {
  repeated DelegationResponse delegation_responses = 1; PageResponse pagination = 2;
}
message staking.ValidatorUnbondingDelegationsRequest {
  string validator_addr = 1; PageRequest pagination = 2;
}
message staking.ValidatorUnbondingDelegationsResponse {
  repeated UnbondingDelegation unbonding_responses = 1; PageResponse pagination = 2;
}
message staking.DelegationRequest { string delegator_addr = 1; string validator_addr = 2; }
message staking.DelegationResponse { DelegationResponse delegation_response = 1; }
message staking.UnbondingDelegationRequest {
  string delegator_addr = 1; string validator_addr = 2;
}
message staking.UnbondingDelegationResponse { UnbondingDelegation! unbond = 1; }
message staking.DelegatorDelegationsRequest {
  string delegator_addr = 1; PageRequest pagination = 2;
}
message staking.DelegatorDelegationsResponse {
  repeated DelegationResponse delegation_responses = 1; PageResponse pagination = 2;
}
message staking.DelegatorUnbondingDelegationsRequest {
  string delegator_addr = 1; PageRequest pagination = 2;
}
message staking.DelegatorUnbondingDelegationsResponse {
  repeated UnbondingDelegation unbonding_responses = 1; PageResponse pagination = 2;
}
message staking.RedelegationsRequest {
  string delegator_addr = 1; string src_validator_addr = 2; string dst_validator_addr = 3;
  PageRequest pagination = 4;
}
message staking.RedelegationsResponse {
  repeated RedelegationResponse redelegation_responses = 1; PageResponse pagination = 2;
}
message staking.DelegatorValidatorsRequest {
  string delegator_addr = 1; PageRequest pagination = 2;
}
message staking.DelegatorValidatorsResponse {
  repeated StakingValidator validators = 1; PageResponse pagination = 2;
}
message staking.DelegatorValidatorRequest {
  string delegator_addr = 1; string validator_addr = 2;
}
message staking.DelegatorValidatorResponse { StakingValidator! validator = 1; }
message staking.HistoricalInfoRequest { int64 height = 1; }
message staking.HistoricalInfoResponse { HistoricalInfo hist = 1; }
message staking.PoolRequest { }
message staking.PoolResponse { Pool! pool = 1; }
message staking.ParamsRequest { }
message staking.ParamsResponse { StakingParams! params = 1; }
""")

ROUTES = """
GET /cosmos/staking/v1beta1/delegations/{delegator_addr} DelegatorDelegations
GET /cosmos/staking/v1beta1/delegators/{delegator_addr}/redelegations Redelegations
GET /cosmos/staking/v1beta1/delegators/{delegator_addr}/unbonding_delegations \
DelegatorUnbondingDelegations
GET /cosmos/staking/v1beta1/delegators/{delegator_addr}/validators DelegatorValidators
GET /cosmos/staking/v1beta1/delegators/{delegator_addr}/validators/{validator_addr} \
DelegatorValidator
GET /cosmos/staking/v1beta1/historical_info/{height} HistoricalInfo
GET /cosmos/staking/v1beta1/params Params
GET /cosmos/staking/v1beta1/pool Pool
GET /cosmos/staking/v1beta1/validators Validators
GET /cosmos/staking/v1beta1/validators/{validator_addr} Validator
GET /cosmos/staking/v1beta1/validators/{validator_addr}/delegations ValidatorDelegations
GET /cosmos/staking/v1beta1/validators/{validator_addr}/delegations/{delegator_addr} Delegation
GET /cosmos/staking/v1beta1/validators/{validator_addr}/delegations/{delegator_addr}\
/unbonding_delegation UnbondingDelegation
GET /cosmos/staking/v1beta1/validators/{validator_addr}/unbonding_delegations \
ValidatorUnbondingDelegations
"""
"""REST paths, and the query methods that they call."""
