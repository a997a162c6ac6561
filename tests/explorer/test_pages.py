"""Tests of each page of the explorer, and of its text when there is nothing to show."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest
from flask import Flask, redirect, request
from werkzeug import Response

from flask_noderpc import ConfigurationError, Denied, MemoryChain, NodeRPC, explorer_bp
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.domain.facts import TxLine
from flask_noderpc.explorer import node
from flask_noderpc.feature import Feature, features
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for

from ..helpers.stores import make_store
from .conftest import MakeSite, Site
from .html import Html, page

HEIGHT = re.compile(r"/explorer/block/(\d+)")


def digest(tx: bytes) -> str:
    return sha256(tx).hexdigest().upper()


def heights(found: Html) -> list[int]:
    return [int(match[1]) for link in found.links if (match := HEIGHT.fullmatch(link))]


def test_a_new_chain_has_an_overview(site: Site) -> None:
    found = page(site.client, "/")

    assert "none yet" in found.text
    assert "The chain has no blocks yet." in found.text
    assert "No transactions found." in found.text
    assert "The chain has no blocks yet." in page(site.client, "/blocks").text
    assert page(site.client, "/charts")
    assert page(site.client, "/txs")


def test_the_overview_lists_blocks_and_transactions_newest_first(site: Site) -> None:
    site.grow(b"name=satoshi", b"a=1")
    site.grow()
    site.grow(b"b=<2>")

    found = page(site.client, "/")

    # Heights of the latest block among the figures, of the blocks, and of the transactions.
    assert heights(found) == [3, 3, 2, 1, 3, 1, 1]
    assert found.text.index("b=<2>") < found.text.index("a=1") < found.text.index("name=sat")
    assert site.chain.reads.chain_id() in found.text


def test_blocks_are_paged_by_their_height(site: Site) -> None:
    for _ in range(45):
        site.grow()

    newest, older = page(site.client, "/blocks"), page(site.client, "/blocks?to=25")
    oldest = page(site.client, "/blocks?to=5")

    assert heights(newest) == list(range(45, 25, -1))
    assert heights(older) == list(range(25, 5, -1))
    assert heights(oldest) == [5, 4, 3, 2, 1]
    assert "/explorer/blocks?to=25" in newest.links
    assert {"/explorer/blocks?to=45", "/explorer/blocks?to=5"} <= {*older.links}
    assert all("to=0" not in link for link in oldest.links)
    assert heights(page(site.client, "/blocks?to=9999")) == heights(newest)


def test_a_block_shows_its_header_and_transactions(site: Site) -> None:
    site.grow(b"a=1", b"b=2")
    site.grow()
    block_hash = site.chain.reads.hash_at(1).hex().upper()

    found = page(site.client, "/block/1")

    assert block_hash in found.text
    assert "Signed by 1 of 1 validators" in found.text
    assert f"/explorer/tx/{digest(b'a=1')}" in found.links
    assert found.text.index("a=1") < found.text.index("b=2")
    assert {"/explorer/block/2"} == {link for link in found.links if "/block/" in link}
    by_hash = site.client.get(f"/explorer/block/0x{block_hash.lower()}")
    assert by_hash.location == "/explorer/block/1"


def test_the_transactions_of_a_large_block_are_paged(site: Site) -> None:
    site.grow(*(b"k%d=v" % number for number in range(250)))

    first, last = page(site.client, "/block/1"), page(site.client, "/block/1?page=3")

    assert first.text.count("=v") == 100
    assert "k0=v" in first.text
    assert last.text.count("=v") == 50
    assert "k249=v" in last.text
    assert "/explorer/block/1?page=3" in first.links
    assert "page: expected at most 3" in page(site.client, "/block/1?page=4", 400).text


def test_a_transaction_shows_its_result_events_and_content(site: Site) -> None:
    site.grow(b"name=satoshi")

    found = page(site.client, f"/tx/0x{digest(b'name=satoshi').lower()}")

    assert "Success" in found.text
    assert "Cosmoshi Netowoko" in found.text
    assert "not indexed" in found.text
    assert found.text.endswith(("name=satoshi RPC of this node, dialect document",))
    assert heights(found) == [1]


def test_an_abi_is_not_read_where_there_is_no_evm(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An installation of the core alone has no eth-abi.
    monkeypatch.delitem(sys.modules, "flask_noderpc.explorer.abi", raising=False)
    monkeypatch.setitem(sys.modules, "eth_abi", None)
    site.grow(b"name=satoshi")

    found = site.client.post(f"/explorer/tx/{digest(b'name=satoshi')}", data={"abi": "[]"})

    assert found.status_code == 200
    assert "Cosmoshi Netowoko" in found.text


def test_a_waiting_transaction_has_a_page(site: Site) -> None:
    site.grow()
    site.chain.mempool.submit(b"soon=1")

    assert "Pending in the" in page(site.client, f"/tx/{digest(b'soon=1')}").text
    pool = page(site.client, "/mempool")
    assert "1 pending, 6 bytes." in pool.text
    assert f"/explorer/tx/{digest(b'soon=1')}" in pool.links


def test_long_values_are_cut_with_a_way_to_the_whole(site: Site) -> None:
    tx = b"name=" + b"x" * 1_000_000
    site.grow(tx)
    address = f"/tx/{digest(tx)}"

    cut, whole = page(site.client, address), page(site.client, f"{address}?whole=1")

    assert "998,005 more" in cut.text
    assert "xxx" * 1000 not in cut.text
    assert f"/explorer{address}?whole=1" in cut.links
    assert "x" * 1_000_000 in whole.text


def test_validators_of_a_height_are_listed(tmp_path: Path) -> None:
    chain = make_chain(8)
    store = make_store(tmp_path / "chain.db")
    store.init_chain(chain.genesis, chain.state)
    store.append_block(*chain.blocks)
    app = app_for(store)
    app.register_blueprint(explorer_bp)
    client = app.test_client()
    try:
        members = store.reads.validators(9)
        assert len(members.validators) == 4
        latest, first = page(client, "/validators"), page(client, "/validators?height=1")
        assert (
            f"{len(members.validators)} with a voting power of {members.total_power} together."
            in latest.text
        )
        assert "3 with a voting power of 20 together." in first.text
        assert "50.0 %" in first.text
        assert "proposer" in first.text
        assert "must be less than" in page(client, "/validators?height=99", 404).text
        accused = [height for height in range(1, 9) if store.reads.block(height)[1].evidence]
        assert "1 of misbehaviour" in page(client, f"/block/{accused[0]}").text
    finally:
        store.close()


def test_charts_show_each_block_of_the_window(site: Site) -> None:
    for number in range(12):
        site.grow(*(b"k%d.%d=v" % (number, i) for i in range(number % 3)))

    found = page(site.client, "/charts?count=10")
    older = page(site.client, "/charts?to=2&count=10")

    assert sum(tag == "rect" for tag, _ in found.elements) == 40
    assert "Blocks 3 to 12." in found.text
    assert "Block 12: 2" in found.text
    assert "Blocks 1 to 2." in older.text
    # The first block has no previous block.
    assert sum(tag == "rect" for tag, _ in older.elements) == 7


def test_metrics_count_the_calls_of_the_node(make_site: MakeSite) -> None:
    site = make_site(metrics=True)
    site.grow()
    before = _calls(page(site.client, "/metrics"))
    for _ in range(3):
        site.client.get("/health")
    site.client.get("/block?height=99")

    found = page(site.client, "/metrics")

    assert _calls(found) == before + 4
    assert re.search(r"health \d+ 0 [\d.]+ ms", found.text)
    assert re.search(r"block \d+ [1-9]\d* [\d.]+ ms", found.text)


def _calls(found: Html) -> int:
    match = re.search(r"([\d,]+) calls were answered", found.text)
    assert match is not None
    return int(match[1].replace(",", ""))


def test_without_metrics_the_page_names_the_setting(site: Site) -> None:
    assert "NODERPC_METRICS" in page(site.client, "/metrics").text


def test_the_application_can_be_queried(site: Site) -> None:
    site.grow(b"name=satoshi")

    by_text = page(site.client, "/query?data=name")
    by_hex = page(site.client, f"/query?data=0x{b'name'.hex()}&height=0")

    assert "satoshi" in by_text.text
    assert "satoshi" in by_hex.text
    assert "hex digits after 0x" in page(site.client, "/query?data=0xx", 400).text
    assert "height: expected a number" in page(site.client, "/query?height=-1", 400).text


def test_a_key_shows_its_value_and_the_transactions_that_name_it(site: Site) -> None:
    site.grow(b"name=satoshi")
    site.grow(b"name=hal")

    found = page(site.client, "/key?data=name")

    assert "Value hal" in found.text
    assert {digest(b"name=satoshi"), digest(b"name=hal")} <= {
        link.rpartition("/")[2] for link in found.links
    }
    assert "none" in page(site.client, "/key?data=unknown").text


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/nothing/here", 404, "the explorer has no page /nothing/here"),
        ("/block/99", 404, "must be less than or equal to the current blockchain height 1"),
        ("/block/" + "00" * 32, 404, "not found"),
        ("/block/x", 400, "expected a height or a hash of 64 hex digits"),
        ("/tx/" + "00" * 32, 404, "its block may not be stored here"),
        ("/tx/xyz", 400, "hash: expected 64 hex digits"),
        ("/blocks?to=x", 400, "to: expected a number, got"),
        ("/blocks?to=" + "9" * 30, 400, "to: expected a number"),
        ("/block/1?page=-1", 400, "page: expected a number"),
        ("/account/nobody", 400, "address: expected"),
        ("/search?q=nothing", 404, "an event query such as tx.height > 5"),
        ("/search?q=a%3D", 400, "expected an event query"),
        ("/validators?page=9", 400, "page should be within"),
    ],
)
def test_errors_are_pages_with_a_status_and_a_reason(
    site: Site, path: str, status: int, text: str
) -> None:
    site.grow()

    found = page(site.client, path, status)

    assert text in found.text
    assert "/explorer/" in found.links


def test_a_pruned_block_is_not_found(make_site: MakeSite) -> None:
    site = make_site(retain_blocks=3)
    for _ in range(40):
        site.grow()
    site.chain.store.prune(38)

    assert "lowest height is 38" in page(site.client, "/block/5", 404).text
    assert heights(page(site.client, "/blocks")) == [40, 39, 38]
    assert "lowest height is 38" in page(site.client, "/blocks?to=5", 404).text
    assert page(site.client, "/charts")


def test_a_chain_of_millions_of_blocks_is_read_by_height() -> None:
    first = 30_000_000
    maker = ChainMaker(initial_height=first)
    blocks = [maker.block(b"key%d=value" % number) for number in range(25)]
    app = app_for(ChainBackend(MemoryChain(maker.genesis, blocks, state=maker.state)))
    app.register_blueprint(explorer_bp)
    client = app.test_client()

    newest, oldest = page(client, "/blocks"), page(client, f"/blocks?to={first + 4}")

    assert heights(newest) == list(range(first + 24, first + 4, -1))
    assert heights(oldest) == list(range(first + 4, first - 1, -1))
    assert "30,000,024" in page(client, "/").text
    assert "Blocks 30,000,000 to 30,000,024." in page(client, "/charts").text
    assert f"lowest height is {first}" in page(client, "/block/1", 404).text
    assert "key3=value" in page(client, f"/block/{first + 3}").text


def test_a_search_beyond_its_limit_names_the_setting(make_site: MakeSite) -> None:
    site = make_site(max_response_bytes=1000)
    for number in range(10):
        site.grow(b"k%d=" % number + b"x" * 200)

    found = page(site.client, "/search?q=tx.height>0", 503)

    assert "NODERPC_MAX_RESPONSE_BYTES" in found.text


def test_what_the_node_does_not_serve_is_on_no_page(make_site: MakeSite) -> None:
    site = make_site(deny_methods=["tx", "tx_search", "broadcast_*"])
    site.grow(b"secret=1")

    assert "NODERPC_DENY_METHODS" in page(site.client, "/search?q=tx.height=1", 404).text
    assert "NODERPC_DENY_METHODS" in page(site.client, f"/tx/{digest(b'secret=1')}", 404).text
    assert "secret" not in page(site.client, "/").text
    assert "secret" not in page(site.client, "/txs").text
    assert "NODERPC_DENY_METHODS" in page(site.client, "/send").text


def test_pages_are_refused_as_calls_are(make_site: MakeSite) -> None:
    def allowed(request: object, method: str) -> bool | Denied:
        return method != "block" or Denied(401, {"WWW-Authenticate": "Basic"}, "who are you?")

    site = make_site(authorize=allowed)
    site.grow()

    response = site.client.get("/explorer/block/1")

    assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Basic")
    assert "who are you?" in response.text
    assert page(site.client, "/blocks")


def test_a_host_redirects_readers_of_pages_to_its_login(make_site: MakeSite) -> None:
    site = make_site(authorize=lambda *_: Denied(401))

    # The recipe of docs/flask.rst.
    def require_login() -> Response | None:
        pages = "noderpc.index", "noderpc.try"
        is_page = request.blueprint == "explorer" or request.endpoint in pages
        return redirect("/login") if is_page else None

    site.app.before_request(require_login)
    call = {"jsonrpc": "2.0", "id": 1, "method": "status"}

    for path in ("/", "/try", "/explorer/", "/explorer/blocks"):
        assert site.client.get(path).location == "/login"
    for response in (site.client.get("/status"), site.client.post("/", json=call)):
        assert response.status_code == 401


def test_only_served_hosts_have_pages(make_site: MakeSite) -> None:
    site = make_site(allowed_hosts=["localhost"])

    refused = site.client.get("/explorer/", headers={"Host": "evil.example"})

    assert (refused.status_code, "NODERPC_ALLOWED_HOSTS" in refused.text) == (403, True)
    assert page(site.client, "/")


@pytest.mark.parametrize("dialect", ["comet-0.34", "comet-0.38", "comet-1.0"])
def test_pages_show_a_node_of_any_dialect(make_site: MakeSite, dialect: str) -> None:
    site = make_site(dialect=dialect)
    site.grow(b"name=satoshi")
    site.grow()

    for path in (
        "/",
        "/blocks",
        "/txs",
        "/validators",
        "/mempool",
        "/charts",
        "/key?data=name",
    ):
        assert dialect in page(site.client, path).text
    assert "name=satoshi" in page(site.client, "/block/1").text
    assert "Success" in page(site.client, f"/tx/{digest(b'name=satoshi')}").text
    assert "current blockchain height 2" in page(site.client, "/block/99", 404).text
    for unknown in ("block", "tx"):
        found = page(site.client, f"/{unknown}/{'00' * 32}", 404)
        assert f"({'00' * 32}) not found" in found.text
    assert "expected an event query" in page(site.client, "/search?q=a%3D", 400).text


def test_the_index_page_of_the_node_links_to_its_explorer(site: Site) -> None:
    assert "/explorer/" in Html(site.client.get("/").text).links


def test_each_mount_has_an_explorer_of_its_own(make_site: MakeSite, tmp_path: Path) -> None:
    site = make_site()
    NodeRPC(
        site.app,
        name="other",
        url_prefix="/other",
        database=str(tmp_path / "other.db"),
        produce=False,
        chain_id="the-other",
    )
    site.app.register_blueprint(
        explorer_bp, name="other_explorer", mount="other", url_prefix="/other/explorer"
    )
    client = site.client
    try:
        other = Html(client.get("/other/explorer/").text)
        assert "the-other" in other.text
        assert "the-other" not in page(client, "/").text
        assert all(link.startswith(("/other/", "#")) for link in other.links)
        assert "/other/explorer/" in Html(client.get("/other/").text).links
    finally:
        from flask_noderpc.extension import mounts

        mounts(site.app)["other"].backend.close()


def test_an_explorer_without_its_mount_names_those_that_there_are() -> None:
    app = Flask("no mount")
    app.register_blueprint(explorer_bp, mount="elsewhere")
    app.testing = True

    with pytest.raises(ConfigurationError, match=r"name: expected a mount .* got 'elsewhere'"):
        app.test_client().get("/explorer/")


def test_a_url_prefix_with_a_variable_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="without variables, got '/<team>/pages'"):
        Flask("teams").register_blueprint(explorer_bp, url_prefix="/<team>/pages")


def test_the_footer_leads_to_the_node_where_the_app_has_an_index_of_its_own(
    site: Site,
) -> None:
    assert "/try" in page(site.client, "/").links
    assert "/" not in page(site.client, "/").links


ODD = (
    "",
    "0",
    "-1",
    "9223372036854775808",
    "1e5",
    "\u0661",
    "0xZZ",
    "\0",
    "a" * 9_000,
    "k CONTAINS",
)
ARGUMENTS = ("q", "page", "to", "count", "height", "data", "path")


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_no_address_is_an_error_of_the_server(site: Site, odd: str) -> None:
    site.grow(b"a=1")
    shown = quote(odd, safe="")
    for rule in site.app.url_map.iter_rules():
        if rule.endpoint.startswith("explorer.") and "/static/" not in rule.rule:
            path = re.sub("<.*?>", shown, rule.rule)
            fixed = re.sub("<.*?>", "1", rule.rule)
            for each in (path, *(f"{fixed}?{name}={shown}" for name in ARGUMENTS)):
                assert site.client.get(each).status_code < 500, each


def words_line(tx: bytes, result: ExecTxResult | None) -> TxLine | None:
    """Return a line for a word, and fail for a bad one."""
    word = tx.removeprefix(b"word=").decode()
    return TxLine(f"Say {word}", "" if word != "bad" else str(1 // 0)) if word else None


@pytest.fixture
def with_words(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add a feature that describes words, and one whose packages are missing."""
    here = f"{__name__}:words_line"
    more = (
        Feature(name="words", tx_line=here),
        Feature(name="lost", tx_line="lost.lines:read"),
    )
    monkeypatch.setattr("flask_noderpc.explorer.node.features", lambda: (*features(), *more))
    node._functions.cache_clear()
    yield
    node._functions.cache_clear()


@pytest.mark.usefixtures("with_words")
def test_a_feature_describes_its_transactions(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.grow(b"word=hello", b"word=bad")

    found = page(site.client, "/txs").text
    assert "Say hello" in found
    assert "word=bad" in found
    assert "words_line failed" in caplog.text
