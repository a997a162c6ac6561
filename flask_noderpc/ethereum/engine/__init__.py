"""EVM: runs messages on a state that is stored by roots and hashes."""
