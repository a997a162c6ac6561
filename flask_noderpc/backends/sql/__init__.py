"""Parts that all SQL stores share."""
