"""Tests that null, empty, absent and additional members of a node's JSON are served as they
came, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pytest

from flask_noderpc import DIALECTS, SQLiteBackend
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.domain.responses import ResultBlock, ResultCommit
from flask_noderpc.errors import UpstreamMismatch
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.until import until

from .conftest import Companion, import_all, node_of, upstreams_at
from .forked import Change, forked_node, sei_block, sei_results
from .test_follow import reason
from .test_import import NODES, get

# Members that are strings in Go: a node sends an empty string for their zero value, and never
# null.
TEXTS = ("log", "info", "codespace")
EVENT_LISTS = ("begin_block_events", "end_block_events", "finalize_block_events")


def all_events(result: Any) -> Iterator[Any]:
    """Yield the events of a block's results and of its transactions."""
    for tx in result["txs_results"] or ():
        yield from tx.get("events") or ()
    for name in EVENT_LISTS:
        yield from result.get(name) or ()


def attributes(member: str, value: Any) -> Change:
    """Set a member of every second attribute."""

    def change(result: Any) -> None:
        for event in all_events(result):
            for each in event["attributes"][::2]:
                each[member] = value

    return change


def without(*members: str) -> Change:
    """Remove members of the transactions' results."""

    def change(result: Any) -> None:
        for tx in result["txs_results"] or ():
            for member in members:
                del tx[member]

    return change


def txs(**members: Any) -> Change:
    """Set those members of the transactions' results that are empty."""
    zeros: tuple[Any, ...] = (None, "", "0", [])

    def change(result: Any) -> None:
        for tx in result["txs_results"] or ():
            tx.update({name: value for name, value in members.items() if tx[name] in zeros})

    return change


def null_events(result: Any) -> None:
    for tx in result["txs_results"] or ():
        tx["events"] = None


def gas_as_numbers(result: Any) -> None:
    for tx in result["txs_results"] or ():
        tx["gas_used"], tx["gas_wanted"] = int(tx["gas_used"]), int(tx["gas_wanted"])


def block_events(value: Any) -> Change:
    """Set those lists of a block's own events that are empty."""

    def change(result: Any) -> None:
        for name in EVENT_LISTS:
            if name in result and not result[name]:
                result[name] = value

    return change


def setting(**members: Any) -> Change:
    """Set those members of a block's results that are empty."""

    def change(result: Any) -> None:
        result.update({name: value for name, value in members.items() if not result.get(name)})

    return change


def no_attributes(value: Any) -> Change:
    """Add an event to each transaction whose attributes have this value."""

    def change(result: Any) -> None:
        for tx in result["txs_results"] or ():
            tx["events"] = [{"type": "none", "attributes": value}, *(tx["events"] or ())]

    return change


RESULTS: dict[str, Change] = {
    "a null value": attributes("value", None),
    "an empty value": attributes("value", ""),
    "a null key": attributes("key", None),
    "an additional member": attributes("note", [1, {"a": None}]),
    "null attributes": no_attributes(None),
    "empty attributes": no_attributes([]),
    "null texts": txs(**dict.fromkeys(TEXTS)),
    "null data": txs(data=None),
    "empty data": txs(data=""),
    "null events": null_events,
    "null gas": txs(gas_used=None, gas_wanted=None),
    "gas as numbers": gas_as_numbers,
    "no zeros": without(*TEXTS, "code", "data", "events", "gas_used", "gas_wanted"),
    "no code": without("code"),
    "null block events": block_events(None),
    "empty block events": block_events([]),
    "empty validator updates": setting(validator_updates=[]),
    "null validator updates": setting(validator_updates=None),
    "no transactions": setting(txs_results=[]),
    "empty updates": setting(consensus_param_updates={}),
    "null groups": setting(consensus_param_updates={"block": None, "validator": None}),
    "empty groups": setting(
        consensus_param_updates={
            "block": {"max_bytes": "22020096", "max_gas": "-1"},
            "evidence": None,
            "version": {},
            "abci": {},
        }
    ),
    "a total": setting(total_gas_used="17"),
}


def no_commit(value: Any) -> Change:
    """Set the value that the first block has in place of a commit."""

    def change(result: Any) -> None:
        block = result["block"]
        if block["header"]["height"] == "1":
            block["last_commit"] = value

    return change


def signatures(value: Any) -> Change:
    """Set the signatures in the first block, which has none."""

    def change(result: Any) -> None:
        block = result["block"]
        if block["header"]["height"] == "1":
            block["last_commit"]["signatures"] = value

    return change


def in_block(path: Sequence[str], value: Any) -> Change:
    """Set a member of the block that is empty or absent."""

    def change(result: Any) -> None:
        within = result["block"]
        for step in path[:-1]:
            within = within[step]
        if not within.get(path[-1]):
            within[path[-1]] = value

    return change


def null_evidence(result: Any) -> None:
    if not result["block"]["evidence"]["evidence"]:
        result["block"]["evidence"] = None


def null_data(result: Any) -> None:
    if not result["block"]["data"]["txs"]:
        result["block"]["data"] = None


def null_last_block(result: Any) -> None:
    if not result["block"]["header"]["last_block_id"]["hash"]:
        result["block"]["header"]["last_block_id"] = None


BLOCKS: dict[str, Change] = {
    # Only the first block has no last block.
    "no last block": null_last_block,
    "null evidence": null_evidence,
    "null list of evidence": in_block(("evidence", "evidence"), None),
    "no data": null_data,
    "null transactions": in_block(("data", "txs"), None),
    "the square of Celestia": in_block(("data", "square_size"), "1"),
    "the random of Secret": in_block(
        ("header", "encrypted_random"), {"random": "", "proof": None}
    ),
}


# CometBFT's own nodes have these forms, too.
USUAL = {"null data", "null block events", "null validator updates"}
# These forms apply to blocks without transactions.
EMPTY = {*BLOCKS, "no transactions"}


def chain_of(names: Sequence[str]) -> SampleChain:
    """Return a chain with a block for each change."""
    maker = ChainMaker()
    txs_of = [() if name in EMPTY else (name.encode() + b"=1", b"b=1") for name in names]
    blocks = tuple([maker.block(*each) for each in (*txs_of, ())])
    return SampleChain(maker.genesis, maker.state, blocks)


def at_heights(changes: Mapping[int, Change]) -> Change:
    """Return a change that applies the change of each height."""

    def change(result: Any) -> Any:
        height = result.get("height") or result["block"]["header"]["height"]
        made = changes.get(int(height))
        return made and made(result)

    return change


@pytest.mark.parametrize("dialect", NODES)
def test_stored_blocks_have_the_form_of_their_node(dialect: str, store: SQLiteBackend) -> None:
    """Each height has another form."""
    names = dict(enumerate((*BLOCKS, *RESULTS), 1))
    last = len(names)
    in_blocks = at_heights({h: BLOCKS[name] for h, name in names.items() if name in BLOCKS})
    changes = {
        "block": in_blocks,
        "block_by_hash": in_blocks,
        "block_results": at_heights(
            {h: RESULTS[name] for h, name in names.items() if name in RESULTS}
        ),
    }
    nodes = node_of(chain_of(list(names.values())), last + 1)
    with (
        forked_node(nodes, dialect, changes) as node,
        forked_node(nodes, dialect, {}) as plain,
        serve(app_for(store, dialect=dialect)) as own,
    ):
        import_all(store, upstreams_at(node), 1, last)

        for height, name in names.items():
            path = f"/{'block' if name in BLOCKS else 'block_results'}?height={height}"
            assert get(own + path) == get(node + path), name
            assert (get(node + path) == get(plain + path)) == (name in USUAL), name
        for height in range(1, len(BLOCKS) + 1):
            path = f"/block_by_hash?hash=0x{store.reads.block_meta(height).block_id.hash.hex()}"
            assert get(own + path) == get(node + path), height
    assert store.verify() == last


@pytest.mark.parametrize("dialect", NODES)
def test_headers_have_the_form_that_they_have_in_blocks(
    dialect: str, chain: SampleChain, store: SQLiteBackend
) -> None:
    """The null of the first header is preserved, too."""

    def of_header(header: Any) -> None:
        header["encrypted_random"] = {"random": header["height"], "proof": None}
        if header["height"] == "1":
            header["last_block_id"] = None

    def of_metas(result: Any) -> None:
        for each in result["block_metas"]:
            of_header(each["header"])

    changes: dict[str, Change] = {
        "block": lambda result: of_header(result["block"]["header"]),
        "blockchain": of_metas,
        "commit": lambda result: of_header(result["signed_header"]["header"]),
        "header": lambda result: of_header(result["header"]),
        "header_by_hash": lambda result: of_header(result["header"]),
    }
    with (
        forked_node(node_of(chain, 10), dialect, changes) as ahead,
        forked_node(node_of(chain, 9), dialect, changes) as node,
        serve(app_for(store, dialect=dialect)) as own,
    ):
        import_all(store, upstreams_at(ahead), 1, 9)

        digest = store.reads.block_meta(5).block_id.hash.hex()
        for path in (
            *(f"/{name}?height={height}" for name in ("commit", "header") for height in (1, 5)),
            "/blockchain?minHeight=1&maxHeight=9",
            f"/header_by_hash?hash=0x{digest}",
        ):
            assert get(own + path) == get(node + path), path
        assert b"encrypted_random" in get(own + "/blockchain")
    assert store.verify() == 9


@pytest.mark.parametrize("change", [no_commit(None), signatures(None)])
def test_the_first_block_may_have_no_commit(
    change: Change, chain: SampleChain, store: SQLiteBackend
) -> None:
    with forked_node(node_of(chain, 10), "comet-0.38", {"block": change}) as node:
        import_all(store, upstreams_at(node), 1, 9)

        with serve(app_for(store, dialect="comet-0.38")) as own:
            assert get(own + "/block?height=1") == get(node + "/block?height=1")


@pytest.mark.parametrize("dialect", NODES)
def test_a_transaction_has_the_form_of_its_node(
    dialect: str, chain: SampleChain, store: SQLiteBackend
) -> None:
    """``tx`` and ``tx_search`` keep the form, as ``block_results`` does."""
    change = without("info", "codespace")

    def of_tx(result: Any) -> None:
        change({"txs_results": [result["tx_result"]]})

    def of_search(result: Any) -> None:
        change({"txs_results": [each["tx_result"] for each in result["txs"]]})

    changes = {"block_results": change, "tx": of_tx, "tx_search": of_search}
    hashes = [tx_hash(tx).hex() for each in chain.blocks[:9] for tx in each.block.txs]
    with forked_node(node_of(chain, 10), dialect, changes) as node:
        import_all(store, upstreams_at(node), 1, 9)

        with serve(app_for(store, dialect=dialect)) as own:
            for path in (
                *(f"/tx?hash=0x{digest}" for digest in hashes),
                '/tx_search?query="tx.height>2%20AND%20tx.height<9"&per_page=100',
            ):
                assert get(own + path) == get(node + path), path


def test_a_chain_of_sei_is_followed(chain: SampleChain, store: SQLiteBackend) -> None:
    """The validators of the chain change, and events of its application are found."""
    changes = {"block": sei_block, "block_results": sei_results}
    with forked_node(node_of(chain, 50), "comet-0.34", changes) as node:
        import_all(store, upstreams_at(node), 1, 49)

        with serve(app_for(store, dialect="comet-0.34")) as own:
            for height in range(1, 49):
                for method in ("block", "block_results"):
                    path = f"/{method}?height={height}"
                    assert get(own + path) == get(node + path), path
            assert b'"total_count":"1"' in get(own + '/tx_search?query="app.key=%27k5.1%27"')
    assert store.verify() == 49


def test_addresses_behind_0x_are_verified(chain: SampleChain, store: SQLiteBackend) -> None:
    """Signatures are verified as for addresses without 0x."""

    def of_votes(commit: Any) -> None:
        for each in commit["signatures"]:
            each["validator_address"] = f"0x{each['validator_address']}"

    def of_members(result: Any) -> None:
        for each in result["validators"]:
            each["address"] = f"0x{each['address']}"

    changes = {
        "block": lambda result: of_votes(result["block"]["last_commit"]),
        "commit": lambda result: of_votes(result["signed_header"]["commit"]),
        "validators": of_members,
    }
    with forked_node(node_of(chain, 10), "comet-0.38", changes) as node:
        import_all(store, upstreams_at(node), 1, 9)

        with serve(app_for(store, dialect="comet-0.38")) as own:
            assert get(own + "/block?height=5") == get(node + "/block?height=5")
            address = chain.blocks[0].commit.signatures[0].validator_address.hex().upper()
            assert f'"address":"{address}"'.encode() in get(own + "/validators?height=5")
    assert store.verify() == 9


def _aggregate(commit: Any) -> None:
    """Change a commit into one of Berachain's, whose first signature is for all."""
    for number, each in enumerate(commit["signatures"]):
        each["block_id_flag"], each["timestamp"] = (5 if number else 4), "0001-01-01T00:00:00Z"
        each["signature"] = None if number else each["signature"]


def test_a_chain_of_aggregated_signatures_is_refused_with_the_reason(
    chain: SampleChain, companion: Companion
) -> None:
    changes: dict[str, Change] = {
        "block": lambda result: _aggregate(result["block"]["last_commit"]),
        "commit": lambda result: _aggregate(result["signed_header"]["commit"]),
    }
    with forked_node(node_of(chain, 20), "comet-1.0", changes) as node:
        followed = companion(node)
        followed.follow()
        said = "expected votes with block_id_flag 1 to 3, got 4"
        until(lambda: said in reason(followed), said)
        assert "one aggregated signature, such as Berachain" in reason(followed)
        followed.close()


@pytest.mark.parametrize("read", ["block", "blocks", "blocks_without_results"])
@pytest.mark.parametrize("digest", ["ab" * 32, "AB" * 32, "", None])
def test_a_block_without_its_hash_is_refused(
    read: str, digest: str | None, chain: SampleChain
) -> None:
    """The form of a hash in lower case must not restore the forged hash."""

    def forge(result: Any) -> None:
        result["block_id"]["hash"] = digest

    reads: dict[str, Callable[[Reader], object]] = {
        "block": lambda reader: reader.block(3),
        "blocks": lambda reader: reader.blocks([3]),
        "blocks_without_results": lambda reader: reader.blocks_without_results(3, 3),
    }
    with (
        forked_node(node_of(chain, 8), "comet-0.38", {"block": forge}) as url,
        closing(Upstream(url)) as node,
        pytest.raises(
            UpstreamMismatch, match="block 3: its header does not have the reported hash"
        ),
    ):
        reads[read](Reader(node))


def test_no_client_gets_a_forged_part_set(chain: SampleChain, store: SQLiteBackend) -> None:
    """The hash is in lower case, which differs from CometBFT's form."""

    def forge(result: Any) -> None:
        result["block_id"]["parts"] = {"total": 1, "hash": "cd" * 32}

    with forked_node(node_of(chain, 8), "comet-0.38", {"block": forge}) as url:
        import_all(store, upstreams_at(url), 1, 7)
    client = app_for(store, dialect="comet-0.38").test_client()
    answer: Any = client.get("/block?height=3").json
    found = answer["result"]["block_id"]
    assert found["parts"]["hash"] == store.reads.block_meta(3).block_id.parts.hash.hex().upper()


def test_a_search_counts_what_a_node_adds(chain: SampleChain, store: SQLiteBackend) -> None:
    def add(result: Any) -> None:
        result["block"]["pad"] = [None] * 100

    with forked_node(node_of(chain, 22), "comet-0.38", {"block": add}) as url:
        import_all(store, upstreams_at(url), 1, 21)
    metas = [store.reads.block_meta(height) for height in range(1, 21)]
    size = sum(meta.size for meta in metas)
    more = sum(len(meta.form) for meta in metas)
    assert more > 20 * 400
    path = '/block_search?query="block.height<21"&per_page=20'

    def search(limit: int) -> Any:
        app = app_for(store, dialect="comet-0.38", max_response_bytes=limit)
        return app.test_client().get(path).json

    assert search(size + more // 2)["error"]["data"].count("NODERPC_MAX_RESPONSE_BYTES")
    assert "MAX_RESPONSE" not in str(search(8 * (size + more)))


def test_another_dialect_has_its_own_form(chain: SampleChain, store: SQLiteBackend) -> None:
    """A client of 0.37 gets what a node of 0.37 sends, although the node of 0.38 leaves
    members out."""
    change = without("info", "codespace")
    with forked_node(node_of(chain, 10), "comet-0.38", {"block_results": change}) as node:
        import_all(store, upstreams_at(node), 1, 9)
    with serve(app_for(store, dialect="comet-0.37")) as own:
        assert b'"info":""' in get(own + "/block_results?height=3")
    with serve(app_for(store, dialect="comet-0.38")) as own:
        assert b'"info"' not in get(own + "/block_results?height=3")


def test_a_common_block_takes_no_more_room(chain: SampleChain, store: SQLiteBackend) -> None:
    """The form of CometBFT's own nodes is empty."""
    with forked_node(node_of(chain, 10), "comet-0.38", {}) as node:
        import_all(store, upstreams_at(node), 1, 9)
    for height in range(1, 9):
        results = store.reads.results(height)
        assert (store.reads.block(height)[1].form, results.form) == (b"", b"")
        assert not any(each.form for each in results.tx_results)


@pytest.mark.parametrize("dialect", NODES)
def test_null_is_the_zero_of_each_member(dialect: str) -> None:
    """Go's decoders do not change a member for null."""
    decode = DIALECTS[dialect].load
    nothing = dict.fromkeys(
        ("code", "data", "log", "info", "gas_wanted", "gas_used", "events", "codespace")
    )
    (found,) = decode(
        BlockResults,
        {
            "height": "1",
            "txs_results": [nothing],
            **dict.fromkeys((*EVENT_LISTS, "validator_updates", "app_hash")),
            "consensus_param_updates": None,
        },
    ).tx_results
    assert (found.code, found.data, found.log, found.gas_used) == (0, b"", "", 0)
    assert found.events == ()

    signed = decode(
        ResultCommit, {"signed_header": {"header": None, "commit": None}, "canonical": None}
    ).signed_header
    assert (signed.header.height, signed.header.app_hash) == (0, b"")
    assert (signed.commit.height, signed.commit.signatures) == (0, ())
    assert decode(ResultBlock, {"block_id": None, "block": None}).block_id.hash == b""
