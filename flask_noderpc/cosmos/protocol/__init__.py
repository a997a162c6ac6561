"""Types of the Cosmos SDK: addresses, coins, keys, transactions and their sign bytes.

Error texts equal the SDK's, as clients search for them.
"""
