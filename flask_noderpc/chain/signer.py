"""Sign votes with a home's validator keys, never in conflict with an earlier signature."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..concurrency import in_thread
from ..domain.block import CommitSig, Vote
from ..errors import ChainHalted, ConfigurationError, KeyProtected
from ..protocol.comet.chain_state import ChainState
from ..protocol.comet.keys import PrivateKey, commit_vote
from ..protocol.comet.messages import canonical_vote
from .validator_keys import (
    PRECOMMIT,
    LastSigned,
    ValidatorKey,
    locked,
    make_folder,
    read_record,
    write_record,
)


class StoredChain(NamedTuple):
    """Heights that a home's keys have signed, according to its store."""

    store_name: str
    """Name of the store, for error texts."""
    head: int
    """Height of the latest block; if there are no blocks, the height before the first one."""
    highest: int
    """Highest height that the keys may have signed: one above the head, as a process may have
    ended after it signed a block and before it stored the block."""
    own_state: ChainState | None
    """Chain state after the latest block if this home produced the blocks, otherwise
    ``None``."""


ReadStoredChain = Callable[[], StoredChain]

log = logging.getLogger("flask_noderpc.chain")


_EMPTY_RECORD_JSON = '{"height": "0", "round": 0, "step": 0}'


class GuardedKey:
    """A validator key that writes each signature to its record file before it returns the
    signature."""

    def __init__(self, file: ValidatorKey) -> None:
        self.key = file.key
        self.is_development = file.is_development
        # Resolve a symbolic link, so that writing the record replaces the file and not the
        # link.
        self._path = Path(os.path.realpath(file.state))
        self._is_link = file.state.is_symlink()

    def record(self) -> LastSigned:
        """Return the record of the last signature; raise
        :exc:`~flask_noderpc.errors.ChainHalted` if it is missing or invalid."""
        try:
            found = read_record(self._path)
        except ConfigurationError as error:
            # Remove the folder from the reason, which clients see.
            reason = str(error).replace(str(self._path), self._path.name)
            raise ChainHalted(f"nothing is signed: {reason}") from None
        if found is None:
            raise ChainHalted(f"nothing is signed: {self._path.name} is missing; put it back")
        return found

    def sign_vote(self, vote: Vote, chain_id: str) -> CommitSig:
        """Sign a precommit, write the record to disk, and return the signature.

        Raise :exc:`~flask_noderpc.errors.ChainHalted` for a vote that conflicts with an earlier
        vote, or if the record can't be written.
        """
        if self.is_development:
            with locked(self._path.parent):
                return self._sign(vote, chain_id, durable=False)
        # Use a native thread, because flushing to disk blocks for milliseconds.
        return in_thread(partial(self._sign_once, vote, chain_id))

    def _sign_once(self, vote: Vote, chain_id: str) -> CommitSig:
        with locked(self._path.parent):
            # Read the record again, as another process may have signed since the block was
            # proposed.
            record = self.record()
            if (signed := record.signature_of(vote, chain_id)) is not None:
                return signed
            if not record.allows(vote, chain_id):
                raise ChainHalted(
                    f"height {vote.height} can't be signed at round {vote.round}: the"
                    f" validator key has signed height {record.height}, round {record.round}"
                )
            return self._sign(vote, chain_id, durable=True)

    def _sign(self, vote: Vote, chain_id: str, *, durable: bool) -> CommitSig:
        signed = self.key.sign_vote(vote, chain_id)
        message = canonical_vote(vote, chain_id)
        record = LastSigned(vote.height, vote.round, PRECOMMIT, signed.signature, message)
        write_record(self._path, record, durable=durable)
        return signed

    def prepare(self, read_stored: ReadStoredChain, *, accept_loss: bool) -> None:
        """Check the key's record against the store; if it is missing, write it from the stored
        chain.

        The record is only written if this home produced the chain and the path is not a
        symbolic link, whose file may be on a disk that is not mounted. Raise
        :exc:`~flask_noderpc.errors.ConfigurationError` otherwise, and if the store has lost
        blocks that the key signed; with ``accept_loss``, a development key then continues from
        the head.
        """
        record = read_record(self._path)
        # Read the head after the record, because another process may produce blocks meanwhile:
        # the record must not seem ahead.
        stored = read_stored()
        if not self._is_link:
            # Create the folder even if no record is written here, as the error below may ask
            # the user to write one.
            make_folder(self._path.parent)
        if record is not None:
            if record.height > stored.highest:
                self._accept_lost_blocks(stored, accept_loss=accept_loss)
        elif self.is_development:
            return
        elif stored.own_state is None or self._is_link:
            raise ConfigurationError(
                f"{self._path} is missing, so the heights that the validator key has signed"
                " are unknown, and signing a height twice may cost a validator its stake: copy"
                " this file from the machine that signed last, follow its chain with"
                " --upstream, or begin a new chain in a new folder with `noderpc init --home`;"
                " if no other node has blocks that the key signed, as with a home of version"
                f" 0.1 without blocks, write {_EMPTY_RECORD_JSON} to the file"
            )
        else:
            self._write_first(_record_of(stored.own_state, self.key))

    def _write_first(self, record: LastSigned) -> None:
        with locked(self._path.parent):
            # Skip this if another process has written the record meanwhile.
            if read_record(self._path) is None:
                write_record(self._path, record, durable=True)

    def _accept_lost_blocks(self, stored: StoredChain, *, accept_loss: bool) -> None:
        """Let a development key continue without blocks that the store has lost.

        Raise :exc:`~flask_noderpc.errors.ConfigurationError` for another key, or if
        ``accept_loss`` is false.
        """
        # Read the record again, after the head: a process that rewinds the chain lowers the
        # record before it removes blocks.
        record = read_record(self._path)
        if record is None or record.height <= stored.highest:
            return
        count = record.height - stored.head
        lost = f"blocks {stored.head + 1} to {record.height}"
        if accept_loss and self.is_development:
            self.lower(stored.head)
            log.warning(
                "%s: --accept-loss: %s are missing (%s), and the chain continues from block %s:"
                " clients that saw the missing blocks will see other blocks at these heights",
                stored.store_name,
                lost,
                count,
                stored.head,
            )
            return
        raise ConfigurationError(
            f"{stored.store_name}: {lost} are missing ({count}; the last one may not have been"
            f" committed): the head of the store is block {stored.head}, and {self._path} says"
            f" that the validator key has signed height {record.height}; restore a store that"
            " has them, such as a backup or another host's database (NODERPC_DATABASE), follow"
            " the chain with --upstream, or begin a new chain, with a new key or chain ID, in a"
            " new folder with `noderpc init --home`;"
            f" {self._last_cure(accept_loss=accept_loss)}"
        )

    def _last_cure(self, *, accept_loss: bool) -> str:
        if self.is_development:
            return (
                "as this is a development key, `noderpc start --accept-loss`"
                " (NODERPC_ACCEPT_LOSS) continues without them"
            )
        refused = "--accept-loss is for development keys: " if accept_loss else ""
        return (
            f"{refused}signing a height twice costs a validator its stake; if no other node or"
            f" client has seen these blocks, write {_EMPTY_RECORD_JSON} to {self._path.name}"
        )

    def lower(self, height: int) -> None:
        """Lower the record of a development key to a height if it is above that height."""
        with locked(self._path.parent):
            record = read_record(self._path)
            if record is not None and record.height > height:
                lowered = LastSigned(height, 0, PRECOMMIT) if height else LastSigned()
                write_record(self._path, lowered, durable=False)


def _record_of(head: ChainState, key: PrivateKey) -> LastSigned:
    """Return the record that a key has after signing the blocks of a chain up to its head."""
    commit = head.commit
    found = head.last_validators.by_address.get(key.address)
    if found is None or not commit.signatures[found[0]].signature:
        return LastSigned(head.height, commit.round, PRECOMMIT)
    vote = commit_vote(commit, found[0])
    message = canonical_vote(vote, head.chain_id)
    return LastSigned(head.height, commit.round, PRECOMMIT, vote.signature, message)


class Signer:
    """All validator keys of a home."""

    def __init__(self, files: Sequence[ValidatorKey]) -> None:
        self.keys = {file.key.address: GuardedKey(file) for file in files}
        """Keys by validator address."""
        self.is_development = all(file.is_development for file in files)
        """True if all keys are development keys, which may sign a height twice."""

    def prepare(self, read_stored: ReadStoredChain, *, accept_loss: bool) -> None:
        """Prepare each key; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
        for key in self.keys.values():
            key.prepare(read_stored, accept_loss=accept_loss)

    def lower(self, height: int) -> None:
        """Lower the records of all development keys to a height."""
        for key in self.keys.values():
            if key.is_development:
                key.lower(height)

    def plain_keys(self) -> dict[bytes, PrivateKey]:
        """Return the private keys, whose signatures are not recorded, by address; raise the
        error of :meth:`check_development`."""
        self.check_development("a vote with another time")
        return {address: key.key for address, key in self.keys.items()}

    def check_development(self, action: str) -> None:
        """Raise :exc:`~flask_noderpc.errors.KeyProtected` unless all keys may sign a height
        twice."""
        if not self.is_development:
            raise KeyProtected(action)

    def records(self) -> tuple[LastSigned, ...]:
        """Return the records of the keys that must not sign a height twice."""
        return tuple(key.record() for key in self.keys.values() if not key.is_development)
