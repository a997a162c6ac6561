"""Pure byte rules of CometBFT: Merkle trees, canonical protobuf, hashes, keys, votes.

Every rule here was checked against real nodes (tests/comet/); nothing here
does I/O.
"""
