"""Methods of anvil and hardhat for development chains (NODERPC_DEV)."""
