"""Pure byte rules of Ethereum, and of chains that have Ethereum transactions in CometBFT's
blocks.

Nothing in this package does I/O. It needs the extra ``evm``.
"""
