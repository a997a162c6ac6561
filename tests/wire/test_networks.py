"""Tests that replies in the shapes of public networks are decoded, stored and encoded to the
same bytes.

The values are made up. docs/dialects.rst says which replies of which networks were seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from flask_noderpc.backends.sql.packed import blocks as packed
from flask_noderpc.domain.abci import BlockResults, ExecTxResult
from flask_noderpc.domain.block import BlockMeta
from flask_noderpc.domain.responses import (
    ResultBlock,
    ResultCommit,
    ResultStatus,
    ResultValidators,
)
from flask_noderpc.wire.dialects import DIALECTS

Json = Any
ADDRESS, KEY = "AB" * 20, "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s="
SIGNATURE, TIME = "c2lnbmF0dXJl" * 7 + "cw==", "2024-05-06T07:08:09.123456789Z"
ED25519 = {"type": "tendermint/PubKeyEd25519", "value": KEY}
BLOCK = {"max_bytes": "22020096", "max_gas": "-1"}
AGE = {"max_age_num_blocks": "100000", "max_age_duration": "172800000000000"}
EVIDENCE = {**AGE, "max_bytes": "1048576"}
TYPES = {"pub_key_types": ["ed25519"]}
GROUPS = {"block": BLOCK, "evidence": EVIDENCE, "validator": TYPES}


def digest(number: int) -> str:
    return f"{number:02X}" * 32


def block_id(number: int) -> Json:
    return {"hash": digest(number), "parts": {"total": 1, "hash": digest(number + 1)}}


def header(*, version: Json = None, more: Mapping[str, Json] | None = None) -> Json:
    return {
        "version": version or {"block": "11"},
        "chain_id": "network-1",
        "height": "7",
        "time": TIME,
        "last_block_id": block_id(1),
        "last_commit_hash": digest(3),
        "data_hash": digest(4),
        "validators_hash": digest(5),
        "next_validators_hash": digest(5),
        "consensus_hash": digest(6),
        "app_hash": digest(7),
        "last_results_hash": digest(8),
        "evidence_hash": digest(9),
        "proposer_address": ADDRESS,
        **(more or {}),
    }


def vote(flag: int = 2, signature: Json = SIGNATURE, address: str = ADDRESS) -> Json:
    return {
        "block_id_flag": flag,
        "validator_address": address,
        "timestamp": TIME if flag in (2, 3) else "0001-01-01T00:00:00Z",
        "signature": signature,
    }


ABSENT = vote(1, None, "")


def commit(*votes: Json) -> Json:
    signatures = list(votes or (vote(), ABSENT, vote(3)))
    return {"height": "6", "round": 0, "block_id": block_id(1), "signatures": signatures}


def block(**parts: Json) -> Json:
    usual = {
        "header": header(),
        "data": {"txs": ["dHg="]},
        "evidence": {"evidence": []},
        "last_commit": commit(),
    }
    return {"block_id": block_id(10), "block": usual | parts}


def double_vote(**more: Json) -> Json:
    """Return a piece of evidence; votes of 0.38 have two more members."""
    one = {
        "type": 2,
        "height": "5",
        "round": 0,
        "block_id": block_id(20),
        "timestamp": TIME,
        "validator_address": ADDRESS,
        "validator_index": 3,
        "signature": SIGNATURE,
        **more,
    }
    value = {
        "vote_a": one,
        "vote_b": one,
        "TotalVotingPower": "100",
        "ValidatorPower": "10",
        "Timestamp": TIME,
    }
    return {"evidence": [{"type": "tendermint/DuplicateVoteEvidence", "value": value}]}


def event(key: str, *values: Json, kind: str = "transfer") -> Json:
    found = [{"key": key, "value": value, "index": True} for value in values]
    return {"type": kind, "attributes": found}


def tx(*events: Json, **changes: Json) -> Json:
    usual: dict[str, Json] = {
        "code": 0,
        "data": "ZGF0YQ==",
        "log": "[]",
        "info": "",
        "gas_wanted": "200000",
        "gas_used": "150000",
        "events": list(events),
        "codespace": "",
    }
    return usual | changes


BYTES = event("YW1vdW50", "MXN0YWtl", None)
PLAIN = event("amount", "1stake", "")


def older(**changes: Json) -> Json:
    """Return results of a node of 0.34 or 0.37."""
    usual = {
        "height": "7",
        "txs_results": [tx(BYTES)],
        "begin_block_events": [BYTES],
        "end_block_events": None,
        "validator_updates": None,
        "consensus_param_updates": GROUPS,
    }
    return usual | changes


def newer(**changes: Json) -> Json:
    """Return results of a node of 0.38 or later."""
    usual = {
        "height": "7",
        "txs_results": [tx(PLAIN), tx(code=5, data=None, log="out of gas", codespace="sdk")],
        "finalize_block_events": [PLAIN],
        "validator_updates": None,
        "consensus_param_updates": GROUPS,
        "app_hash": KEY,
    }
    return usual | changes


SEI_RESULTS = {
    "height": "7",
    "txs_results": [
        {"code": 32, "log": "account sequence mismatch", "codespace": "sdk"},
        {"data": "ZGF0YQ==", "log": "[]", "gas_used": 5, "events": [BYTES]},
        {"log": "evm", "evm_tx_info": {"senderAddress": "0x01", "nonce": 4}},
    ],
    "total_gas_used": "5",
    "finalize_block_events": [BYTES, BYTES],
    "validator_updates": [{"pub_key": ED25519, "power": "400"}],
    "consensus_param_updates": {**GROUPS, "version": {}},
}


def status(version: str, key: Json = None, **more: Json) -> Json:
    at = {"block_hash": digest(1), "app_hash": digest(2), "block_height": "9"}
    at["block_time"] = TIME
    return {
        "node_info": {
            "protocol_version": {"p2p": "8", "block": "11", "app": "0"},
            "id": "ab" * 20,
            "listen_addr": "tcp://0.0.0.0:26656",
            "network": "network-1",
            "version": version,
            "channels": "40202122233038606100",
            "moniker": "node",
            "other": {"tx_index": "on", "rpc_address": "tcp://0.0.0.0:26657"},
        },
        "sync_info": {
            **{f"latest_{name}": value for name, value in at.items()},
            **{f"earliest_{name}": value for name, value in at.items()},
            "catching_up": False,
            **more,
        },
        "validator_info": {
            "address": ADDRESS,
            "pub_key": key or ED25519,
            "voting_power": "0",
        },
    }


def members(*keys: Json) -> Json:
    found = [
        {"address": ADDRESS, "pub_key": key, "voting_power": "10", "proposer_priority": "-5"}
        for key in keys
    ]
    count = str(len(keys))
    return {"block_height": "7", "validators": found, "count": count, "total": "120"}


def key(kind: str, size: int) -> Json:
    return {"type": kind, "value": "q6ur" * (size // 3)}


EXTENSIONS = {"extension": None, "extension_signature": None}
UPDATE = {"Sum": {"type": "tendermint.crypto.PublicKey_Ed25519", "value": {"ed25519": KEY}}}
UPDATE_1 = {"power": "820743", "pub_key_bytes": KEY, "pub_key_type": "ed25519"}


@dataclass(frozen=True)
class Shape:
    """A reply of a network, in the dialect of its nodes."""

    network: str
    dialect: str
    kind: type
    reply: Json
    lost: str = ""
    """The member that is not served, as only blocks and results keep unknown members."""


SHAPES = [
    Shape("cosmoshub", "0.34", ResultStatus, status("v0.34.9")),
    Shape("cosmoshub", "0.34", ResultBlock, block()),
    Shape("cosmoshub", "0.34", BlockResults, older(txs_results=None)),
    Shape("crypto.org", "0.34", ResultBlock, block(evidence=double_vote())),
    Shape("crypto.org", "0.34", BlockResults, older(txs_results=[])),
    Shape(
        "crypto.org", "0.34", BlockResults, older(begin_block_events=[], end_block_events=[])
    ),
    Shape("cronos", "0.34", BlockResults, older(txs_results=[tx(BYTES, code=11, data=None)])),
    Shape(
        "osmosis",
        "0.34",
        BlockResults,
        older(consensus_param_updates={**GROUPS, "version": {"app_version": "15"}}),
    ),
    Shape("osmosis", "0.38", ResultStatus, status("0.38.22")),
    Shape("osmosis", "0.38", ResultBlock, block(evidence=double_vote(**EXTENSIONS))),
    Shape("juno", "0.37", ResultBlock, block(last_commit=commit(vote(), vote(1, "", "")))),
    Shape("kava", "0.34", ResultStatus, status("0.34.27")),
    Shape(
        "shentu",
        "0.34",
        BlockResults,
        older(consensus_param_updates={"block": BLOCK, "evidence": AGE, "validator": TYPES}),
    ),
    Shape("shentu", "0.34", ResultValidators, members(ED25519, ED25519)),
    Shape(
        "injective",
        "0.34",
        BlockResults,
        older(validator_updates=[{"pub_key": UPDATE, "power": "573929"}]),
    ),
    Shape(
        "injective",
        "1.0",
        BlockResults,
        newer(
            validator_updates=[UPDATE_1],
            consensus_param_updates={**GROUPS, "version": {}, "abci": {}},
        ),
    ),
    Shape("neutron", "0.38", ResultBlock, block(evidence=double_vote(**EXTENSIONS))),
    Shape(
        "dydx",
        "0.38",
        BlockResults,
        newer(
            finalize_block_events=[
                {"attributes": [{"key": "", "value": "\n0/Msg", "index": False}]}
            ],
            validator_updates=[],
            consensus_param_updates=None,
            app_hash=None,
        ),
    ),
    Shape(
        "akash",
        "0.38",
        BlockResults,
        newer(consensus_param_updates={"block": BLOCK, "evidence": AGE, "validator": TYPES}),
    ),
    Shape(
        "axelar", "0.38", ResultStatus, status("0.38.25", key("tendermint/PubKeySecp256k1", 33))
    ),
    Shape("sei", "0.34", BlockResults, SEI_RESULTS),
    Shape(
        "sei",
        "0.34",
        ResultBlock,
        block(header=header(version={"block": "11", "app": "0"}), evidence=[]),
    ),
    Shape(
        "sei",
        "0.34",
        ResultStatus,
        status("0.35.0-unreleased", max_peer_block_height="9"),
        lost="sync_info.max_peer_block_height",
    ),
    Shape(
        "celestia",
        "0.38",
        ResultBlock,
        block(
            header=header(version={"block": "11", "app": "6"}),
            data={"txs": ["dHg="], "square_size": "2"},
        ),
    ),
    Shape("celestia", "0.38", BlockResults, newer(txs_results=[tx(PLAIN, signers=["a", "b"])])),
    Shape("union", "0.37", ResultBlock, block(data={"txs": None}, evidence={"evidence": None})),
    Shape("union", "0.37", ResultValidators, members(key("tendermint/PubKeyBn254", 33))),
    Shape("berachain", "1.0", ResultValidators, members(key("cometbft/PubKeyBls12_381", 96))),
    Shape(
        "berachain",
        "1.0",
        ResultBlock,
        block(
            last_commit=commit(
                vote(4, SIGNATURE, "0x" + ADDRESS),
                vote(5, None, "0x" + ADDRESS),
                vote(6, SIGNATURE, "0x" + ADDRESS),
                vote(7, None, "0x" + ADDRESS),
                vote(1, None, "0x" + "00" * 20),
            )
        ),
    ),
    Shape(
        "berachain",
        "1.0",
        ResultCommit,
        {
            "signed_header": {
                "header": header(),
                "commit": commit(vote(4), vote(5, None), vote(6), vote(7, None), ABSENT),
            },
            "canonical": True,
        },
    ),
    Shape(
        "secret",
        "0.34",
        ResultBlock,
        block(header=header(more={"encrypted_random": {"random": KEY, "proof": KEY}})),
    ),
    Shape(
        "secret",
        "0.34",
        ResultCommit,
        {
            "signed_header": {
                "header": header(more={"encrypted_random": {"random": KEY, "proof": KEY}}),
                "commit": commit(),
            },
            "canonical": True,
        },
        lost="signed_header.header.encrypted_random",
    ),
]


def stored(found: Any) -> Any:
    """Return a block or results as a store returns them."""
    if isinstance(found, BlockResults):
        txs = tuple(map(_stored_tx, found.tx_results))
        row = packed.pack_results(found)
        return packed.unpack_results(row, found.height, lambda _: txs)
    if isinstance(found, ResultBlock) and found.block is not None:
        whole = found.block
        meta = BlockMeta(found.block_id, 1000, whole.header, len(whole.txs), whole.form)
        row = packed.pack_meta(meta)
        again = packed.unpack_meta(row, whole.header.height, whole.header.chain_id)
        commit_row = packed.pack_commit(whole.last_commit)
        last = packed.unpack_commit(commit_row, whole.last_commit.height, list)
        kept = replace(whole, header=again.header, form=again.form, last_commit=last)
        return replace(found, block_id=again.block_id, block=kept)
    return found


def _stored_tx(result: ExecTxResult) -> ExecTxResult:
    ((place, row),) = packed.slices(7, [b"tx"], [result])
    return packed.Slice(row, place).results()[0]


def without(reply: Json, path: str) -> Json:
    """Return a reply without one member."""
    name, _, rest = path.partition(".")
    return {
        each: without(value, rest) if each == name else value
        for each, value in reply.items()
        if rest or each != name
    }


@pytest.mark.parametrize(
    "shape",
    SHAPES,
    ids=lambda shape: f"{shape.network} {shape.dialect} {shape.kind.__name__}",
)
def test_a_reply_of_a_network_comes_back_to_the_byte(shape: Shape) -> None:
    dialect = DIALECTS[f"comet-{shape.dialect}"]
    reply = dialect.envelope.json(shape.reply)

    found = stored(dialect.decode(shape.kind, reply))

    kept = without(shape.reply, shape.lost) if shape.lost else shape.reply
    assert dialect.encode(found) == dialect.envelope.json(kept)
