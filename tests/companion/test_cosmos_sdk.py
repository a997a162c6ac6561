"""What nodes of the Cosmos SDK do otherwise than those of the kvstore."""

from __future__ import annotations

import json

import pytest

from flask_noderpc import DIALECTS
from flask_noderpc.companion.forward import ForwardedApplication
from flask_noderpc.companion.pool import Upstreams
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.domain.responses import ResultABCIQuery

from .raw_node import raw_node, results


@pytest.mark.parametrize("key", [None, "", "a2V5"])
@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"document"}))
def test_a_query_has_the_key_that_its_node_says(dialect: str, key: str | None) -> None:
    """It is null for the methods of an SDK's modules."""
    told = {
        "response": {
            "code": 0,
            "log": "",
            "info": "",
            "index": "0",
            "key": key,
            "value": "Cgh0b2tlbg==",
            "proofOps": None,
            "height": "95396",
            "codespace": "",
        }
    }
    with raw_node(results(told)) as url:
        nodes = Upstreams([Reader(Upstream(url, dialect=dialect))], 0.0)
        path = "/cosmos.bank.v1beta1.Query/Balance"
        found = ForwardedApplication(nodes, lambda: 9).query(path, b"", 0, False)

    assert json.loads(DIALECTS[dialect].encode(ResultABCIQuery(found))) == told
