"""Hooks by which x/staking tells other modules of changes; SDK: x/staking/types/hooks.go."""

from __future__ import annotations

from ..bank.context import Context


class StakingHooks:
    """Base class of modules that x/staking tells of changes; by default they do nothing.

    ``operator`` and ``delegator`` are addresses of accounts, ``address`` of a validator's key.
    If ``is_strict``, rewards that can't go to their withdraw address are an error.
    """

    def after_validator_created(self, context: Context, operator: bytes) -> None:
        """Act on a validator that was created."""

    def after_validator_removed(
        self, context: Context, address: bytes, operator: bytes, *, is_strict: bool
    ) -> None:
        """Act on a validator without delegations that was removed."""

    def after_validator_bonded(self, context: Context, address: bytes, operator: bytes) -> None:
        """Act on a validator that was bonded."""

    def before_validator_slashed(
        self, context: Context, operator: bytes, fraction: int
    ) -> None:
        """Act before a fraction of a validator's tokens, in units of 10^-18, is destroyed."""

    def before_delegation_created(
        self, context: Context, delegator: bytes, operator: bytes
    ) -> None:
        """Act before a delegation is created."""

    def before_delegation_modified(
        self, context: Context, delegator: bytes, operator: bytes, *, is_strict: bool
    ) -> None:
        """Act before the shares of a delegation change."""

    def after_delegation_modified(
        self, context: Context, delegator: bytes, operator: bytes
    ) -> None:
        """Act on a delegation that was created, or whose shares have changed."""
