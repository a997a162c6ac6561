"""Methods that need Ethereum's state, or run code on it."""
