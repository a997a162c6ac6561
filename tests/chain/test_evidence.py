"""Tests of evidence: which is accepted, which is pending, and how it gets into a block."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain, MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.sql import evidence as pool
from flask_noderpc.backends.sqlite.engine import Connection
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.domain.block import Evidence
from flask_noderpc.domain.genesis import ConsensusParams, EvidenceParams
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import EvidencePoolFull, InvalidEvidence, NotSupported
from flask_noderpc.events.messages import messages_at
from flask_noderpc.protocol.comet.hashes import evidence_hash, evidence_hash_of
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.comet.v038_schemas import Evidence as Shape
from flask_noderpc.wire.schema import compiled

from .conftest import Open
from .fixtures import key, write_home
from .misbehavior import attack, double_vote, forward, with_signatures

KEYS = [key(1), key(2), key(3)]


@pytest.fixture
def three(open_chain: Open, tmp_path: Path, clock: ManualClock) -> EmbeddedChain:
    """A chain of three validators with five blocks."""
    write_home(tmp_path, {1: 10, 2: 7, 3: 3}, [1, 2, 3])
    made = open_chain()
    for _ in range(5):
        clock.advance(1)
        made.produce()
    return made


def sent(client: FlaskClient, piece: Evidence | None) -> Any:
    """Return the response to evidence in CometBFT's JSON."""
    params = {} if piece is None else {"evidence": compiled(Shape)(piece)}
    call = {"jsonrpc": "2.0", "id": 1, "method": "broadcast_evidence", "params": params}
    return client.post("/", json=call).json


@pytest.fixture
def client(three: EmbeddedChain) -> FlaskClient:
    return app_for(three, dialect="comet-0.38").test_client()


def pieces(chain: EmbeddedChain) -> list[Evidence]:
    """Return evidence of each kind of offence."""
    return [
        double_vote(chain, KEYS[1]),
        attack(chain, KEYS, 4, 2, app_hash=b"\x66" * 8),
        attack(chain, KEYS, 3, 3, data_hash=b"\x66" * 32),
        attack(chain, KEYS, 3, 3, commit_round=1, data_hash=b"\x67" * 32),
    ]


def powers(chain: EmbeddedChain, height: int) -> list[int]:
    return [v.voting_power for v in chain.reads.validators(height).validators]


def test_evidence_gets_into_the_next_block(three: EmbeddedChain, client: FlaskClient) -> None:
    found = sorted(pieces(three), key=lambda piece: (piece.height, evidence_hash_of(piece)))
    for piece in found:
        assert "result" in sent(client, piece)

    height = three.produce()

    block = three.reads.block(height)[1]
    assert list(block.evidence) == found
    assert block.header.evidence_hash == evidence_hash(found)
    assert three.store.reap_evidence(1 << 20) == ()
    assert three.reads.block(three.produce())[1].evidence == ()
    assert three.store.verify() == 7


def test_a_double_vote_costs_one_power(three: EmbeddedChain, client: FlaskClient) -> None:
    sent(client, double_vote(three, KEYS[0]))
    sent(client, attack(three, KEYS, 4, 2, app_hash=b"\x66" * 8))

    height = three.produce()

    # Only double votes are punished: the kvstore ignores attacks on light clients.
    assert powers(three, height + 2) == [9, 7, 3]


def test_a_block_shows_evidence_as_it_was_sent(
    three: EmbeddedChain, client: FlaskClient
) -> None:
    for piece in (pieces(three)[0], pieces(three)[1]):
        sent(client, piece)

    height = three.produce()

    shown = client.get(f"/block?height={height}").get_json()["result"]["block"]["evidence"]
    expected = [json.loads(json.dumps(compiled(Shape)(piece))) for piece in pieces(three)[:2]]
    assert shown == {"evidence": expected}


def test_the_document_shows_each_validator_that_is_accused(three: EmbeddedChain) -> None:
    client = app_for(three).test_client()
    for piece in pieces(three):
        reply = sent(client, piece)
        assert reply["result"] == {"hash": evidence_hash_of(piece).hex().upper()}

    block = client.get(f"/block?height={three.produce()}").get_json()["result"]["block"]

    found = [
        (e["type"], e["height"], e["validator"]["voting_power"]) for e in block["evidence"]
    ]
    vote, attacked = "engine/DuplicateVoteEvidence", "engine/LightClientAttackEvidence"
    assert found == [
        (vote, 1, 7),
        *[(attacked, 2, power) for power in (10, 7, 3)],
        # One of the two attacks at this height is an amnesia attack, for which no validator can
        # be blamed.
        *[(attacked, 3, power) for power in (10, 7, 3)],
    ]
    assert {one["total_voting_power"] for one in block["evidence"]} == {20}


@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_subscribers_get_an_event_for_each_evidence(three: EmbeddedChain, dialect: str) -> None:
    for piece in pieces(three):
        three.evidence.submit(piece)

    height = three.produce()

    received = [m for m in messages_at(three.reads, height) if m.category == "NewEvidence"]
    mount = app_for(three, dialect=dialect).test_client()
    page = mount.get("""/events?filter={"query":"tm.event='NewEvidence'"}""").get_json()
    assert len(received) == len(page["result"]["items"]) == 4


def test_the_same_evidence_is_taken_once(three: EmbeddedChain, client: FlaskClient) -> None:
    piece = double_vote(three, KEYS[0])
    first = sent(client, piece)

    assert sent(client, piece) == first
    height = three.produce()
    assert len(three.reads.block(height)[1].evidence) == 1

    assert sent(client, piece) == first
    assert three.reads.block(three.produce())[1].evidence == ()


def test_evidence_that_waits_survives_a_restart(three: EmbeddedChain, open_chain: Open) -> None:
    piece = double_vote(three, KEYS[0])
    three.evidence.submit(piece)
    three.close()

    again = open_chain()

    assert again.reads.block(again.produce())[1].evidence == (piece,)


def test_evidence_given_by_hand_is_not_there_twice(three: EmbeddedChain) -> None:
    piece = double_vote(three, KEYS[0])
    three.evidence.submit(piece)

    assert three.reads.block(three.produce((piece,)))[1].evidence == (piece,)


def test_evidence_triggers_a_block(three: EmbeddedChain) -> None:
    assert not three.store.wait_for_pending(0.0)

    three.evidence.submit(double_vote(three, KEYS[0]))

    assert three.store.wait_for_pending(0.0)


def test_no_more_evidence_than_fits_is_in_a_block(
    open_chain: Open, tmp_path: Path, clock: ManualClock
) -> None:
    params = ConsensusParams(evidence=EvidenceParams(max_bytes=1_000))
    write_home(tmp_path, {1: 10}, [1], params)
    chain = open_chain()
    chain.produce()
    for mark in range(1, 6, 2):
        chain.evidence.submit(double_vote(chain, KEYS[0], 1, bytes([mark, mark + 1])))

    counts = [len(chain.reads.block(chain.produce())[1].evidence) for _ in range(3)]

    # One piece of evidence takes 389 bytes.
    assert counts == [2, 1, 0]


@pytest.mark.sqlite
def test_only_evidence_that_fits_a_block_is_read(three: EmbeddedChain) -> None:
    for mark in range(1, 9):
        three.evidence.submit(double_vote(three, KEYS[0], marks=bytes([mark, 9])))
    read: list[str] = []

    with closing(sqlite3.connect(three.store.location.path, factory=Connection)) as at:
        at.set_trace_callback(read.append)
        found = pool.reap(at, 1_000)

    # Pending evidence may take a gigabyte, so it is not all read.
    assert len(found) == sum("SELECT evidence" in statement for statement in read) == 2


def test_evidence_larger_than_a_block_takes_is_refused(
    open_chain: Open, tmp_path: Path
) -> None:
    write_home(tmp_path, {1: 10}, [1], ConsensusParams(evidence=EvidenceParams(max_bytes=300)))
    chain = open_chain()
    chain.produce()

    with pytest.raises(
        InvalidEvidence, match=r"expected at most 300 bytes of evidence, .*, got \d+"
    ):
        chain.evidence.submit(double_vote(chain, KEYS[0]))


@pytest.mark.parametrize(
    ("blocks", "seconds", "too_old"), [(3, 60, True), (3, 1, False), (2, 60, False)]
)
def test_evidence_is_too_old_by_both_ages(
    open_chain: Open,
    tmp_path: Path,
    clock: ManualClock,
    blocks: int,
    seconds: int,
    too_old: bool,
) -> None:
    ages = EvidenceParams(max_age_num_blocks=2, max_age_duration=30 * SECOND)
    write_home(tmp_path, {1: 10}, [1], ConsensusParams(evidence=ages))
    chain = open_chain()
    chain.produce()
    chain.produce()
    piece = double_vote(chain, KEYS[0], height=2)
    for _ in range(blocks):
        clock.advance(seconds)
        chain.produce()

    if too_old:
        with pytest.raises(InvalidEvidence, match=r"evidence from height 2 .* is too old"):
            chain.evidence.submit(piece)
    else:
        chain.evidence.submit(piece)
        assert chain.reads.block(chain.produce())[1].evidence == (piece,)


@pytest.mark.sqlite
def test_expired_evidence_is_dropped(three: EmbeddedChain) -> None:
    three.evidence.submit(double_vote(three, KEYS[0]))
    with closing(sqlite3.connect(three.store.location.path, factory=Connection)) as at, at:
        # The evidence looks as if it had waited for very long, while other evidence filled the
        # blocks.
        at.execute("UPDATE pending_evidence SET height = -1000000, time = 0")

        pool.remove_settled(at, [three.reads.block(5)[1]])

    assert three.store.reap_evidence(1 << 20) == ()


def test_the_pool_has_a_bound(
    three: EmbeddedChain, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_PENDING", 1)
    three.evidence.submit(double_vote(three, KEYS[0]))

    with pytest.raises(EvidencePoolFull, match="evidence pool is full: 1 pieces"):
        three.evidence.submit(double_vote(three, KEYS[1]))
    reply = sent(client, double_vote(three, KEYS[1]))
    assert reply["error"]["data"].startswith(
        "failed to add evidence: evidence pool is full: 1 pieces"
    )


FAILED = "failed to add evidence: Invalid evidence: "


def test_evidence_that_proves_nothing_is_refused_in_cometbft_s_words(
    three: EmbeddedChain, client: FlaskClient
) -> None:
    votes = double_vote(three, KEYS[0])
    stranger = replace(votes.vote_a, validator_address=bytes(20))
    other = replace(votes.vote_b, round=1)
    forged = replace(votes.vote_b, signature=bytes(64))
    refusals = {
        "no evidence was provided": None,
        "evidence.ValidateBasic failed: duplicate votes in invalid order": replace(
            votes, vote_a=votes.vote_b
        ),
        f"{FAILED}address {'00' * 20} was not a validator at height 1": replace(
            votes, vote_a=stranger
        ),
        f"{FAILED}h/r/s does not match: 1/0/SIGNED_MSG_TYPE_PREVOTE vs"
        " 1/1/SIGNED_MSG_TYPE_PREVOTE": replace(votes, vote_b=other),
        f"{FAILED}verifying VoteB: invalid signature": replace(votes, vote_b=forged),
        f"{FAILED}validator power from evidence and our validator set does not match"
        " (5 != 10)": replace(votes, validator_power=5),
        f"{FAILED}total voting power from the evidence and our validator set does not match"
        " (5 != 20)": replace(votes, total_voting_power=5),
        f"{FAILED}evidence has a different time to the block it is associated with"
        " (1970-01-01 00:00:00 +0000 UTC != 2020-09-13 12:26:40 +0000 UTC)": replace(
            votes, timestamp=0
        ),
    }

    for text, piece in refusals.items():
        assert sent(client, piece)["error"]["data"] == text
    assert three.store.reap_evidence(1 << 20) == ()


def test_an_attack_that_is_none_is_refused_in_cometbft_s_words(
    three: EmbeddedChain, client: FlaskClient
) -> None:
    lunatic = attack(three, KEYS, 4, 2, app_hash=b"\x66" * 8)
    amnesia = attack(three, KEYS, 3, 3, commit_round=1, data_hash=b"\x66" * 32)
    first, *others = lunatic.byzantine_validators
    own = three.reads.block_meta(4).block_id.hash.hex().upper()
    refusals = {
        "common height is the same as conflicting block height so expected the conflicting"
        " block to be correctly derived yet it wasn't": attack(
            three, KEYS, 4, 4, app_hash=b"\x66" * 8
        ),
        f"trusted header hash matches the evidence's conflicting header hash: {own}": attack(
            three, KEYS, 4, 4
        ),
        "total voting power from the evidence and our validator set does not match (5 != 20)": (
            replace(lunatic, total_voting_power=5)
        ),
        "expected 3 byzantine validators from evidence but got 2": replace(
            lunatic, byzantine_validators=tuple(others)
        ),
        "expected nil validators from an amnesia light client attack but got 3": replace(
            amnesia, byzantine_validators=lunatic.byzantine_validators
        ),
        "evidence contained an unexpected byzantine validator address; expected:"
        f" {first.address.hex().upper()}, got: {others[0].address.hex().upper()}": replace(
            lunatic, byzantine_validators=(*others, first)
        ),
        "evidence contained unexpected byzantine validator power; expected 10, got 9": replace(
            lunatic, byzantine_validators=(replace(first, voting_power=9), *others)
        ),
        f"byzantine validator at index 0 has address {first.address.hex().upper()} that does"
        f" not match pubkey address {others[0].address.hex().upper()}": replace(
            lunatic,
            byzantine_validators=(replace(first, pub_key=others[0].pub_key), *others),
        ),
    }

    for text, piece in refusals.items():
        assert sent(client, piece)["error"]["data"] == FAILED + text


def test_a_validator_that_is_blamed_has_a_key(
    three: EmbeddedChain, client: FlaskClient
) -> None:
    piece = compiled(Shape)(attack(three, KEYS, 4, 2, app_hash=b"\x66" * 8))
    piece["value"]["ByzantineValidators"][1]["pub_key"] = None
    call = {"jsonrpc": "2.0", "id": 1, "method": "broadcast_evidence"}

    reply = client.post("/", json={**call, "params": {"evidence": piece}}).get_json()

    assert reply["error"]["data"] == f"{FAILED}byzantine validator at index 1 has nil pubkey"


def test_a_validator_twice_in_a_commit_counts_once(
    three: EmbeddedChain, client: FlaskClient
) -> None:
    piece = attack(three, KEYS, 4, 2, app_hash=b"\x66" * 8)
    signed = piece.conflicting_block.signed_header
    first, _, third = signed.commit.signatures
    twice = replace(signed, commit=replace(signed.commit, signatures=(first, first, third)))
    block = replace(piece.conflicting_block, signed_header=twice)

    refused = sent(client, replace(piece, conflicting_block=block))["error"]["data"]

    member = three.reads.validators(2).validators[0]
    assert refused == (
        f"{FAILED}skipping verification of conflicting block failed: double vote from"
        f" Validator{{{member.address.hex().upper()}"
        f" PubKeyEd25519{{{member.pub_key.value.hex().upper()}}}"
        f" VP:10 A:{member.proposer_priority}}} (0 and 1)"
    )


def test_a_block_ahead_of_the_chain_must_be_earlier_than_the_latest(
    three: EmbeddedChain, client: FlaskClient
) -> None:
    early = three.reads.block_meta(4).header.time
    ahead = attack(three, KEYS, 5, 2, app_hash=b"\x66" * 8)

    # The attack is signed for a height that the chain has not reached.
    def at(time: int) -> Evidence:
        return forward(three, KEYS, ahead, height=9, time=time)

    assert "result" in sent(client, at(early))
    refused = sent(client, at(three.reads.block_meta(5).header.time + 1))["error"]["data"]
    assert refused.startswith(f"{FAILED}latest block time (")
    assert ") is before conflicting block time (" in refused


def test_a_commit_with_too_little_power_proves_nothing(
    three: EmbeddedChain, client: FlaskClient
) -> None:
    lunatic = attack(three, KEYS, 4, 2, app_hash=b"\x66" * 8)
    # The signatures are in the order of the set: powers 10, 7 and 3.
    weak = with_signatures(lunatic, [False, False, True])
    assert sent(client, weak)["error"]["data"] == (
        f"{FAILED}skipping verification of conflicting block failed:"
        " invalid commit -- insufficient voting power: got 3, needed more than 6"
    )
    half = with_signatures(lunatic, [True, False, True])
    assert sent(client, half)["error"]["data"] == (
        f"{FAILED}invalid commit from conflicting block:"
        " invalid commit -- insufficient voting power: got 13, needed more than 13"
    )
    forged = with_signatures(lunatic, [True, True, None])
    assert sent(client, forged)["error"]["data"] == (
        f"{FAILED}skipping verification of conflicting block failed:"
        f" wrong signature (#2): {'00' * 64}"
    )
    # At the common height, the block's own validator set is checked first.
    same = attack(three, KEYS, 3, 3, data_hash=b"\x66" * 32)
    assert sent(client, with_signatures(same, [True, None, False]))["error"]["data"] == (
        f"{FAILED}invalid commit from conflicting block: wrong signature (#1): {'00' * 64}"
    )


def test_a_backend_without_an_application_takes_no_evidence(three: EmbeddedChain) -> None:
    reader = ChainBackend(MemoryChain(three.reads.genesis(), ()))

    with pytest.raises(NotSupported, match="does not take evidence"):
        reader.evidence.submit(double_vote(three, KEYS[0]))
