"""Pure byte rules of CometBFT: Merkle trees, canonical protobuf, hashes, keys, votes.

tests/comet/ checks each of them against real nodes; nothing here does I/O.
"""
