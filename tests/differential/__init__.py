"""One scenario against a real node and this one, with the responses of each side by side.

Both get the same genesis and keys, the same transactions, and then the same requests. Values
that depend on the clock (block times, hashes over them, signatures) are replaced by their
meaning, such as ``<block 3>``, so that they must still be right everywhere.
"""
