"""Types of the Cosmos SDK: addresses, coins, keys, transactions and their sign bytes.

Error texts are the SDK's, as clients match them.
"""
