"""The CometBFT node's routes: their table, and their handlers by topic."""
