"""Types of the Cosmos SDK: addresses, coins, keys, transactions and what is signed of them.

The texts of errors are the SDK's, as clients look for them.
"""
