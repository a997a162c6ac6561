"""Tests of the consensus state, which shows a node between two blocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.domain.block import BlockID, Commit, Vote, VoteType
from flask_noderpc.testing.chains import ChainMaker, make_chain
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.consensus_schemas import short_vote_repr, vote_repr

from . import chain
from .chain import PeeredBackend

EVERY_DIALECT = pytest.mark.parametrize("dialect", ["document", "comet-0.38"])


def got(backend: Any, dialect: str, path: str) -> Any:
    """Return the result of a GET."""
    reply = app_for(backend, dialect=dialect).test_client().get(path)
    assert reply.status_code == 200, reply.text
    assert reply.json is not None
    return reply.json["result"]


@pytest.fixture
def own(tmp_path: Path) -> Any:
    made = chain.backend(tmp_path)
    yield made
    made.close()


@EVERY_DIALECT
def test_the_state_stands_at_the_height_to_come(own: PeeredBackend, dialect: str) -> None:
    state = got(own, dialect, "/consensus_state")["round_state"]
    members = got(own, dialect, "/validators")["validators"]

    assert state["height/round/step"] == f"{chain.LATEST + 1}/0/1"
    assert state["height_vote_set"] == [
        {
            "round": 0,
            "prevotes": ["nil-Vote"] * 4,
            "prevotes_bit_array": "BA{4:____} 0/20 = 0.00",
            "precommits": ["nil-Vote"] * 4,
            "precommits_bit_array": "BA{4:____} 0/20 = 0.00",
        }
    ]
    proposer = state["proposer"]
    assert members[proposer["index"]]["address"] == proposer["address"]


@EVERY_DIALECT
def test_dump_consensus_state_shows_validators_and_last_commit(
    own: PeeredBackend, dialect: str
) -> None:
    dump = got(own, dialect, "/dump_consensus_state")
    state = dump["round_state"]
    commit = got(own, dialect, "/commit")["signed_header"]["commit"]

    assert (state["height"], state["round"], state["step"]) == ("8", 0, 1)
    assert state["validators"]["validators"] == got(own, dialect, "/validators")["validators"]
    assert state["validators"]["proposer"] in state["validators"]["validators"]
    assert state["last_validators"]["proposer"] in state["last_validators"]["validators"]
    last = state["last_commit"]
    # The newcomer's vote is absent, and its power does not count.
    assert last["votes_bit_array"] == "BA{4:xxx_} 19/20 = 0.95"
    assert last["votes"][3] == "nil-Vote"
    first = commit["signatures"][0]
    assert last["votes"][0].startswith(f"Vote{{0:{first['validator_address'][:12]} 7/00/")
    assert last["votes"][0].endswith(f" 000000000000 @ {first['timestamp']}}}")
    assert commit["block_id"]["hash"][:12] in last["votes"][0]
    assert state["commit_time"] == first["timestamp"]
    assert dump["peers"] == []


@EVERY_DIALECT
def test_before_the_first_block_there_is_no_commit(dialect: str) -> None:
    maker = ChainMaker((10, 7), initial_height=5)
    empty = ChainBackend(MemoryChain(maker.genesis, ()))

    state = got(empty, dialect, "/dump_consensus_state")["round_state"]

    assert state["height"] == "5"
    assert state["commit_time"] == "0001-01-01T00:00:00Z"
    assert state["last_commit"] is None
    assert state["last_validators"] == {"validators": None, "proposer": None}
    assert got(empty, dialect, "/consensus_state")["round_state"]["proposer"]["index"] == 0


def test_a_vote_is_printed_in_short() -> None:
    vote = Vote(VoteType.PREVOTE, 9, 1, BlockID(), 5, b"\xab" * 20, 2, b"\x01\x02")

    assert short_vote_repr(vote) == (
        "Vote{2:ABABABABABAB 9/01/SIGNED_MSG_TYPE_PREVOTE(Prevote)"
        " 000000000000 010200000000 @ 1970-01-01T00:00:00.000000005Z}"
    )
    assert vote_repr(vote).split(" @ ")[0].endswith(" 010200000000 000000000000")


class _Unsigned(MemoryChain):
    """An app's own chain whose commits have no signatures."""

    def commit(self, height: int) -> Commit:
        return replace(super().commit(height), signatures=())


@EVERY_DIALECT
@pytest.mark.parametrize("path", ["/consensus_state", "/dump_consensus_state"])
def test_commits_may_have_no_signatures(dialect: str, path: str) -> None:
    made = make_chain()
    backend = ChainBackend(_Unsigned(made.genesis, made.blocks, state=made.state))
    found = got(backend, dialect, path)["round_state"]
    latest = made.blocks[-1].block.header.height
    shown = found.get("height") or found["height/round/step"].partition("/")[0]
    assert int(shown) == latest + 1
