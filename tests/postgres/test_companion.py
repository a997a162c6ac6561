"""Tests of a companion's store in PostgreSQL: one host follows, and another one serves."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.companion.beginning import FetchOptions
from flask_noderpc.companion.trust import TrustOptions
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.protocol.comet.hashes import header_hash
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for, serve
from tests.companion.conftest import (
    OLD,
    RECENT,
    import_all,
    make_recent_chain,
    node_of,
    upstreams_at,
)
from tests.companion.forked import Change, forked_node, sei_block, sei_results
from tests.companion.test_forms import BLOCKS, attributes
from tests.companion.test_import import get

from .conftest import Open

HEAD, TRUSTED = 10, 60


def test_a_store_is_revived_on_one_host_and_followed_on_another(open_host: Open) -> None:
    """The header that was given to the first host links the head for both."""
    chain = make_recent_chain()
    host, other = open_host(), open_host()
    trust = TrustOptions(TRUSTED, header_hash(chain.blocks[TRUSTED - 1].block.header))
    with serve(app_for(node_of(chain, RECENT), dialect="comet-0.38")) as url:
        import_all(host, upstreams_at(url), 1, HEAD)
        with pytest.raises(ConfigurationError, match="pass --trust HEIGHT:HASH of a newer"):
            import_all(other, upstreams_at(url), options=FetchOptions())

        import_all(host, upstreams_at(url), 1, OLD + 5, FetchOptions(trust))
        assert other.reads.latest_height() == OLD + 5
        import_all(other, upstreams_at(url), options=FetchOptions())

    assert host.reads.latest_height() == RECENT - 1
    assert host.verify() == RECENT - 1


@pytest.mark.parametrize(
    ("dialect", "of_block", "of_results"),
    [
        ("comet-0.34", sei_block, sei_results),
        ("comet-0.38", BLOCKS["the square of Celestia"], attributes("note", [1, {"a": None}])),
        ("comet-1.0", BLOCKS["the random of Secret"], attributes("value", None)),
    ],
)
def test_replies_come_back_to_the_byte(
    open_host: Open, dialect: str, of_block: Change, of_results: Change
) -> None:
    chain, host, other = make_chain(20), open_host(), open_host()
    changes = {"block": of_block, "block_results": of_results}
    with ExitStack() as stack:

        def url_of(backend: ChainBackend) -> str:
            return stack.enter_context(serve(app_for(backend, dialect=dialect)))

        node = stack.enter_context(forked_node(node_of(chain, 20), dialect, changes))
        import_all(host, upstreams_at(node), 1, 19)

        own, plain = url_of(other), url_of(node_of(chain, 20))
        for method in ("block", "block_results"):
            paths = [f"/{method}?height={height}" for height in range(1, 19)]
            answers = [get(node + path) for path in paths]
            assert [get(own + path) for path in paths] == answers
            assert [get(plain + path) for path in paths] != answers
    assert host.verify() == 19
