"""Protobuf messages of the SDK, from its .proto files in proto/cosmos.

:class:`~flask_noderpc.protocol.protobuf.Messages` describes the syntax.
"""

from __future__ import annotations

from dataclasses import replace

from ...domain.time import SECOND
from ...protocol.comet.messages import MESSAGES as COMET_MESSAGES
from ...protocol.protobuf import Message, Messages, integer

_TEXT = """
message Any { string type_url = 1; bytes value = 2; }
message Coin { string denom = 1; string amount = 2; }
message DecCoin { string! denom = 1; Dec amount = 2; }
message PageRequest {
  bytes key = 1; uint64 offset = 2; uint64 limit = 3; bool count_total = 4; bool reverse = 5;
}
message PageResponse { bytes next_key = 1; uint64 total = 2; }

message cosmos.auth.v1beta1.BaseAccount {
  string! address = 1; Any pub_key(key) = 2; uint64 account_number(number) = 3;
  uint64 sequence = 4;
}
message cosmos.auth.v1beta1.ModuleAccount {
  cosmos.auth.v1beta1.BaseAccount base_account = 1; string! name = 2;
  repeated string permissions = 3;
}
message cosmos.vesting.v1beta1.BaseVestingAccount {
  cosmos.auth.v1beta1.BaseAccount base_account = 1; repeated Coin original_vesting = 2;
  repeated Coin delegated_free = 3; repeated Coin delegated_vesting = 4; int64 end_time = 5;
}
message cosmos.vesting.v1beta1.ContinuousVestingAccount {
  cosmos.vesting.v1beta1.BaseVestingAccount base_vesting_account = 1; int64 start_time = 2;
}
message cosmos.vesting.v1beta1.DelayedVestingAccount {
  cosmos.vesting.v1beta1.BaseVestingAccount base_vesting_account = 1;
}
message cosmos.vesting.v1beta1.Period { int64 length = 1; repeated Coin amount = 2; }
message cosmos.vesting.v1beta1.PeriodicVestingAccount {
  cosmos.vesting.v1beta1.BaseVestingAccount base_vesting_account = 1; int64 start_time = 2;
  repeated cosmos.vesting.v1beta1.Period vesting_periods = 3;
}
message cosmos.vesting.v1beta1.PermanentLockedAccount {
  cosmos.vesting.v1beta1.BaseVestingAccount base_vesting_account = 1;
}
message AuthParams {
  uint64 max_memo_characters = 1; uint64 tx_sig_limit = 2; uint64 tx_size_cost_per_byte = 3;
  uint64 sig_verify_cost_ed25519 = 4; uint64 sig_verify_cost_secp256k1 = 5;
}
message cosmos.crypto.secp256k1.PubKey { bytes key = 1; }
message cosmos.crypto.ed25519.PubKey { bytes key = 1; }
message cosmos.crypto.multisig.LegacyAminoPubKey {
  uint32 threshold = 1; repeated Any public_keys(keys) = 2;
}

message auth.AccountRequest { string address = 1; }
message auth.AccountResponse { Any account = 1; }
message auth.AccountInfoRequest { string address = 1; }
message auth.AccountInfoResponse { cosmos.auth.v1beta1.BaseAccount info = 1; }
message auth.AccountsRequest { PageRequest pagination = 1; }
message auth.AccountsResponse { repeated Any accounts = 1; PageResponse pagination = 2; }
message auth.ParamsRequest { }
message auth.ParamsResponse { AuthParams! params = 1; }
message auth.ModuleAccountsRequest { }
message auth.ModuleAccountsResponse { repeated Any accounts = 1; }
message auth.ModuleAccountByNameRequest { string name = 1; }
message auth.ModuleAccountByNameResponse { Any account = 1; }
message auth.Bech32PrefixRequest { }
message auth.Bech32PrefixResponse { string bech32_prefix = 1; }
message auth.AddressBytesToStringRequest { bytes address_bytes = 1; }
message auth.AddressBytesToStringResponse { string address_string = 1; }
message auth.AddressStringToBytesRequest { string address_string = 1; }
message auth.AddressStringToBytesResponse { bytes address_bytes = 1; }
message auth.AccountAddressByIDRequest { int64 id = 1; uint64 account_id = 2; }
message auth.AccountAddressByIDResponse { string account_address = 1; }

message SendEnabled { string denom = 1; bool enabled = 2; }
message DenomUnit { string! denom = 1; uint32 exponent = 2; repeated string aliases = 3; }
message Metadata {
  string description = 1; repeated DenomUnit denom_units = 2; string base = 3;
  string display = 4; string name = 5; string symbol = 6; string uri = 7; string uri_hash = 8;
}
message DenomOwner { string address = 1; Coin! balance = 2; }
message BankParams { repeated SendEnabled send_enabled = 1; bool default_send_enabled = 2; }
message bank.AllBalancesRequest {
  string address = 1; PageRequest pagination = 2; bool resolve_denom = 3;
}
message bank.AllBalancesResponse { repeated Coin balances = 1; PageResponse pagination = 2; }
message bank.SpendableBalancesRequest { string address = 1; PageRequest pagination = 2; }
message bank.SpendableBalancesResponse {
  repeated Coin balances = 1; PageResponse pagination = 2;
}
message bank.BalanceRequest { string address = 1; string denom = 2; }
message bank.BalanceResponse { Coin balance = 1; }
message bank.SpendableBalanceByDenomRequest { string address = 1; string denom = 2; }
message bank.SpendableBalanceByDenomResponse { Coin balance = 1; }
message bank.TotalSupplyRequest { PageRequest pagination = 1; }
message bank.TotalSupplyResponse { repeated Coin supply = 1; PageResponse pagination = 2; }
message bank.SupplyOfRequest { string denom = 1; }
message bank.SupplyOfResponse { Coin! amount = 1; }
message bank.DenomsMetadataRequest { PageRequest pagination = 1; }
message bank.DenomsMetadataResponse {
  repeated Metadata metadatas = 1; PageResponse pagination = 2;
}
message bank.DenomMetadataRequest { string denom = 1; }
message bank.DenomMetadataResponse { Metadata! metadata = 1; }
message bank.DenomMetadataByQueryStringRequest { string denom = 1; }
message bank.DenomMetadataByQueryStringResponse { Metadata! metadata = 1; }
message bank.DenomOwnersRequest { string denom = 1; PageRequest pagination = 2; }
message bank.DenomOwnersResponse {
  repeated DenomOwner denom_owners = 1; PageResponse pagination = 2;
}
message bank.DenomOwnersByQueryRequest { string denom = 1; PageRequest pagination = 2; }
message bank.DenomOwnersByQueryResponse {
  repeated DenomOwner denom_owners = 1; PageResponse pagination = 2;
}
message bank.ParamsRequest { }
message bank.ParamsResponse { BankParams! params = 1; }
message bank.SendEnabledRequest { repeated string denoms = 1; PageRequest pagination = 99; }
message bank.SendEnabledResponse {
  repeated SendEnabled send_enabled = 1; PageResponse pagination = 99;
}

message cosmos.bank.v1beta1.MsgSend {
  string from_address = 1; string to_address = 2; repeated Coin amount = 3;
}
message cosmos.bank.v1beta1.MsgUpdateParams { string authority = 1; BankParams! params = 2; }
message cosmos.bank.v1beta1.MsgUpdateParamsResponse { }
message cosmos.bank.v1beta1.MsgSetSendEnabled {
  string authority = 1; repeated SendEnabled send_enabled = 2;
  repeated string use_default_for = 3;
}
message cosmos.bank.v1beta1.MsgSetSendEnabledResponse { }
message cosmos.auth.v1beta1.MsgUpdateParams { string authority = 1; AuthParams! params = 2; }
message cosmos.auth.v1beta1.MsgUpdateParamsResponse { }
message Input { string address = 1; repeated Coin coins = 2; }
message Output { string address = 1; repeated Coin coins = 2; }
message cosmos.bank.v1beta1.MsgMultiSend {
  repeated Input inputs = 1; repeated Output outputs = 2;
}
message CompactBitArray { uint32 extra_bits_stored(extra_bits) = 1; bytes elems(elements) = 2; }
message Single { SignMode mode = 1; }
message Multi { CompactBitArray bitarray(bits) = 1; repeated ModeInfo mode_infos(modes) = 2; }
message ModeInfo { Single? single = 1; Multi? multi = 2; }
message SignerInfo { Any public_key = 1; ModeInfo mode_info(mode) = 2; uint64 sequence = 3; }
message Fee {
  repeated Coin amount = 1; uint64 gas_limit = 2; string payer = 3; string granter = 4;
}
message Tip { repeated Coin amount = 1; string tipper = 2; }
message AuthInfo { repeated SignerInfo signer_infos(signers) = 1; Fee fee = 2; Tip tip = 3; }
message TxBody {
  repeated Any messages = 1; string memo = 2; uint64 timeout_height = 3; bool unordered = 4;
  Timestamp timeout_timestamp(timeout) = 5; repeated Any extension_options(extensions) = 1023;
  repeated Any non_critical_extension_options(non_critical_extensions) = 2047;
}
message TxRaw {
  bytes body_bytes(body) = 1; bytes auth_info_bytes(auth_info) = 2;
  repeated bytes signatures = 3;
}
message cosmos.tx.v1beta1.Tx {
  TxBody body = 1; AuthInfo auth_info = 2; repeated bytes signatures = 3;
}
message EventAttribute { string key = 1; string value = 2; bool index = 3; }
message Event { string type = 1; repeated EventAttribute attributes = 2; }
message MessageLog { uint32 msg_index = 1; string log = 2; }
message TxResponse {
  int64 height = 1; string txhash = 2; string codespace = 3; uint32 code = 4; string data = 5;
  string raw_log = 6; repeated MessageLog logs = 7; string info = 8; int64 gas_wanted = 9;
  int64 gas_used = 10; Any tx = 11; string timestamp = 12; repeated Event events = 13;
}
message GasInfo { uint64 gas_wanted = 1; uint64 gas_used = 2; }
message Result {
  bytes data = 1; string log = 2; repeated Event events = 3; repeated Any msg_responses = 4;
}
message cosmos.bank.v1beta1.MsgSendResponse { }
message cosmos.bank.v1beta1.MsgMultiSendResponse { }
message tx.SimulateRequest { cosmos.tx.v1beta1.Tx tx = 1; bytes tx_bytes = 2; }
message tx.SimulateResponse { GasInfo gas_info = 1; Result result = 2; }
message reflection.ListAllInterfacesRequest { }
message reflection.ListAllInterfacesResponse { repeated string interface_names = 1; }
message reflection.ListImplementationsRequest { string interface_name = 1; }
message reflection.ListImplementationsResponse {
  repeated string implementation_message_names = 1;
}
message SigningModeDescriptor {
  string name = 1; int32 number = 2; string authn_info_provider_method_fullname = 3;
}
message AuthnDescriptor { repeated SigningModeDescriptor sign_modes = 1; }
message ChainDescriptor { string id = 1; }
message InterfaceAcceptingMessageDescriptor {
  string fullname = 1; repeated string field_descriptor_names = 2;
}
message InterfaceImplementerDescriptor { string fullname = 1; string type_url = 2; }
message InterfaceDescriptor {
  string fullname = 1;
  repeated InterfaceAcceptingMessageDescriptor interface_accepting_messages = 2;
  repeated InterfaceImplementerDescriptor interface_implementers = 3;
}
message CodecDescriptor { repeated InterfaceDescriptor interfaces = 1; }
message ConfigurationDescriptor { string bech32_account_address_prefix = 1; }
message QueryMethodDescriptor { string name = 1; string full_query_path = 2; }
message QueryServiceDescriptor {
  string fullname = 1; bool is_module = 2; repeated QueryMethodDescriptor methods = 3;
}
message QueryServicesDescriptor { repeated QueryServiceDescriptor query_services = 1; }
message MsgDescriptor { string msg_type_url = 1; }
message TxDescriptor { string fullname = 1; repeated MsgDescriptor msgs = 2; }
message descriptor.GetAuthnDescriptorRequest { }
message descriptor.GetAuthnDescriptorResponse { AuthnDescriptor authn = 1; }
message descriptor.GetChainDescriptorRequest { }
message descriptor.GetChainDescriptorResponse { ChainDescriptor chain = 1; }
message descriptor.GetCodecDescriptorRequest { }
message descriptor.GetCodecDescriptorResponse { CodecDescriptor codec = 1; }
message descriptor.GetConfigurationDescriptorRequest { }
message descriptor.GetConfigurationDescriptorResponse { ConfigurationDescriptor config = 1; }
message descriptor.GetQueryServicesDescriptorRequest { }
message descriptor.GetQueryServicesDescriptorResponse { QueryServicesDescriptor queries = 1; }
message descriptor.GetTxDescriptorRequest { }
message descriptor.GetTxDescriptorResponse { TxDescriptor tx = 1; }
message tx.TxDecodeRequest { bytes tx_bytes = 1; }
message tx.TxDecodeResponse { cosmos.tx.v1beta1.Tx tx = 1; }
message tx.TxEncodeRequest { cosmos.tx.v1beta1.Tx tx = 1; }
message tx.TxEncodeResponse { bytes tx_bytes = 1; }
message tx.TxDecodeAminoRequest { bytes amino_binary = 1; }
message tx.TxDecodeAminoResponse { string amino_json = 1; }
message tx.TxEncodeAminoRequest { string amino_json = 1; }
message tx.TxEncodeAminoResponse { bytes amino_binary = 1; }
message tx.BroadcastTxRequest { bytes tx_bytes = 1; BroadcastMode mode = 2; }
message tx.BroadcastTxResponse { TxResponse tx_response = 1; }
message tx.GetTxRequest { string hash = 1; }
message tx.GetTxResponse { cosmos.tx.v1beta1.Tx tx = 1; TxResponse tx_response = 2; }
message tx.GetTxsEventRequest {
  repeated string events = 1; PageRequest pagination = 2; OrderBy order_by = 3;
  uint64 page = 4; uint64 limit = 5; string query = 6;
}
message tx.GetTxsEventResponse {
  repeated cosmos.tx.v1beta1.Tx txs = 1; repeated TxResponse tx_responses = 2;
  PageResponse pagination = 3; uint64 total = 4;
}
message tx.GetBlockWithTxsRequest { int64 height = 1; PageRequest pagination = 2; }
message tx.GetBlockWithTxsResponse {
  repeated cosmos.tx.v1beta1.Tx txs = 1; BlockID block_id = 2; Block block = 3;
  PageResponse pagination = 4;
}

message Evidence { DuplicateVoteEvidence? duplicate_vote_evidence = 1; }
message tendermint.GetLatestBlockRequest { }
message tendermint.GetLatestBlockResponse {
  BlockID block_id = 1; Block block = 2; SdkBlock sdk_block = 3;
}
message tendermint.GetBlockByHeightRequest { int64 height = 1; }
message tendermint.GetBlockByHeightResponse {
  BlockID block_id = 1; Block block = 2; SdkBlock sdk_block = 3;
}
message tendermint.GetSyncingRequest { }
message tendermint.GetSyncingResponse { bool syncing = 1; }
message ConsensusValidator {
  string address = 1; Any pub_key = 2; int64 voting_power = 3; int64 proposer_priority = 4;
}
message tendermint.GetLatestValidatorSetRequest { PageRequest pagination = 1; }
message tendermint.GetLatestValidatorSetResponse {
  int64 block_height = 1; repeated ConsensusValidator validators = 2;
  PageResponse pagination = 3;
}
message tendermint.GetValidatorSetByHeightRequest {
  int64 height = 1; PageRequest pagination = 2;
}
message tendermint.GetValidatorSetByHeightResponse {
  int64 block_height = 1; repeated ConsensusValidator validators = 2;
  PageResponse pagination = 3;
}
message BlockParams { int64 max_bytes = 1; int64 max_gas = 2; }
message EvidenceParams {
  int64 max_age_num_blocks = 1; Duration! max_age_duration = 2; int64 max_bytes = 3;
}
message ValidatorParams { repeated string pub_key_types = 1; }
message VersionParams { uint64 app = 1; }
message ABCIParams { int64 vote_extensions_enable_height = 1; }
message ConsensusParams {
  BlockParams block = 1; EvidenceParams evidence = 2; ValidatorParams validator = 3;
  VersionParams version = 4; ABCIParams abci = 5;
}
message consensus.ParamsRequest { }
message consensus.ParamsResponse { ConsensusParams params = 1; }
message tendermint.ABCIQueryRequest {
  bytes data = 1; string path = 2; int64 height = 3; bool prove = 4;
}
message tendermint.ABCIQueryResponse {
  uint32 code = 1; string log = 3; string info = 4; int64 index = 5; bytes key = 6;
  bytes value = 7; ProofOps proof_ops = 8; int64 height = 9; string codespace = 10;
}
message ProtocolVersion { uint64 p2p = 1; uint64 block = 2; uint64 app = 3; }
message NodeInfoOther { string tx_index = 1; string rpc_address = 2; }
message NodeInfo {
  ProtocolVersion! protocol_version = 1; string default_node_id = 2; string listen_addr = 3;
  string network = 4; string version = 5; bytes channels = 6; string moniker = 7;
  NodeInfoOther! other = 8;
}
message Module { string path = 1; string version = 2; string sum = 3; }
message VersionInfo {
  string name = 1; string app_name = 2; string version = 3; string git_commit = 4;
  string build_tags = 5; string go_version = 6; repeated Module build_deps = 7;
  string cosmos_sdk_version = 8;
}
message tendermint.GetNodeInfoRequest { }
message tendermint.GetNodeInfoResponse {
  NodeInfo default_node_info = 1; VersionInfo application_version = 2;
}
message node.ConfigRequest { }
message node.ConfigResponse {
  string minimum_gas_price = 1; string pruning_keep_recent = 2; string pruning_interval = 3;
  uint64 halt_height = 4;
}
message node.StatusRequest { }
message node.StatusResponse {
  uint64 earliest_store_height = 1; uint64 height = 2; Timestamp timestamp = 3;
  bytes app_hash = 4; bytes validator_hash = 5;
}
"""

ENUMS: dict[str, dict[int, str]] = {
    "BondStatus": {
        0: "BOND_STATUS_UNSPECIFIED",
        1: "BOND_STATUS_UNBONDED",
        2: "BOND_STATUS_UNBONDING",
        3: "BOND_STATUS_BONDED",
    },
    "BroadcastMode": {
        0: "BROADCAST_MODE_UNSPECIFIED",
        1: "BROADCAST_MODE_BLOCK",
        2: "BROADCAST_MODE_SYNC",
        3: "BROADCAST_MODE_ASYNC",
    },
    "OrderBy": {0: "ORDER_BY_UNSPECIFIED", 1: "ORDER_BY_ASC", 2: "ORDER_BY_DESC"},
    "SignMode": {
        0: "SIGN_MODE_UNSPECIFIED",
        1: "SIGN_MODE_DIRECT",
        2: "SIGN_MODE_TEXTUAL",
        3: "SIGN_MODE_DIRECT_AUX",
        127: "SIGN_MODE_LEGACY_AMINO_JSON",
        191: "SIGN_MODE_EIP_191",
    },
    "BlockIDFlag": {
        0: "BLOCK_ID_FLAG_UNKNOWN",
        1: "BLOCK_ID_FLAG_ABSENT",
        2: "BLOCK_ID_FLAG_COMMIT",
        3: "BLOCK_ID_FLAG_NIL",
    },
    "SignedMsgType": {
        0: "SIGNED_MSG_TYPE_UNKNOWN",
        1: "SIGNED_MSG_TYPE_PREVOTE",
        2: "SIGNED_MSG_TYPE_PRECOMMIT",
        32: "SIGNED_MSG_TYPE_PROPOSAL",
    },
}
"""Names of each enum's values, by number."""


def duration(nanoseconds: int) -> bytes:
    """Encode ``google.protobuf.Duration`` without tag and length; both fields have the
    duration's sign."""
    seconds, nanos = divmod(abs(nanoseconds), SECOND)
    sign = -1 if nanoseconds < 0 else 1
    return integer(1, sign * seconds) + integer(2, sign * nanos)


MESSAGES = Messages(_TEXT, COMET_MESSAGES, {"Duration": duration})
"""Fields of each message by name, in the order of their encoding; modules add theirs."""


def declare(text: str) -> None:
    """Add the messages of a module, declared as in .proto files; raise :exc:`ValueError` for a
    name that another message has."""
    new = Messages(text)
    for name, fields in new.items():
        if MESSAGES.get(name, fields) != fields:
            raise ValueError(
                f"message {name}: expected a name that no other message has; put the name of"
                " your package before it"
            )
    MESSAGES.update(new)


# The SDK's own header and block have the proposer's address as a bech32 string.
_HEADER, _BLOCK = MESSAGES["Header"], MESSAGES["Block"]
MESSAGES["SdkHeader"] = *_HEADER[:-1], replace(_HEADER[-1], type="string")
MESSAGES["SdkBlock"] = replace(_BLOCK[0], type="SdkHeader"), *_BLOCK[1:]

NUMBERS = ("uint64", "int64", "uint32", "int32")
"""Field types whose repeated values may be packed into one occurrence."""


def unpacked(given: list[int | bytes]) -> list[int]:
    """Return the numbers of a repeated field from its occurrences."""
    found: list[int] = []
    for each in given:
        if isinstance(each, int):
            found.append(each)
            continue
        # A packed field is a sequence of varints; a tag before each makes it a message to
        # parse.
        at = 0
        while at < len(each):
            end = at
            while end < len(each) - 1 and each[end] & 0x80:
                end += 1
            found.append(Message(b"\x08" + each[at : end + 1]).integer(1))
            at = end + 1
    return found
