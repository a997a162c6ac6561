"""Events: the query language, what a committed block tells, and the feed."""
