"""Encoding rules of CometBFT and Ethereum, without I/O."""
