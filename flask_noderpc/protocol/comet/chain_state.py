"""Chain state, consensus parameters, and the rules for the block that extends the chain.

CometBFT: state.State.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...domain.abci import BlockResults
from ...domain.block import (
    NO_BLOCK,
    NO_COMMIT,
    Block,
    BlockID,
    BlockIDFlag,
    Commit,
    Evidence,
    Header,
    Version,
)
from ...domain.genesis import BlockParams, ConsensusParams, Genesis
from ...domain.validator import ValidatorSet, ValidatorUpdate
from ...errors import InvalidBlock
from ..protobuf import varint
from . import hashes, messages, validators
from .hashes import BlockHashes
from .key_types import KEY_TYPES, UnsupportedKey, are_known, verify
from .validators import ALL_VOTES, VOTES_FOR_THE_BLOCK, median_time

# CometBFT: types.MaxBlockSizeBytes, the limit if max_bytes is -1.
MAX_BLOCK_BYTES = 100 * 1024 * 1024

# CometBFT: maximum sizes in bytes of the data in a block apart from transactions and evidence.
_BLOCK_OVERHEAD = 11
_MAX_HEADER = 626
_MAX_COMMIT = 94
# Maximum size of a signature in a commit, with its tag and length prefix.
_MAX_SIGNATURE = 111

# Tendermint 0.34 also has sr25519 keys.
_PARAM_KEY_TYPES = (*KEY_TYPES, "sr25519")


def check_params(params: ConsensusParams) -> None:
    """Raise :exc:`ValueError` that names the first invalid parameter.

    CometBFT: ConsensusParams.ValidateBasic.
    """
    block, evidence = params.block, params.evidence
    rules = {
        f"block.max_bytes: expected -1 or 1 to {MAX_BLOCK_BYTES}": block.max_bytes == -1
        or 0 < block.max_bytes <= MAX_BLOCK_BYTES,
        "block.max_gas: expected -1 or more": block.max_gas >= -1,
        "evidence.max_age_num_blocks: expected 1 or more": evidence.max_age_num_blocks > 0,
        "evidence.max_age_duration: expected 1 or more": evidence.max_age_duration > 0,
        "evidence.max_bytes: expected 0 to block.max_bytes": 0
        <= evidence.max_bytes
        <= (MAX_BLOCK_BYTES if block.max_bytes == -1 else block.max_bytes),
        "vote_extensions_enable_height: expected 0 or more": (
            params.vote_extensions_enable_height >= 0
        ),
        "pbts_enable_height: expected 0 or more": params.pbts_enable_height >= 0,
        f"validator.pub_key_types: expected some of {', '.join(_PARAM_KEY_TYPES)}": bool(
            params.validator.pub_key_types
        )
        and all(kind in _PARAM_KEY_TYPES for kind in params.validator.pub_key_types),
    }
    for rule, holds in rules.items():
        if not holds:
            raise ValueError(f"consensus parameter {rule}")


def tx_bytes(tx: bytes) -> int:
    """Return the number of bytes that a transaction takes in a block."""
    return _framed(len(tx))


def evidence_bytes(piece: Evidence) -> int:
    """Return the number of bytes that a piece of evidence takes in a block."""
    return _framed(len(messages.any_evidence(piece)))


def _framed(size: int) -> int:
    # CometBFT: types.ComputeProtoSizeForTxs adds a tag and a length to each item.
    return 1 + len(varint(size)) + size


def max_data_bytes(params: BlockParams, members: int, evidence: Sequence[Evidence] = ()) -> int:
    """Return the maximum bytes of transactions in a block with this evidence and a commit of
    ``members`` validators."""
    limit = params.max_bytes if params.max_bytes >= 0 else MAX_BLOCK_BYTES
    used = _BLOCK_OVERHEAD + _MAX_HEADER + _MAX_COMMIT + _MAX_SIGNATURE * members
    used += sum(map(evidence_bytes, evidence))
    return max(0, limit - used)


Expected = dict[str, tuple[object, object]]
"""Actual and expected value of each field of a block, by the field's name."""


@dataclass(frozen=True, slots=True)
class ChainState:
    """State after the last block, on which the next block must build."""

    chain_id: str
    initial_height: int
    height: int
    """Height of the last block; before the first block, the initial height minus 1."""
    block_id: BlockID
    time: int
    """Time of the last block; before the first block, the genesis time."""
    app_hash: bytes
    results_hash: bytes
    commit: Commit
    """Precommits for the last block."""
    last_validators: ValidatorSet
    """Validators that signed the last block."""
    validators: ValidatorSet
    """Validators that sign the next block."""
    next_validators: ValidatorSet
    params: ConsensusParams
    """Consensus parameters for the next block."""
    unchecked: frozenset[str] = frozenset()
    """Names of fields of the next block that can't be checked, as the correct values are
    unknown."""

    @classmethod
    def at_genesis(
        cls,
        genesis: Genesis,
        app_hash: bytes = b"",
        updates: tuple[ValidatorUpdate, ...] = (),
        params: ConsensusParams | None = None,
    ) -> ChainState:
        """Return the state before the first block.

        ``updates`` are the validators of the application's InitChain response, which replace
        the validators of the genesis. Raise :exc:`~flask_noderpc.errors.InvalidBlock` for an
        invalid set.
        """
        members = updates or tuple(
            ValidatorUpdate(v.pub_key, v.power) for v in genesis.validators
        )
        params = params or genesis.consensus_params
        with _as_invalid_block("genesis validators"):
            first = validators.genesis_set(members)
        with _as_invalid_block("genesis"):
            check_params(params)
        return cls(
            chain_id=genesis.chain_id,
            initial_height=genesis.initial_height,
            height=genesis.initial_height - 1,
            block_id=NO_BLOCK,
            time=genesis.genesis_time,
            app_hash=app_hash or genesis.app_hash,
            results_hash=hashes.EMPTY_HASH,
            commit=NO_COMMIT,
            last_validators=ValidatorSet(),
            validators=first,
            next_validators=validators.rotated(first),
            params=params,
        )

    @property
    def is_genesis(self) -> bool:
        """True before the first block."""
        return self.height < self.initial_height

    def next_time(self, commit: Commit, counted: frozenset[BlockIDFlag] = ALL_VOTES) -> int:
        """Return the time of the next block.

        The first block has the genesis time, a later block the weighted median time of the
        counted votes in ``commit``, which is for its parent. Raise
        :exc:`~flask_noderpc.errors.InvalidBlock` for a commit without votes.
        """
        if self.is_genesis:
            return self.time
        with _as_invalid_block(f"block {self.height + 1}"):
            return median_time(commit, self.last_validators, counted)

    def next_state(
        self, block_id: BlockID, time: int, commit: Commit, results: BlockResults
    ) -> ChainState:
        """Return the state after a block is committed.

        Raise :exc:`~flask_noderpc.errors.InvalidBlock` for invalid validator or parameter
        updates.
        """
        update = results.consensus_param_updates
        params = self.params.updated(update) if update else self.params
        with _as_invalid_block(f"validator updates at {self.height + 1}"):
            _check_key_types(results.validator_updates, self.params)
            members = validators.updated(self.next_validators, results.validator_updates)
        with _as_invalid_block(f"updates at {self.height + 1}"):
            check_params(params)
        return replace(
            self,
            height=self.height + 1,
            block_id=block_id,
            time=time,
            app_hash=results.app_hash,
            results_hash=hashes.results_hash(results.tx_results),
            commit=commit,
            last_validators=self.validators,
            validators=self.next_validators,
            next_validators=validators.rotated(members),
            params=params,
            unchecked=frozenset(),
        )

    def after_unknown(
        self,
        block_id: BlockID,
        time: int,
        commit: Commit,
        next_validators: ValidatorSet,
        params: ConsensusParams,
    ) -> ChainState:
        """Return the state after a block whose results are unknown.

        ``next_validators`` sign the block after the next one, ``params`` apply to the next
        block.
        """
        return replace(
            self,
            height=self.height + 1,
            block_id=block_id,
            time=time,
            commit=commit,
            last_validators=self.validators,
            validators=self.next_validators,
            next_validators=next_validators,
            params=params,
            unchecked=frozenset({"app_hash", "last_results_hash"}),
        )

    @property
    def uncomputable_fields(self) -> frozenset[str]:
        """Names of fields of the next block that can't be computed, as a validator has a key
        of unknown type."""
        sets = {
            "validators_hash": self.validators,
            "next_validators_hash": self.next_validators,
        }
        return frozenset(name for name, members in sets.items() if not are_known(members))

    def check(
        self, block: Block, commit: Commit, results: BlockResults | None, found: BlockHashes
    ) -> BlockHashes:
        """Check the next block, and return its hashes.

        ``found`` are the hashes computed from the block; ``results`` is ``None`` if they are
        unknown. Raise :exc:`~flask_noderpc.errors.InvalidBlock` that names the first rule that
        the block violates. Signatures are not checked: see :func:`check_signatures`.
        """
        if "data_hash" in self.unchecked and commit.block_id.hash == found.block_id.hash:
            # Use the commit's block ID: if the blocks of a CometBFT fork contain additional
            # data, their part set can't be computed.
            found = found._replace(block_id=commit.block_id)
        compare(block, self._parent_fields(block), self.unchecked)
        compare(block, self._content_fields(block, found), self.unchecked)
        header, members = block.header, self.validators
        compare(
            block,
            {
                "commit.height": (commit.height, header.height),
                "commit.block_id": (commit.block_id, found.block_id),
                "commit.signatures": (len(commit.signatures), len(members.validators)),
            },
            self.unchecked,
        )
        if results is not None:
            rules: Expected = {
                "results.height": (results.height, header.height),
                "results.tx_results": (len(results.tx_results), len(block.txs)),
            }
            compare(block, rules)
        return found

    def _parent_fields(self, block: Block) -> Expected:
        """Return the actual and expected values of the fields that link a block to its
        parent."""
        header, last = block.header, block.last_commit
        return {
            "chain_id": (header.chain_id, self.chain_id),
            "height": (header.height, self.height + 1),
            "version.block": (header.version.block, Version().block),
            "last_block_id": (header.last_block_id, self.block_id),
            "last_commit.block_id": (last.block_id, self.block_id),
            "last_commit.height": (last.height, 0 if self.is_genesis else self.height),
            "last_commit.signatures": (
                len(last.signatures),
                len(self.last_validators.validators),
            ),
        }

    def _content_fields(self, block: Block, found: BlockHashes) -> Expected:
        """Return the actual and expected values of the header's hashes, time and proposer."""
        header = block.header
        return {
            "time": (header.time, self._expected_time(block)),
            "last_commit_hash": (header.last_commit_hash, found.last_commit_hash),
            "data_hash": (header.data_hash, found.data_hash),
            "validators_hash": (
                header.validators_hash,
                self._set_hash("validators_hash", self.validators, header),
            ),
            **self._fields_of_results(block.header),
            "evidence_hash": (header.evidence_hash, found.evidence_hash),
            "proposer in the set": (
                header.proposer_address in self.validators.by_address,
                True,
            ),
        }

    def refuted_by(self, header: Header) -> list[str]:
        """Return the names of the fields of the next header that contradict the last block's
        results."""
        unknown = self.unchecked | self.uncomputable_fields
        fields = replace(self, unchecked=unknown)._fields_of_results(header)
        return [
            name
            for name, (actual, expected) in fields.items()
            if actual != expected and name not in unknown
        ]

    def _fields_of_results(self, header: Header) -> Expected:
        """Return the actual and expected values of the header fields that follow from the last
        block's results."""
        name = "next_validators_hash"
        results_hash = self.results_hash
        if self.is_genesis and not header.last_results_hash:
            # Tendermint before 0.34: the hash is empty if there are no results.
            results_hash = b""
        return {
            name: (
                header.next_validators_hash,
                self._set_hash(name, self.next_validators, header),
            ),
            "consensus_hash": (header.consensus_hash, hashes.consensus_hash(self.params)),
            "app_hash": (header.app_hash, self.app_hash),
            "last_results_hash": (header.last_results_hash, results_hash),
        }

    def _set_hash(self, name: str, members: ValidatorSet, header: Header) -> bytes:
        if name in self.unchecked:
            # Don't compute the hash: the encoding of one of the key types may be unknown.
            return b""
        with _as_invalid_block(f"block {header.height}: {name}"):
            return hashes.validators_hash(members)

    def _expected_time(self, block: Block) -> int:
        time = block.header.time
        if "time" in self.unchecked:
            return time
        if 0 < self.params.pbts_enable_height <= block.header.height:
            # CometBFT 1.0: the time is from the proposer's clock and must only be later than
            # the last block's time.
            return max(time, self.time + (not self.is_genesis))
        expected = self.next_time(block.last_commit)
        if time != expected:
            # Also accept the time by CometBFT 0.40's rule, as a block does not show which rule
            # its chain uses.
            return self.next_time(block.last_commit, VOTES_FOR_THE_BLOCK)
        return expected


def compare(block: Block, rules: Expected, unchecked: Collection[str] = ()) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidBlock` for the first field that differs from its
    expected value."""
    for name, (actual, expected) in rules.items():
        if actual != expected and name not in unchecked:
            raise InvalidBlock(
                f"block {block.header.height}: {name}: expected {_text(expected)},"
                f" got {_text(actual)}"
            )


def _check_key_types(updates: Iterable[ValidatorUpdate], params: ConsensusParams) -> None:
    """Raise :exc:`ValueError` if an update has a key type that the parameters don't allow."""
    # CometBFT: state/execution.go, validateValidatorUpdates.
    allowed = params.validator.pub_key_types
    for update in updates:
        if update.power and update.pub_key.type not in allowed:
            raise ValueError(
                f"validator update: expected a key of type {' or '.join(allowed)}, as the"
                f" consensus parameters allow, got type {update.pub_key.type}"
            )


@contextmanager
def _as_invalid_block(subject: str) -> Iterator[None]:
    """Raise :exc:`InvalidBlock` for a :exc:`ValueError` in the block, with ``subject`` before
    its text."""
    try:
        yield
    except ValueError as error:
        raise InvalidBlock(f"{subject}: {error}") from None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex().upper() or "empty"
    return str(value)


def check_signatures(
    chain_id: str, commit: Commit, members: ValidatorSet, *, all_signatures: bool = True
) -> frozenset[str]:
    """Raise ``InvalidBlock`` unless validators with more than two thirds of the power signed.

    Without ``all_signatures`` the check ends when signatures with so much power are verified.
    Signatures that no installed library can verify count as valid; return the reasons why they
    can't be verified.
    """
    signed, unsupported = 0, set()
    signed_bytes = messages.canonical_precommits(commit, chain_id)
    signers = zip(commit.signatures, members.validators, signed_bytes, strict=True)
    for index, (sig, validator, message) in enumerate(signers):
        if sig.signature:
            try:
                valid = verify(validator.pub_key, sig.signature, message)
            except UnsupportedKey as error:
                valid = True
                unsupported.add(str(error))
            if sig.validator_address != validator.address or not valid:
                raise InvalidBlock(f"commit {commit.height}: signature {index} does not verify")
            for_block = sig.block_id_flag == BlockIDFlag.COMMIT and commit.block_id.hash
            signed += validator.voting_power if for_block else 0
            if not all_signatures and signed * 3 > members.total_power * 2:
                break
    if signed * 3 <= members.total_power * 2:
        raise InvalidBlock(
            f"commit {commit.height}: {signed} of {members.total_power} voting power signed,"
            " more than two thirds are needed"
        )
    return frozenset(unsupported)
