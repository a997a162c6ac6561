"""PostgreSQL beside SQLite, on the same cores."""
