"""A backend: what the routes ask.

A :class:`ChainBackend` has all :mod:`.roles`, and can be searched. The author of a read-only
backend writes reads alone. All values are domain types; what is missing is a typed error and
never ``None``.
"""

from __future__ import annotations

from ...domain.block import Evidence, LightClientAttackEvidence
from ...domain.validator import ED25519, PublicKey, Validator
from ...errors import NotFound
from .control import ControlledChain
from .evm_index import EvmIndex
from .evm_state import EvmState
from .filters import FilterStore
from .roles import ApplicationAccess, EventSource, EvidencePool, Mempool, Network, StateStore


class ChainBackend(
    EvmIndex,
    StateStore,
    EventSource,
    Mempool,
    EvidencePool,
    ApplicationAccess,
    Network,
    FilterStore,
    EvmState,
    ControlledChain,
):
    """Everything the routes ask for."""

    def _chain_id(self) -> str:
        return self.genesis().chain_id

    def byzantine_validators(self, evidence: Evidence) -> tuple[Validator, ...]:
        """The validators that a piece of evidence accuses, as they were at its height."""
        if isinstance(evidence, LightClientAttackEvidence):
            return evidence.byzantine_validators
        address = evidence.vote_a.validator_address
        try:
            known = self.validators(evidence.height).by_address.get(address)
        except NotFound:
            known = None
        # Where that set was pruned, the address is all that is known.
        unknown = Validator(address, PublicKey(ED25519, b""), evidence.validator_power)
        return (known[1] if known else unknown,)

    def start(self) -> None:
        """Begin what runs beside the calls, unless it has begun in this process.

        Called before every call, so it is quick when there is nothing to do.
        """

    def check_ready(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.BackendError` where calls can't be answered, or no
        blocks are made that should be."""
        self.latest_height()

    def check_disk_space(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.BackendError` if the store is full and can
        commit no block; the default never raises."""

    def awaits_first_block(self) -> bool:
        """Return true if the first block is to come, and is made without a transaction."""
        return False

    def close(self) -> None:
        """Close files and stop threads; the next call opens them again."""
