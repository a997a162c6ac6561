"""Pure encoding rules of CometBFT: Merkle trees, canonical protobuf, hashes, keys, votes.

tests/comet/ checks each rule against real nodes; nothing here does I/O.
"""
