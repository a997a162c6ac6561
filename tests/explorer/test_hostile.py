"""Tests that everything in a chain is shown as text on the explorer's pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc import CommittedBlock, MemoryChain, explorer_bp
from flask_noderpc.backends.base.application import ApplicationAccess
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.capabilities import Mempool
from flask_noderpc.domain.abci import Event, EventAttribute, QueryResult
from flask_noderpc.domain.network import NodeInfo
from flask_noderpc.domain.responses import PendingTxs
from flask_noderpc.explorer import text
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for

from .html import Html, page

MARKUP = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</code></td></table><h1>free</h1>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &#x27;",
    "<!-- -->",
)
# Direction marks, a zero-width space, half of a surrogate pair, control characters.
ODD = "\u202e\u2066\u200b\ufeff\x00\x1b[31m\x7f\r\n"

texts = st.one_of(st.sampled_from((*MARKUP, ODD, "")), st.text(max_size=40))
values = st.one_of(
    texts.map(lambda t: t.encode("utf-8", "surrogatepass")), st.binary(max_size=40)
)


class Spiteful(ChainBackend):
    """A chain with hostile text everywhere, which changes for each example."""

    def __init__(self) -> None:
        self.become(b"a=b", "")

    def become(self, tx: bytes, words: str) -> None:
        maker = ChainMaker()
        blocks = [spoiled(maker.block(tx), tx, words), maker.block()]
        super().__init__(MemoryChain(maker.genesis, blocks, state=maker.state))
        self._tx, self._words = tx, words
        self.network.info = NodeInfo(bytes(20), "chain", moniker=words)

    @cached_property
    def mempool(self) -> Mempool:
        return Waiting(lambda: self._tx)

    @property
    def application(self) -> ApplicationAccess:
        return Answering(QueryResult(0, self._words, self._words, 0, self._tx, self._tx))


class Waiting(Mempool):
    """A mempool with one pending transaction."""

    def __init__(self, tx: Callable[[], bytes]) -> None:
        self._tx = tx

    def pending(self, limit: int) -> PendingTxs:
        return PendingTxs(1, len(self._tx()), (self._tx(),))


class Answering(ApplicationAccess):
    """An application with one result for every query."""

    def __init__(self, result: QueryResult) -> None:
        self._result = result

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        return self._result


def spoiled(block: CommittedBlock, value: bytes, words: str) -> CommittedBlock:
    """Return the block with results whose texts no hash covers."""
    event = Event(words, (EventAttribute(value, value), EventAttribute(b"action", value)))
    (result,) = block.results.tx_results
    result = replace(
        result,
        log=words,
        info=words,
        codespace=words,
        events=(event, Event("message", event.attributes)),
    )
    results = replace(block.results, tx_results=(result,), begin_block_events=(event,))
    return replace(block, results=results)


# One app is enough, as each app compiles its templates.
BACKEND = Spiteful()
APP = app_for(BACKEND)
APP.register_blueprint(explorer_bp)


def shown(tx: bytes, words: str) -> FlaskClient:
    BACKEND.become(tx, words)
    return APP.test_client()


def paths(tx: bytes, words: str) -> list[str]:
    asked = quote(words.encode("utf-8", "replace"))[:200]
    return [
        "/",
        "/blocks",
        "/block/1",
        f"/tx/{tx_hash(tx).hex()}",
        f"/tx/{tx_hash(tx).hex()}?whole=1",
        "/mempool",
        f"/key?data={asked}",
        f"/query?path={asked}&data={asked.replace('0x', '')}",
        f"/search?q=x = '{asked.replace('%27', '')}'",
    ]


@given(values, texts)
def test_nothing_of_a_chain_is_markup(tx: bytes, words: str) -> None:
    client = shown(tx, words)
    for path in paths(tx, words):
        response = client.get(f"/explorer{path}")
        # Values that are not a valid query give a page that says so.
        assert response.status_code == 200 or "?" in path
        check(response.text)


TAGS = {
    *("html", "head", "meta", "title", "link", "script", "body", "header", "nav", "main"),
    *("footer", "section", "div", "span", "p", "a", "img", "h1", "h2", "h3", "small"),
    *("form", "label", "input", "button", "dl", "dt", "dd", "ul", "li", "strong", "time"),
    *("table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary"),
}


def check(source: str) -> None:
    found = Html(source)
    assert {tag for tag, _ in found.elements} <= TAGS
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action"):
            assert attributes.get(name, "/").startswith(("/", "#")), (tag, attributes)
        assert attributes.get("src", "/explorer/static/").startswith("/explorer/static/")
    # Characters without a glyph are shown as an escape or as hex.
    assert all(c.isprintable() or c in "\n\t" for c in source)


@pytest.mark.parametrize("words", [*MARKUP, ODD])
def test_markup_is_shown_as_the_text_that_it_is(words: str) -> None:
    tx = f"name={words}".encode()
    found = page(shown(tx, words), f"/tx/{tx_hash(tx).hex()}")

    if text.visible(words) == words:
        assert f"name={words}" in found.whole_text
    else:
        assert f"0x{tx.hex()}" in found.text
    assert text.visible(words).split()[0] in found.text


@given(st.binary(max_size=300), st.integers(1, 60))
def test_bytes_are_shown_up_to_a_limit(data: bytes, limit: int) -> None:
    found = text.of_bytes(data, limit)

    assert text.visible(found.text) == found.text
    assert len(found.text) <= limit + 2
    if not found.left:
        if found.text.startswith("0x") and bytes.fromhex(found.text[2:]) == data:
            return
        assert found.text.encode() == data


@given(st.text(max_size=100), st.integers(0, 60))
def test_texts_are_shown_up_to_a_limit(words: str, limit: int) -> None:
    found = text.of_text(words, limit)

    assert all(c.isprintable() or c in "\n\t" for c in found.text)
    assert found.left == max(0, len(words) - limit)


def test_many_attributes_are_cut() -> None:
    maker = ChainMaker()
    block = maker.block(b"a=b")
    many = tuple(EventAttribute(b"key%d" % number, b"value") for number in range(150))
    results = replace(block.results, begin_block_events=(Event("many", many),))
    chain = MemoryChain(maker.genesis, [replace(block, results=results)], state=maker.state)
    app = app_for(ChainBackend(chain))
    app.register_blueprint(explorer_bp)

    first = page(app.test_client(), "/block/1")
    (link,) = (each for each in first.links if "whole=1" in each)
    whole = page(app.test_client(), link.removeprefix("/explorer"))

    assert [name in first.text for name in ("key99 value", "key100 value")] == [True, False]
    assert "50 more attributes are on the page with all values." in first.text
    assert "key149 value" in whole.text
    assert "more attributes" not in whole.text
