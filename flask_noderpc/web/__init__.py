"""Flask views, websockets and pages on top of the sans-I/O core."""
