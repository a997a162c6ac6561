"""REST paths that ping.pub's explorer requests, on a running node with the SDK's modules.

Each path has the response of a gateway of the SDK 0.53: JSON, or the gateway's error for
something that does not exist. Paths of modules that the chain does not have are listed with the
module, and have the gateway's error for an unknown path.
"""

from __future__ import annotations

import pytest
from werkzeug.test import Client

from flask_noderpc.cosmos.rest.view import RestMiddleware
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.testing.node import app_for

from ..modules.test_gov import propose_text

AUTH, BANK = "/cosmos/auth/v1beta1", "/cosmos/bank/v1beta1"
DISTRIBUTION, MINT = "/cosmos/distribution/v1beta1", "/cosmos/mint/v1beta1"
SLASHING, STAKING = "/cosmos/slashing/v1beta1", "/cosmos/staking/v1beta1"
BASE, TX = "/cosmos/base/tendermint/v1beta1", "/cosmos/tx/v1beta1"
PAGE = "pagination.limit=20&pagination.count_total=true"

# Paths that are answered, and members of the responses.
ANSWERED = {
    f"{AUTH}/params": "params",
    f"{AUTH}/accounts?{PAGE}": "accounts pagination",
    f"{AUTH}/accounts/{{account}}": "account",
    f"{BANK}/params": "params",
    f"{BANK}/balances/{{account}}": "balances pagination",
    f"{BANK}/denoms_metadata": "metadatas pagination",
    f"{BANK}/supply?{PAGE}": "supply pagination",
    f"{BANK}/supply/by_denom?denom=stake": "amount",
    f"{DISTRIBUTION}/params": "params",
    f"{DISTRIBUTION}/community_pool": "pool",
    f"{DISTRIBUTION}/validators/{{validator}}/commission": "commission",
    f"{DISTRIBUTION}/validators/{{validator}}/outstanding_rewards": "rewards",
    f"{DISTRIBUTION}/validators/{{validator}}/slashes": "slashes pagination",
    f"{DISTRIBUTION}/delegators/{{account}}/rewards": "rewards total",
    f"{SLASHING}/params": "params",
    f"{SLASHING}/signing_infos?pagination.limit=300": "info pagination",
    f"{MINT}/params": "params",
    f"{MINT}/inflation": "inflation",
    f"{MINT}/annual_provisions": "annual_provisions",
    f"{STAKING}/params": "params",
    f"{STAKING}/pool": "pool",
    f"{STAKING}/validators?pagination.limit=200&status=BOND_STATUS_BONDED": "validators",
    f"{STAKING}/validators?pagination.limit=200&status=BOND_STATUS_UNBONDED": "validators",
    f"{STAKING}/validators/{{validator}}": "validator",
    f"{STAKING}/validators/{{validator}}/delegations?{PAGE}": "delegation_responses",
    f"{STAKING}/validators/{{validator}}/delegations/{{account}}": "delegation_response",
    f"{STAKING}/delegations/{{account}}": "delegation_responses pagination",
    f"{STAKING}/delegators/{{account}}/redelegations": "redelegation_responses",
    f"{STAKING}/delegators/{{account}}/unbonding_delegations": "unbonding_responses",
    f"{STAKING}/delegators/{{account}}/validators": "validators",
    "/cosmos/params/v1beta1/params?subspace=staking&key=BondDenom": "param",
    f"{BASE}/blocks/latest": "block_id block sdk_block",
    f"{BASE}/blocks/{{height}}": "block_id block sdk_block",
    f"{BASE}/node_info": "default_node_info application_version",
    f"{BASE}/validatorsets/latest?pagination.limit=100&pagination.offset=0": "validators",
    f"{BASE}/validatorsets/{{height}}?pagination.limit=100&pagination.offset=0": "validators",
    f"{TX}/txs?query=message.sender='{{account}}'&{PAGE}": "txs tx_responses total",
    f"{TX}/txs?query=tx.height={{height}}&{PAGE}": "txs tx_responses total",
    f"{TX}/txs/block/{{height}}": "txs block_id block",
    f"{TX}/txs/{{hash}}": "tx tx_response",
}

GOV = [f"/cosmos/gov/{version}" for version in ("v1beta1", "v1")]
for gov in GOV:
    ANSWERED |= {
        f"{gov}/params/voting": "voting_params",
        f"{gov}/params/tallying": "tally_params",
        f"{gov}/params/deposit": "deposit_params",
        f"{gov}/proposals?proposal_status=2&{PAGE}": "proposals pagination",
        f"{gov}/proposals/{{proposal}}": "proposal",
        f"{gov}/proposals/{{proposal}}/deposits": "deposits pagination",
        f"{gov}/proposals/{{proposal}}/tally": "tally",
        f"{gov}/proposals/{{proposal}}/votes": "votes pagination",
    }

# Paths that are refused as by the SDK: status, and the beginning of the text.
REFUSED = {
    f"{AUTH}/accounts/{{absent}}": (404, "account "),
    f"{AUTH}/accounts/nobody": (500, "decoding bech32 failed: invalid bech32 string length 6"),
    # Path of the SDK before 0.46.
    f"{BANK}/supply/{{denom}}": (501, "Not Implemented"),
    f"{STAKING}/validators/{{validator}}/delegations/{{account}}/unbonding_delegation": (
        404,
        "unbonding delegation with delegator ",
    ),
    f"{BASE}/abci_query": (400, "empty query path"),
    f"{BASE}/blocks/999999": (400, "requested block height is bigger then the chain length"),
    # Query of the SDK before 0.50.
    f"{TX}/txs?events=message.sender='{{account}}'": (500, "query cannot be empty"),
    f"{TX}/txs/{'0' * 64}": (404, "tx not found: "),
    **{f"{gov}/proposals/{{proposal}}/votes/{{account}}": (400, "voter: ") for gov in GOV},
}

# Paths of modules that this chain does not have.
ABSENT = {
    "ibc": (
        "/ibc/apps/interchain_accounts/controller/v1/params",
        "/ibc/apps/interchain_accounts/host/v1/params",
        "/ibc/apps/transfer/v1/channels/channel-0/ports/transfer/escrow_address",
        "/ibc/apps/transfer/v1/denom_traces",
        "/ibc/apps/transfer/v1/denom_traces/{hash}",
        "/ibc/core/channel/v1/channels",
        "/ibc/core/channel/v1/channels/channel-0/ports/transfer/next_sequence",
        "/ibc/core/channel/v1/channels/channel-0/ports/transfer/packet_acknowledgements",
        "/ibc/core/channel/v1/connections/connection-0/channels",
        f"/ibc/core/connection/v1/connections?{PAGE}",
        "/ibc/core/connection/v1/connections/connection-0",
        "/ibc/core/connection/v1/connections/connection-0/client_state",
    ),
    "interchain security": (
        "/interchain_security/ccv/provider/validator_consumer_addr?chain_id=a",
        "/interchain_security/ccv/provider/opted_in_validators/a",
        "/interchain_security/ccv/provider/consumer_validators/a",
    ),
    "wasm": (
        *("/cosmwasm/wasm/v1/code", "/cosmwasm/wasm/v1/code/1"),
        *("/cosmwasm/wasm/v1/code/1/contracts", "/cosmwasm/wasm/v1/codes/params"),
        *(
            f"/cosmwasm/wasm/v1/contract/{{account}}{part}"
            for part in ("", "/history", "/raw/e30=", "/smart/e30=", "/state")
        ),
        "/cosmwasm/wasm/v1/contracts/creator/{account}",
    ),
}


@pytest.fixture
def values(noderpc_bank: BankNode) -> dict[str, str]:
    """Values of the running chain for the parts of a path."""
    node = noderpc_bank
    found = node.faucet(node.accounts[1], "5stake")
    node.mine()
    height = node.chain.reads.tx(bytes.fromhex(found)).height
    return {
        "account": node.accounts[0],
        "validator": node.validator,
        "absent": "cosmos1qyqszqgpqyqszqgpqyqszqgpqyqszqgpjnp7du",
        "denom": "stake",
        "proposal": propose_text(node),
        "height": str(height),
        "hash": found,
    }


@pytest.fixture
def gateway(noderpc_bank: BankNode) -> Client:
    """The gateway at an address of its own, as explorers use it."""
    app = app_for(noderpc_bank.chain, rest=True, dialect="comet-0.38")
    (rule,) = app.url_map.iter_rules("noderpc.rest_cosmos")
    return Client(RestMiddleware(app, rule.rule))


@pytest.mark.parametrize(("path", "members"), ANSWERED.items())
def test_a_path_is_answered(
    gateway: Client, values: dict[str, str], path: str, members: str
) -> None:
    reply = gateway.get(path.format_map(values))
    assert (reply.status_code, reply.content_type) == (200, "application/json")
    assert set(members.split()) <= set(reply.get_json())


@pytest.mark.parametrize(("path", "expected"), REFUSED.items())
def test_a_path_is_refused_as_by_the_sdk(
    gateway: Client, values: dict[str, str], path: str, expected: tuple[int, str]
) -> None:
    reply = gateway.get(path.format_map(values))
    status, text = expected
    assert reply.status_code == status
    assert reply.get_json()["message"].startswith(text)


@pytest.mark.parametrize("module", ABSENT)
def test_paths_of_a_missing_module_are_unknown(
    gateway: Client, values: dict[str, str], module: str
) -> None:
    for path in ABSENT[module]:
        reply = gateway.get(path.format_map(values))
        assert reply.status_code == 501, path
        assert reply.get_json() == {"code": 12, "message": "Not Implemented", "details": []}


def test_all_paths_are_listed() -> None:
    listed = [*ANSWERED, *REFUSED, *(path for each in ABSENT.values() for path in each)]
    assert len(listed) == len(set(listed)) == 91
