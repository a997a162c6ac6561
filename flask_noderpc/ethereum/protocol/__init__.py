"""Encodings, hashes and validity rules of Ethereum, and of chains that have Ethereum
transactions in CometBFT's blocks.

This package does no I/O. It needs the extra ``evm``.
"""
