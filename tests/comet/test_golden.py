"""Tests that values of real nodes equal the computed ones, for all recorded replies."""

from __future__ import annotations

from collections import Counter

import pytest

from . import rebuild
from .cases import Case, all_cases

VERSIONS = ("0.34.35", "0.37.18", "0.38.25", "1.0.1")
CASES = {version: list(all_cases(rebuild.reply(version))) for version in VERSIONS}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{version} {case.kind} {case.where}")
        for version in VERSIONS
        for case in CASES[version]
    ],
)
def test_our_results_equal_those_of_a_real_node(case: Case) -> None:
    assert case.ours == case.node


# Number of objects in the file of 0.34, so that a walk that misses some of them fails.
OF_0_34 = {
    "block hash": 6,
    "part set": 6,
    "data hash": 6,
    "last commit hash": 6,
    "evidence hash": 6,
    "block time": 13,
    "meta hash": 2,
    "block size": 1,
    "tx count": 1,
    "signed header": 3,
    "parent hash": 5,
    "same header": 19,
    "status hash": 2,
    "commit signature": 8,
    "evidence signature": 2,
    "validators hash": 4,
    "next validators hash": 2,
    "validator order": 5,
    "address": 3,
    "consensus hash": 2,
    "results hash": 1,
    "tx hash": 4,
    "proof leaf": 1,
    "proof root": 1,
    "proof in block": 3,
    "proof made": 3,
}


# From 0.37 on the header routes print the header of one block again, and these two chains
# show more of their validators than the others.
OF_0_37 = OF_0_34 | {
    "block time": 8,
    "parent hash": 7,
    "same header": 25,
    "next validators hash": 3,
    "validator order": 6,
    "results hash": 2,
}
EXPECTED = {
    "0.34.35": OF_0_34,
    "0.37.18": OF_0_37,
    "0.38.25": OF_0_34 | {"same header": 22, "parent hash": 6},
    "1.0.1": OF_0_37,
}


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_in_the_replies_was_missed(version: str) -> None:
    assert Counter(case.kind for case in CASES[version]) == EXPECTED[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_block_of_two_parts_and_one_with_evidence_are_among_them(version: str) -> None:
    blocks = [
        (rebuild.block_id(found["block_id"]), rebuild.block(found["block"]))
        for found in rebuild.reply(version)["validator_evidence_multipart"].values()
        if "block" in found
    ]

    assert [block_id.parts.total for block_id, _ in blocks] == [1, 2]
    assert [len(block.evidence) for _, block in blocks] == [1, 0]
