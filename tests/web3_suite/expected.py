"""The tests of web3.py that fail, as patterns for the end of a test's name, with the reason. A
listed test must fail, and every other test must pass."""

from __future__ import annotations

_TYPES_ARE_WALKED = (
    "web3.py: the asynchronous client takes the values of a mapping for pairs"
    " (async_map_if_collection), so typed data never leaves it"
)
_NO_WITHDRAWALS = "the node's blocks have no withdrawals, and so no withdrawalsRoot"

FAILURES: tuple[tuple[str, str], ...] = (
    (
        "TestEth::test_invalid_eth_sign_typed_data?*",
        "the test wants an error of web3.py's own; the node's, in the same words, is another",
    ),
    ("TestAsyncEth::test_eth_sign_typed_data?*", _TYPES_ARE_WALKED),
    ("TestAsyncEth::test_invalid_eth_sign_typed_data?*", _TYPES_ARE_WALKED),
    (
        "TestAsyncEth::test_async_eth_sign_transaction?bytes?",
        "the test compares the address that it gave as bytes with a text",
    ),
    (
        "TestConnection::test_asyncio_gather_for_multiple_requests_matches_the_responses",
        _NO_WITHDRAWALS,
    ),
    ("TestConnection::test_async_public_socket_api", _NO_WITHDRAWALS),
)

RACES: tuple[tuple[str, str], ...] = (
    (
        "over_http.py::TestAsyncEth::test_eth_call_offchain_lookup_tries_next_url_for_"
        "non_4xx_error_status_and_tests_POST?*",
        "the test's double of aiohttp hangs up before it reads: a body sent after the head"
        " comes too late",
    ),
    (
        "TestConnection::test_async_eth_subscribe_syncing_mocked?syncing-True?",
        "as geth's, the node's first `false` follows the reply, and may come before what"
        " the test puts in its place",
    ),
)
"""Tests that may pass or fail, with the reason."""
