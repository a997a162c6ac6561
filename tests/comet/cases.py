"""Values in the recorded replies that can be computed: ours, and the node's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from flask_noderpc.domain.block import (
    Block,
    BlockID,
    BlockIDFlag,
    Commit,
    DuplicateVoteEvidence,
    Header,
)
from flask_noderpc.domain.validator import PublicKey, ValidatorSet, ValidatorUpdate
from flask_noderpc.protocol.comet import hashes, key_types, keys, validators

from . import rebuild
from .rebuild import Json


@dataclass(frozen=True)
class Case:
    """Two values that must be equal: ours, and the node's."""

    kind: str
    where: str
    ours: object
    node: object


@dataclass
class Found:
    """All objects of one chain, with their places in the replies."""

    blocks: list[tuple[str, BlockID, Block]] = field(default_factory=list)
    metas: list[tuple[str, Json]] = field(default_factory=list)
    signed: list[tuple[str, Header, Commit]] = field(default_factory=list)
    headers: list[tuple[str, Header]] = field(default_factory=list)
    sets: list[tuple[str, int, ValidatorSet]] = field(default_factory=list)
    params: list[tuple[str, int, Json]] = field(default_factory=list)
    results: list[tuple[str, int, Json]] = field(default_factory=list)
    proofs: list[tuple[str, int, Json]] = field(default_factory=list)
    txs: list[tuple[str, Json]] = field(default_factory=list)
    status: list[tuple[str, Json]] = field(default_factory=list)
    addresses: dict[bytes, PublicKey] = field(default_factory=dict)

    def header_at(self, height: int) -> Header | None:
        """Return the header of a height from whichever reply has it."""
        return next((h for _, h in self.headers if h.height == height), None)


def nodes(value: Json, where: str = "") -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield every JSON object below ``value`` with its path."""
    if isinstance(value, dict):
        yield where, value
        for key, item in value.items():
            yield from nodes(item, f"{where}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nodes(item, f"{where}/{index}")


def collect(replies: Json) -> Found:
    """Sort every object of one chain's replies by its kind."""
    found = Found()
    for where, item in nodes(replies):
        _collect_chain(found, where, item)
        _collect_validators(found, where, item)
        _collect_execution(found, where, item)
    return found


def _collect_chain(found: Found, where: str, item: dict[str, Json]) -> None:
    if {"block_id", "block"} <= item.keys():
        found.blocks.append(
            (where, rebuild.block_id(item["block_id"]), rebuild.block(item["block"]))
        )
    if "signed_header" in item:
        signed = item["signed_header"]
        found.signed.append(
            (where, rebuild.header(signed["header"]), rebuild.commit(signed["commit"]))
        )
    if "header" in item:
        found.headers.append((where, rebuild.header(item["header"])))
    if "sync_info" in item:
        found.status.append((where, item["sync_info"]))
    for index, meta in enumerate(item.get("block_metas", ())):
        found.metas.append((f"{where}/{index}", meta))


def _collect_validators(found: Found, where: str, item: dict[str, Json]) -> None:
    listed = item.get("validators")
    if isinstance(listed, list) and "block_height" in item:
        found.sets.append((where, int(item["block_height"]), rebuild.validator_set(listed)))
    if "last_validators" in item:
        height = int(item["height"])
        for name, at in (("validators", height), ("last_validators", height - 1)):
            members = rebuild.validator_set(item[name]["validators"])
            found.sets.append((f"{where}/{name}", at, members))
    if "genesis_time" in item:
        first = int(item["initial_height"])
        updates = [
            ValidatorUpdate(rebuild.public_key(member["pub_key"]), int(member["power"]))
            for member in item["validators"]
        ]
        found.sets.append((where, first, validators.genesis_set(updates)))
        found.params.append((where, first, item["consensus_params"]))
    elif "consensus_params" in item:
        found.params.append((where, int(item["block_height"]), item["consensus_params"]))
    if {"address", "pub_key"} <= item.keys():
        found.addresses[bytes.fromhex(item["address"])] = rebuild.public_key(item["pub_key"])


def _collect_execution(found: Found, where: str, item: dict[str, Json]) -> None:
    if "txs_results" in item:
        found.results.append((where, int(item["height"]), item["txs_results"] or []))
    if {"hash", "tx", "tx_result"} <= item.keys():
        found.txs.append((where, item))
        if "proof" in item:
            found.proofs.append((where, int(item["height"]), item["proof"]))


def all_cases(replies: Json) -> Iterator[Case]:
    """Yield every case of one node version; each top-level group is a separate chain."""
    for name, group in replies.items():
        found = collect(group)
        for source in (
            _blocks,
            _block_times,
            _metas,
            _header_hashes,
            _status_hashes,
            _signatures,
            _validator_sets,
            _keys,
            _params,
            _results,
            _txs,
        ):
            for case in source(found):
                yield Case(case.kind, name + case.where, case.ours, case.node)


def _blocks(found: Found) -> Iterator[Case]:
    for where, block_id, block in found.blocks:
        ours, _ = hashes.block_id(block)
        head = block.header
        yield Case("block hash", where, ours.hash, block_id.hash)
        yield Case("part set", where, ours.parts, block_id.parts)
        yield Case("data hash", where, hashes.data_hash(block.txs), head.data_hash)
        yield Case(
            "last commit hash",
            where,
            hashes.commit_hash(block.last_commit),
            head.last_commit_hash,
        )
        yield Case(
            "evidence hash", where, hashes.evidence_hash(block.evidence), head.evidence_hash
        )


def _block_times(found: Found) -> Iterator[Case]:
    for where, _, block in found.blocks:
        for place, _, members in found.sets:
            if hashes.validators_hash(members) == block.header.validators_hash and (
                block.last_commit.signatures
            ):
                ours = validators.median_time(block.last_commit, members)
                yield Case("block time", where + place, ours, block.header.time)


def _metas(found: Found) -> Iterator[Case]:
    sizes = {block_id: hashes.part_set(block)[1] for _, block_id, block in found.blocks}
    counts = {block_id: len(block.txs) for _, block_id, block in found.blocks}
    for where, meta in found.metas:
        block_id = rebuild.block_id(meta["block_id"])
        head = rebuild.header(meta["header"])
        yield Case("meta hash", where, hashes.header_hash(head), block_id.hash)
        if block_id in sizes:
            yield Case("block size", where, sizes[block_id], int(meta["block_size"]))
            yield Case("tx count", where, counts[block_id], int(meta["num_txs"]))


def _header_hashes(found: Found) -> Iterator[Case]:
    for where, head, commit in found.signed:
        yield Case("signed header", where, hashes.header_hash(head), commit.block_id.hash)
    for where, head in found.headers:
        parent = found.header_at(head.height - 1)
        if parent is not None:
            ours = hashes.header_hash(parent)
            yield Case("parent hash", where, ours, head.last_block_id.hash)
        for place, block_id, block in found.blocks:
            if block.header.height == head.height:
                yield Case(
                    "same header", where + place, hashes.header_hash(head), block_id.hash
                )


def _status_hashes(found: Found) -> Iterator[Case]:
    for where, sync in found.status:
        for end in ("earliest", "latest"):
            edge = found.header_at(int(sync[f"{end}_block_height"]))
            if edge is not None:
                node = bytes.fromhex(sync[f"{end}_block_hash"])
                yield Case("status hash", where + end, hashes.header_hash(edge), node)


def _signatures(found: Found) -> Iterator[Case]:
    commits = [(where, b.header.chain_id, b.last_commit) for where, _, b in found.blocks]
    commits += [(where, head.chain_id, commit) for where, head, commit in found.signed]
    for where, chain_id, commit in commits:
        for index, sig in enumerate(commit.signatures):
            if sig.block_id_flag == BlockIDFlag.ABSENT:
                continue
            vote = keys.commit_vote(commit, index)
            key = found.addresses[sig.validator_address]
            ours = keys.verify_vote(vote, chain_id, key)
            yield Case("commit signature", f"{where}/{index}", ours, True)
    for where, _, block in found.blocks:
        for item in block.evidence:
            assert isinstance(item, DuplicateVoteEvidence)
            for vote in (item.vote_a, item.vote_b):
                key = found.addresses[vote.validator_address]
                ours = keys.verify_vote(vote, block.header.chain_id, key)
                yield Case("evidence signature", where, ours, True)


def _validator_sets(found: Found) -> Iterator[Case]:
    for where, height, members in found.sets:
        ours = hashes.validators_hash(members)
        head = found.header_at(height)
        if head is not None:
            yield Case("validators hash", where, ours, head.validators_hash)
        head = found.header_at(height - 1)
        if head is not None:
            yield Case("next validators hash", where, ours, head.next_validators_hash)
        ordered = validators.in_order(members.validators)
        yield Case("validator order", where, ordered, members.validators)


def _keys(found: Found) -> Iterator[Case]:
    for address, key in found.addresses.items():
        yield Case("address", "/" + address.hex(), key_types.address(key), address)


def _params(found: Found) -> Iterator[Case]:
    for where, height, params in found.params:
        head = found.header_at(height)
        if head is not None:
            ours = hashes.consensus_hash(rebuild.consensus_params(params))
            yield Case("consensus hash", where, ours, head.consensus_hash)


def _results(found: Found) -> Iterator[Case]:
    for where, height, results in found.results:
        after = found.header_at(height + 1)
        if after is not None:
            ours = hashes.results_hash(rebuild.tx_result(result) for result in results)
            yield Case("results hash", where, ours, after.last_results_hash)


def _txs(found: Found) -> Iterator[Case]:
    for where, item in found.txs:
        ours = hashes.tx_hash(rebuild.text_bytes(item["tx"]))
        yield Case("tx hash", where, ours, bytes.fromhex(item["hash"]))
    for where, height, printed in found.proofs:
        proof = rebuild.tx_proof(printed)
        leaf = hashes.leaf_hash(hashes.tx_hash(proof.tx))
        yield Case("proof leaf", where, leaf, proof.proof.leaf_hash)
        yield Case("proof root", where, hashes.root_of_proof(proof.proof), proof.root_hash)
        for place, _, block in found.blocks:
            if block.header.height == height:
                yield Case(
                    "proof in block", where + place, proof.root_hash, block.header.data_hash
                )
                made = hashes.tx_proof(block.txs, proof.proof.index)
                yield Case("proof made", where + place, made, proof)
