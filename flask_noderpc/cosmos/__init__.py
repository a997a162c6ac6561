"""A chain of the Cosmos SDK: accounts with coins, its queries, and its REST gateway."""
