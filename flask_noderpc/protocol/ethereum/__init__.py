"""Pure byte rules of Ethereum, and of the chains that carry it in CometBFT's blocks.

Nothing here does I/O. All but :mod:`.aliases` needs the extra ``evm``.
"""
