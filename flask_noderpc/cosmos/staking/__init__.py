"""Validators, delegations and their unbonding, like the SDK's x/staking."""
