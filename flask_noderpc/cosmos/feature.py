"""A chain of the Cosmos SDK: accounts with coins, its queries, and its REST gateway."""

from __future__ import annotations

from ..feature import Api, Feature, Surface

_REST = Api(
    setting="rest",
    layer="flask_noderpc.cosmos.rest.view:RestLayer",
    surfaces=(
        Surface(
            name="rest",
            title="REST",
            address="api_address",
            endpoint="rest_cosmos",
            middleware="flask_noderpc.cosmos.rest.view:RestMiddleware",
        ),
    ),
)

FEATURE = Feature(name="cosmos", apis=(_REST,))
