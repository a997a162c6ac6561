"""One scenario against a real node and ours, and the answers of each, side by side.

Both get the same genesis and keys, the same transactions, and then the same requests. What
hangs on the clock (block times, what hashes them, signatures) is replaced by its meaning,
such as ``<block 3>``, so that it still has to be right wherever it stands.
"""
