"""Rewards of delegators and commission of validators, like the SDK's x/distribution."""
