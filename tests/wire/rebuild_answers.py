"""Build the results of handlers and the events from the JSON that a node of CometBFT sent.

All versions from 0.34 to 1.0 are supported; for 0.34, call :func:`plain` first.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask_noderpc.domain import abci, block, genesis, network, responses
from flask_noderpc.domain import block as consensus
from flask_noderpc.domain import events as event_data
from flask_noderpc.domain.time import ZERO_TIME, from_text
from flask_noderpc.domain.validator import (
    ED25519,
    PublicKey,
    Validator,
    ValidatorSet,
    ValidatorUpdate,
)
from flask_noderpc.wire import common
from tests.comet import rebuild
from tests.comet.rebuild import Json


def plain(found: Json) -> Json:
    """Return a reply of 0.34 with the attributes of events as text, like later versions."""
    if isinstance(found, list):
        return [plain(item) for item in found]
    if not isinstance(found, dict):
        return found
    if found.keys() == {"key", "value", "index"}:
        text = {name: rebuild.text_bytes(found[name]).decode() for name in ("key", "value")}
        return found | text
    return {name: plain(item) for name, item in found.items()}


def event(found: Json) -> abci.Event:
    """Return an event with its attributes as text."""
    return abci.Event(
        found["type"],
        tuple(
            abci.EventAttribute(tag["key"].encode(), tag["value"].encode(), tag["index"])
            for tag in found["attributes"]
        ),
    )


def events(found: Json) -> tuple[abci.Event, ...]:
    """Return a list of events, which may be null."""
    return tuple(map(event, found or ()))


def tx_result(found: Json) -> abci.ExecTxResult:
    """Return a whole result."""
    return replace(
        rebuild.tx_result(found),
        log=found["log"],
        info=found["info"],
        events=events(found["events"]),
        codespace=found["codespace"],
    )


def bare_tx_result(found: Json) -> abci.ExecTxResult:
    """Return a result whose empty members were left out."""
    whole: Json = {
        "code": 0,
        "data": None,
        "log": "",
        "info": "",
        "codespace": "",
        "events": [],
    }
    return tx_result({**whole, "gas_wanted": "0", "gas_used": "0", **found})


def result_tx(found: Json) -> responses.ResultTx:
    """Return a committed transaction."""
    return responses.ResultTx(
        bytes.fromhex(found["hash"]),
        int(found["height"]),
        found["index"],
        tx_result(found["tx_result"]),
        b64decode(found["tx"]),
        rebuild.tx_proof(found["proof"]) if "proof" in found else None,
    )


def result_block(found: Json) -> responses.ResultBlock:
    """Return a block with its ID."""
    return responses.ResultBlock(
        rebuild.block_id(found["block_id"]), rebuild.block(found["block"])
    )


def validator_update(found: Json) -> ValidatorUpdate:
    """Return a validator's new power."""
    if "pub_key_bytes" in found:
        assert found["pub_key_type"] == ED25519
        key = found["pub_key_bytes"]
    else:
        key = found["pub_key"]["Sum"]["value"]["ed25519"]
    return ValidatorUpdate(PublicKey(ED25519, b64decode(key)), int(found.get("power", 0)))


def block_results(found: Json, height: int | None = None) -> abci.BlockResults:
    """Return the results of a block, from the route or, with a height, from an event."""
    assert found.get("consensus_param_updates") is None
    return abci.BlockResults(
        int(found["height"]) if height is None else height,
        tuple(map(tx_result, found.get("txs_results") or found.get("tx_results") or ())),
        begin_block_events=events(
            found.get("finalize_block_events")
            or found.get("begin_block_events")
            or found.get("events")
        ),
        end_block_events=events(found.get("end_block_events")),
        validator_updates=tuple(map(validator_update, found["validator_updates"] or ())),
        app_hash=b64decode(found.get("app_hash", "")),
    )


def results_in_parts(found: Json, height: int) -> abci.BlockResults:
    """Return the results of a block, from an event of 0.34 or 0.37."""
    begin, end = found["result_begin_block"], found["result_end_block"]
    assert end.get("consensus_param_updates") is None
    return abci.BlockResults(
        height,
        begin_block_events=events(begin.get("events")),
        end_block_events=events(end.get("events")),
        validator_updates=tuple(map(validator_update, end["validator_updates"] or ())),
    )


def consensus_params(found: Json) -> genesis.ConsensusParams:
    """Return all consensus parameters."""
    block, age, version = found["block"], found["evidence"], found["version"]
    extensions = found.get("abci") or found.get("feature") or {}
    return genesis.ConsensusParams(
        genesis.BlockParams(
            int(block["max_bytes"]), int(block["max_gas"]), int(block.get("time_iota_ms", 1000))
        ),
        genesis.EvidenceParams(
            int(age["max_age_num_blocks"]), int(age["max_age_duration"]), int(age["max_bytes"])
        ),
        genesis.ValidatorParams(tuple(found["validator"]["pub_key_types"])),
        int(version.get("app", version.get("app_version", 0))),
        int(extensions.get("vote_extensions_enable_height", 0)),
    )


def whole_set(found: Json) -> ValidatorSet:
    """Return a validator set with its proposer."""
    return replace(
        rebuild.validator_set(found["validators"]),
        proposer=bytes.fromhex(found["proposer"]["address"]),
    )


VOTE = re.compile(
    r"Vote\{(\d+):(\w+) (\d+)/(\d+)/SIGNED_MSG_TYPE_PRECOMMIT\(Precommit\)"
    r" (\w+) (\w+)(?: (\w+))? @ (.+)\}"
)


def vote_in_short(text: str) -> block.Vote:
    """Return a vote from its text, which has only the first bytes of each hash."""
    match = VOTE.fullmatch(text)
    assert match is not None
    index, address, height, number, block_hash, signature, extension, time = match.groups()
    return block.Vote(
        block.VoteType.PRECOMMIT,
        int(height),
        int(number),
        block.BlockID(bytes.fromhex(block_hash)),
        from_text(time),
        bytes.fromhex(address),
        int(index),
        bytes.fromhex(signature),
        bytes.fromhex(extension or ""),
    )


def consensus_dump(found: Json) -> responses.ResultDumpConsensusState:
    """Return the state of consensus, without its peers."""
    state = found["round_state"]
    votes = tuple(map(vote_in_short, state["last_commit"]["votes"]))
    last = whole_set(state["last_validators"])
    return responses.ResultDumpConsensusState(
        consensus.RoundState(
            int(state["height"]),
            from_text(state["start_time"]),
            from_text(state["commit_time"]),
            whole_set(state["validators"]),
            consensus.VoteSet(votes, last.total_power, last.total_power),
            last,
        )
    )


def consensus_state(found: Json) -> responses.ResultConsensusState:
    """Return the state of consensus of a chain with one validator."""
    state = found["round_state"]
    address = bytes.fromhex(state["proposer"]["address"])
    # The text has the votes, the power that voted, and the total power: "BA{1:_} 0/10 = 0.00".
    text = state["height_vote_set"][0]["prevotes_bit_array"]
    power = int(text.split("/")[1].split()[0])
    members = ValidatorSet((Validator(address, PublicKey(ED25519, b""), power),), address)
    return responses.ResultConsensusState(
        consensus.RoundState(
            int(state["height/round/step"].split("/")[0]),
            from_text(state["start_time"]),
            ZERO_TIME,
            members,
            None,
            members,
        )
    )


def genesis_document(found: Json) -> genesis.Genesis:
    """Return a genesis without an ``app_state``."""
    return genesis.Genesis(
        found["chain_id"],
        from_text(found["genesis_time"]),
        int(found["initial_height"]),
        consensus_params(found["consensus_params"]),
        tuple(
            genesis.GenesisValidator(
                bytes.fromhex(member["address"]),
                rebuild.public_key(member["pub_key"]),
                int(member["power"]),
                member["name"],
            )
            for member in found["validators"]
        ),
        bytes.fromhex(found["app_hash"]),
    )


def status(found: Json) -> responses.ResultStatus:
    """Return a node's card, blocks and key."""
    own = found["validator_info"]
    return responses.ResultStatus(
        common.NodeInfo().load(found["node_info"]),
        common.SyncInfo().load(found["sync_info"]),
        responses.ValidatorInfo(
            bytes.fromhex(own["address"]),
            rebuild.public_key(own["pub_key"]),
            int(own["voting_power"]),
        ),
    )


def net_info(found: Json) -> network.NetInfo:
    """Return a node's peers."""
    return network.NetInfo(
        found["listening"],
        tuple(found["listeners"]),
        tuple(common.Peer().load(peer) for peer in found["peers"]),
    )


def header(found: Json) -> responses.ResultHeader:
    """Return a header."""
    return responses.ResultHeader(rebuild.header(found["header"]))


def block_meta(found: Json) -> block.BlockMeta:
    """Return an element of a block list."""
    return block.BlockMeta(
        rebuild.block_id(found["block_id"]),
        int(found["block_size"]),
        rebuild.header(found["header"]),
        int(found["num_txs"]),
    )


def commit(found: Json) -> responses.ResultCommit:
    """Return a header with its commit."""
    signed = found["signed_header"]
    return responses.ResultCommit(
        block.SignedHeader(rebuild.header(signed["header"]), rebuild.commit(signed["commit"])),
        found["canonical"],
    )


def broadcast(found: Json) -> responses.ResultBroadcastTx:
    """Return the mempool's result."""
    return responses.ResultBroadcastTx(
        found["code"],
        bytes.fromhex(found["data"]),
        found["log"],
        found["codespace"],
        bytes.fromhex(found["hash"]),
    )


def app_info(found: Json) -> abci.AppInfo:
    """Return the result of the application's Info."""
    return abci.AppInfo(
        found["data"],
        found["version"],
        int(found["app_version"]),
        int(found["last_block_height"]),
        b64decode(found["last_block_app_hash"]),
    )


def query_result(found: Json) -> abci.QueryResult:
    """Return the result of a query without a proof."""
    assert found["proofOps"] is None
    return abci.QueryResult(
        found["code"],
        found["log"],
        found["info"],
        int(found["index"]),
        rebuild.text_bytes(found["key"]),
        rebuild.text_bytes(found["value"]),
        height=int(found["height"]),
        codespace=found["codespace"],
    )


ANSWERS: dict[str, Callable[[Json], Any]] = {
    "health": lambda found: responses.Empty(),
    "status": status,
    "net_info": net_info,
    "genesis": lambda found: responses.ResultGenesis(genesis_document(found["genesis"])),
    "genesis_chunked": lambda found: genesis.GenesisChunk(
        int(found["chunk"]), int(found["total"]), b64decode(found["data"])
    ),
    "blockchain": lambda found: responses.ResultBlockchainInfo(
        int(found["last_height"]), tuple(map(block_meta, found["block_metas"]))
    ),
    "block": result_block,
    "block_by_hash": result_block,
    "header": header,
    "header_by_hash": header,
    "block_results": block_results,
    "commit": commit,
    "validators": lambda found: responses.ResultValidators(
        int(found["block_height"]),
        rebuild.validator_set(found["validators"]).validators,
        int(found["total"]),
    ),
    "consensus_params": lambda found: responses.ResultConsensusParams(
        int(found["block_height"]), consensus_params(found["consensus_params"])
    ),
    "consensus_state": consensus_state,
    "dump_consensus_state": consensus_dump,
    "unconfirmed_txs": lambda found: responses.PendingTxs(
        int(found["total"]), int(found["total_bytes"]), tuple(map(b64decode, found["txs"]))
    ),
    "num_unconfirmed_txs": lambda found: responses.PendingCount(
        int(found["total"]), int(found["total_bytes"])
    ),
    "tx": result_tx,
    "tx_search": lambda found: responses.ResultTxSearch(
        int(found["total_count"]), tuple(map(result_tx, found["txs"]))
    ),
    "block_search": lambda found: responses.ResultBlockSearch(
        int(found["total_count"]), tuple(map(result_block, found["blocks"]))
    ),
    "abci_info": lambda found: responses.ResultABCIInfo(app_info(found["response"])),
    "abci_query": lambda found: responses.ResultABCIQuery(query_result(found["response"])),
    "check_tx": tx_result,
    "broadcast_tx_async": broadcast,
    "broadcast_tx_sync": broadcast,
    "broadcast_tx_commit": lambda found: responses.ResultBroadcastTxCommit(
        tx_result(found["check_tx"]),
        tx_result(found["tx_result"] if "tx_result" in found else found["deliver_tx"]),
        bytes.fromhex(found["hash"]),
        int(found["height"]),
    ),
}
"""Functions that build the handler's result from the ``result`` of a reply, by route."""


def new_block(found: Json) -> event_data.NewBlock:
    """Return a block and its results."""
    own = rebuild.block(found["block"])
    height = own.header.height
    if "result_finalize_block" not in found:
        answer = responses.ResultBlock(block.NO_BLOCK, own)
        return event_data.NewBlock(answer, results_in_parts(found, height))
    answer = responses.ResultBlock(rebuild.block_id(found["block_id"]), own)
    return event_data.NewBlock(answer, block_results(found["result_finalize_block"], height))


def new_block_header(found: Json) -> event_data.NewBlockHeader:
    """Return a header; since 0.38 the event contains only the header."""
    own = rebuild.header(found["header"])
    if "num_txs" not in found:
        return event_data.NewBlockHeader(own, 0, abci.BlockResults(own.height))
    results = results_in_parts(found, own.height)
    return event_data.NewBlockHeader(own, int(found["num_txs"]), results)


def new_evidence(found: Json) -> event_data.NewEvidence:
    """Return a piece of evidence; CometBFT does not show the accused validators."""
    return event_data.NewEvidence(int(found["height"]), rebuild.evidence(found["evidence"]), ())


def tx_committed(found: Json) -> event_data.TxCommitted:
    """Return a transaction in a block."""
    result = found["TxResult"]
    return event_data.TxCommitted(
        int(result["height"]),
        result.get("index", 0),
        b64decode(result["tx"]),
        bare_tx_result(result["result"]),
    )


def _step(found: Json) -> tuple[int, int, str]:
    return int(found["height"]), found["round"], found["step"]


EVENTS: dict[str, Callable[[Json], Any]] = {
    "NewBlock": new_block,
    "NewBlockHeader": new_block_header,
    "NewBlockEvents": lambda found: event_data.NewBlockEvents(
        int(found["height"]), events(found["events"]), int(found["num_txs"])
    ),
    "NewEvidence": new_evidence,
    "Tx": tx_committed,
    "ValidatorSetUpdates": lambda found: event_data.ValidatorSetUpdates(
        rebuild.validator_set(found["validator_updates"]).validators
    ),
    "NewRound": lambda found: event_data.NewRound(
        *_step(found),
        bytes.fromhex(found["proposer"]["address"]),
        found["proposer"]["index"],
    ),
    "RoundState": lambda found: event_data.RoundState(*_step(found)),
    "CompleteProposal": lambda found: event_data.CompleteProposal(
        *_step(found), rebuild.block_id(found["block_id"])
    ),
    "Vote": lambda found: event_data.VoteCast(rebuild.vote(found["Vote"])),
}
"""Functions that build an event from the ``value`` of a notification, by the name of the event
data."""
