"""The EVM: what runs messages on a state that is kept by roots and hashes."""
