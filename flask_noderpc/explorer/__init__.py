"""The explorer: pages that show a mount's chain to people."""
