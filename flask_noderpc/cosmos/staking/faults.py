"""Faults of a development chain's validators, for tests of jailing and slashing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...backends.base.backend import ChainBackend
from ...backends.base.capabilities import Capability
from ...errors import NotSupported, ValueNotAllowed, short_repr
from ..bank import consensus
from ..bank.consensus import BlockInfo, Misbehavior
from ..bank.context import Context
from ..bank.errors import TxError
from .state import Staking

MAX_BLOCKS = 1_000_000


@dataclass(slots=True)
class _Fault:
    blocks: int
    first: int | None = None
    """Height of the first block with the fault; ``None`` until that block is executed."""

    def is_at(self, height: int) -> bool:
        """Return true for a block with the fault; the first block asked for begins it."""
        if self.first is None:
            self.first = height
        return self.first <= height < self.first + self.blocks


class Faults:
    """Faults of validators in the next blocks; they are kept in memory only.

    ``read`` returns the context of the latest block. The modules see the faults, whereas the
    blocks have the validators' signatures and no evidence: a chain with one validator could
    not continue without its signature.
    """

    def __init__(self, read: Callable[[], Context]) -> None:
        self._read = read
        self._missing: dict[bytes, _Fault] = {}
        self._equivocating: dict[bytes, _Fault] = {}

    def miss_blocks(self, validator: str, blocks: int) -> None:
        """Let a validator miss the next blocks; 0 blocks end this.

        ``validator`` is the address of its operator or of its key. Raise
        :exc:`~flask_noderpc.errors.ValueNotAllowed`, and
        :exc:`~flask_noderpc.errors.NotSupported` for a chain without x/staking.
        """
        if not 0 <= blocks <= MAX_BLOCKS:
            raise ValueNotAllowed(f"blocks: expected 0 to {MAX_BLOCKS}, got {blocks}")
        self._missing[self._address(validator)] = _Fault(blocks)

    def equivocate(self, validator: str) -> None:
        """Let the next block have evidence that a validator signed two blocks at the height of
        the latest block; see :meth:`miss_blocks`."""
        self._equivocating[self._address(validator)] = _Fault(1)

    def clear(self) -> None:
        """Cancel all faults."""
        self._missing.clear()
        self._equivocating.clear()

    def apply(self, info: BlockInfo, before: Context, height: int) -> BlockInfo:
        """Return the votes and the evidence of the block at a height with the faults.

        ``before`` is the context of the block before it.
        """
        if not (self._missing or self._equivocating):
            return info
        missing, equivocating = (
            {address for address, fault in faults.items() if fault.is_at(height)}
            for faults in (self._missing.copy(), self._equivocating.copy())
        )
        votes = tuple(
            replace(each, is_missing=each.is_missing or each.address in missing)
            for each in info.votes
        )
        latest = before.environment
        found = (
            Misbehavior(each.address, each.power, latest.height, latest.time)
            for each in votes
            if each.address in equivocating
        )
        return replace(info, votes=votes, misbehaviors=(*info.misbehaviors, *found))

    def _address(self, validator: str) -> bytes:
        """Return the address of a validator's key."""
        context = self._read()
        environment = context.environment
        if "staking" not in {each.name for each in environment.modules}:
            raise NotSupported(
                "this chain has no validators with stake",
                "start a new chain with NODERPC_DEV, or with `staking` in its genesis",
            )
        shown, keys, operators = (
            short_repr(validator),
            environment.consensus,
            environment.operators,
        )
        try:
            if validator.startswith(f"{keys.prefix}1"):
                address = keys.parse(validator)
            else:
                operator = operators.parse(validator)
                address = Staking(context).validator(operator).consensus_address
        except TxError as error:
            raise ValueNotAllowed(
                f"validator {shown}: expected a validator's address, {operators.prefix}1… or"
                f" {keys.prefix}1…: {error.log}"
            ) from None
        if address not in consensus.voters(context.branch):
            raise ValueNotAllowed(
                f"validator {shown}: expected a validator that votes now: a new validator votes"
                " three blocks after it is bonded, and a jailed one not at all"
            )
        return address


FAULTS: Capability[Faults] = Capability(
    "this chain has no validators with stake", "NODERPC_APPLICATION = 'bank' has them"
)


def change(backend: ChainBackend, act: Callable[[Faults], None]) -> None:
    """Change the faults of a chain that this process produces; raise
    :exc:`~flask_noderpc.errors.NotSupported` and
    :exc:`~flask_noderpc.errors.LeaseLost`."""
    faults = FAULTS.of(backend)
    # No block is produced meanwhile, and another process's chain raises an error here.
    with backend.control.manual_mining():
        act(faults)
