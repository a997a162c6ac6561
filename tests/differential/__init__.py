"""Tests that run one scenario against a real node and against this one, and compare responses.

Both get the same genesis and keys, the same transactions, and then the same requests. Values
that depend on the clock (block times, hashes over them, signatures) are replaced by what they
refer to, such as ``<block 3>``: a response with the hash of another block still differs.
"""
