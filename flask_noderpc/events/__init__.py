"""Events: the query language, the event messages of a committed block, and the feed of new
blocks and transactions."""
