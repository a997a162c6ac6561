"""Pure byte rules of Ethereum, and of the chains that carry it in CometBFT's blocks.

Nothing here does I/O. It needs the extra ``evm``.
"""
