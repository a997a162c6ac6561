"""Protobuf messages and REST paths of x/gov; SDK: proto/cosmos/gov."""

from __future__ import annotations

from ..protocol.proto import ENUMS, declare

ENUMS["VoteOption"] = {
    0: "VOTE_OPTION_UNSPECIFIED",
    1: "VOTE_OPTION_YES",
    2: "VOTE_OPTION_ABSTAIN",
    3: "VOTE_OPTION_NO",
    4: "VOTE_OPTION_NO_WITH_VETO",
}
ENUMS["ProposalStatus"] = {
    0: "PROPOSAL_STATUS_UNSPECIFIED",
    1: "PROPOSAL_STATUS_DEPOSIT_PERIOD",
    2: "PROPOSAL_STATUS_VOTING_PERIOD",
    3: "PROPOSAL_STATUS_PASSED",
    4: "PROPOSAL_STATUS_REJECTED",
    5: "PROPOSAL_STATUS_FAILED",
}

declare("""
message WeightedVoteOption { VoteOption option = 1; string weight = 2; }
message GovDeposit { uint64 proposal_id = 1; string depositor = 2; repeated Coin amount = 3; }
message TallyResult {
  string yes_count = 1; string abstain_count = 2; string no_count = 3;
  string no_with_veto_count = 4;
}
message Proposal {
  uint64 id = 1; repeated Any messages = 2; ProposalStatus status = 3;
  TallyResult final_tally_result = 4; Timestamp submit_time = 5; Timestamp deposit_end_time = 6;
  repeated Coin total_deposit = 7; Timestamp voting_start_time = 8;
  Timestamp voting_end_time = 9; string metadata = 10; string title = 11; string summary = 12;
  string proposer = 13; bool expedited = 14; string failed_reason = 15;
}
message GovVote {
  uint64 proposal_id = 1; string voter = 2; repeated WeightedVoteOption options = 4;
  string metadata = 5;
}
message GovParams {
  repeated Coin min_deposit = 1; Duration max_deposit_period = 2; Duration voting_period = 3;
  string quorum = 4; string threshold = 5; string veto_threshold = 6;
  string min_initial_deposit_ratio = 7; string proposal_cancel_ratio = 8;
  string proposal_cancel_dest = 9; Duration expedited_voting_period = 10;
  string expedited_threshold = 11; repeated Coin expedited_min_deposit = 12;
  bool burn_vote_quorum = 13; bool burn_proposal_deposit_prevote = 14; bool burn_vote_veto = 15;
  string min_deposit_ratio = 16;
}
message DepositParams { repeated Coin min_deposit = 1; Duration max_deposit_period = 2; }
message VotingParams { Duration voting_period = 1; }
message TallyParams { string quorum = 1; string threshold = 2; string veto_threshold = 3; }

message cosmos.gov.v1.MsgSubmitProposal {
  repeated Any messages = 1; repeated Coin initial_deposit = 2; string proposer = 3;
  string metadata = 4; string title = 5; string summary = 6; bool expedited = 7;
}
message cosmos.gov.v1.MsgSubmitProposalResponse { uint64 proposal_id = 1; }
message cosmos.gov.v1.MsgExecLegacyContent { Any content = 1; string authority = 2; }
message cosmos.gov.v1.MsgExecLegacyContentResponse { }
message cosmos.gov.v1.MsgVote {
  uint64! proposal_id = 1; string voter = 2; VoteOption option = 3; string metadata = 4;
}
message cosmos.gov.v1.MsgVoteResponse { }
message cosmos.gov.v1.MsgVoteWeighted {
  uint64! proposal_id = 1; string voter = 2; repeated WeightedVoteOption options = 3;
  string metadata = 4;
}
message cosmos.gov.v1.MsgVoteWeightedResponse { }
message cosmos.gov.v1.MsgDeposit {
  uint64! proposal_id = 1; string depositor = 2; repeated Coin amount = 3;
}
message cosmos.gov.v1.MsgDepositResponse { }
message cosmos.gov.v1.MsgUpdateParams { string authority = 1; GovParams! params = 2; }
message cosmos.gov.v1.MsgUpdateParamsResponse { }
message cosmos.gov.v1.MsgCancelProposal { uint64 proposal_id = 1; string proposer = 2; }
message cosmos.gov.v1.MsgCancelProposalResponse {
  uint64 proposal_id = 1; Timestamp! canceled_time = 2; uint64 canceled_height = 3;
}

message gov.ConstitutionRequest { }
message gov.ConstitutionResponse { string constitution = 1; }
message gov.ProposalRequest { uint64 proposal_id = 1; }
message gov.ProposalResponse { Proposal proposal = 1; }
message gov.ProposalsRequest {
  ProposalStatus proposal_status = 1; string voter = 2; string depositor = 3;
  PageRequest pagination = 4;
}
message gov.ProposalsResponse { repeated Proposal proposals = 1; PageResponse pagination = 2; }
message gov.VoteRequest { uint64 proposal_id = 1; string voter = 2; }
message gov.VoteResponse { GovVote vote = 1; }
message gov.VotesRequest { uint64 proposal_id = 1; PageRequest pagination = 2; }
message gov.VotesResponse { repeated GovVote votes = 1; PageResponse pagination = 2; }
message gov.ParamsRequest { string params_type = 1; }
message gov.ParamsResponse {
  VotingParams voting_params = 1; DepositParams deposit_params = 2;
  TallyParams tally_params = 3; GovParams params = 4;
}
message gov.DepositRequest { uint64 proposal_id = 1; string depositor = 2; }
message gov.DepositResponse { GovDeposit deposit = 1; }
message gov.DepositsRequest { uint64 proposal_id = 1; PageRequest pagination = 2; }
message gov.DepositsResponse { repeated GovDeposit deposits = 1; PageResponse pagination = 2; }
message gov.TallyResultRequest { uint64 proposal_id = 1; }
message gov.TallyResultResponse { TallyResult tally = 1; }

message cosmos.gov.v1beta1.TextProposal { string title = 1; string description = 2; }
message cosmos.distribution.v1beta1.CommunityPoolSpendProposal {
  string title = 1; string description = 2; string recipient = 3; repeated Coin amount = 4;
}
message LegacyVoteOption { VoteOption option = 1; Dec! weight = 2; }
message LegacyTallyResult {
  Int! yes = 1; Int! abstain = 2; Int! no = 3; Int! no_with_veto = 4;
}
message LegacyProposal {
  uint64 proposal_id = 1; Any content = 2; ProposalStatus status = 3;
  LegacyTallyResult! final_tally_result = 4; Timestamp! submit_time = 5;
  Timestamp! deposit_end_time = 6; repeated Coin total_deposit = 7;
  Timestamp! voting_start_time = 8; Timestamp! voting_end_time = 9;
}
message LegacyVote {
  uint64 proposal_id = 1; string voter = 2; VoteOption option = 3;
  repeated LegacyVoteOption options = 4;
}
message LegacyDepositParams { repeated Coin min_deposit = 1; Duration! max_deposit_period = 2; }
message LegacyVotingParams { Duration! voting_period = 1; }
message LegacyTallyParams { Dec! quorum = 1; Dec! threshold = 2; Dec! veto_threshold = 3; }
message cosmos.gov.v1beta1.MsgSubmitProposal {
  Any content = 1; repeated Coin initial_deposit = 2; string proposer = 3;
}
message cosmos.gov.v1beta1.MsgSubmitProposalResponse { uint64 proposal_id = 1; }
message cosmos.gov.v1beta1.MsgVote {
  uint64 proposal_id = 1; string voter = 2; VoteOption option = 3;
}
message cosmos.gov.v1beta1.MsgVoteResponse { }
message cosmos.gov.v1beta1.MsgVoteWeighted {
  uint64! proposal_id = 1; string voter = 2; repeated LegacyVoteOption options = 3;
}
message cosmos.gov.v1beta1.MsgVoteWeightedResponse { }
message cosmos.gov.v1beta1.MsgDeposit {
  uint64! proposal_id = 1; string depositor = 2; repeated Coin amount = 3;
}
message cosmos.gov.v1beta1.MsgDepositResponse { }

message gov.v1beta1.ProposalRequest { uint64 proposal_id = 1; }
message gov.v1beta1.ProposalResponse { LegacyProposal! proposal = 1; }
message gov.v1beta1.ProposalsRequest {
  ProposalStatus proposal_status = 1; string voter = 2; string depositor = 3;
  PageRequest pagination = 4;
}
message gov.v1beta1.ProposalsResponse {
  repeated LegacyProposal proposals = 1; PageResponse pagination = 2;
}
message gov.v1beta1.VoteRequest { uint64 proposal_id = 1; string voter = 2; }
message gov.v1beta1.VoteResponse { LegacyVote! vote = 1; }
message gov.v1beta1.VotesRequest { uint64 proposal_id = 1; PageRequest pagination = 2; }
message gov.v1beta1.VotesResponse {
  repeated LegacyVote votes = 1; PageResponse pagination = 2;
}
message gov.v1beta1.ParamsRequest { string params_type = 1; }
message gov.v1beta1.ParamsResponse {
  LegacyVotingParams! voting_params = 1; LegacyDepositParams! deposit_params = 2;
  LegacyTallyParams! tally_params = 3;
}
message gov.v1beta1.DepositRequest { uint64 proposal_id = 1; string depositor = 2; }
message gov.v1beta1.DepositResponse { GovDeposit! deposit = 1; }
message gov.v1beta1.DepositsRequest { uint64 proposal_id = 1; PageRequest pagination = 2; }
message gov.v1beta1.DepositsResponse {
  repeated GovDeposit deposits = 1; PageResponse pagination = 2;
}
message gov.v1beta1.TallyResultRequest { uint64 proposal_id = 1; }
message gov.v1beta1.TallyResultResponse { LegacyTallyResult! tally = 1; }
""")

_PATHS = """
GET {0}/params/{{params_type}} Params
GET {0}/proposals Proposals
GET {0}/proposals/{{proposal_id}} Proposal
GET {0}/proposals/{{proposal_id}}/deposits Deposits
GET {0}/proposals/{{proposal_id}}/deposits/{{depositor}} Deposit
GET {0}/proposals/{{proposal_id}}/tally TallyResult
GET {0}/proposals/{{proposal_id}}/votes Votes
GET {0}/proposals/{{proposal_id}}/votes/{{voter}} Vote
"""
ROUTES = f"GET /cosmos/gov/v1/constitution Constitution{_PATHS.format('/cosmos/gov/v1')}"
"""REST paths, and the query methods that they call."""
LEGACY_ROUTES = _PATHS.format("/cosmos/gov/v1beta1")
"""REST paths of the version v1beta1."""
