"""PostgreSQL compared with SQLite, on the same cores."""
