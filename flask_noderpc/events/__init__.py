"""Events: the query language, the messages of a committed block, and the feed."""
