"""The REST gateway of chains of the Cosmos SDK, above the same queries as ``abci_query``."""
