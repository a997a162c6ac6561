"""Ethereum transactions in words, for the lists and the pages of the explorer."""
