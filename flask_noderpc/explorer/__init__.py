"""Block explorer: web pages that show a mount's chain."""
