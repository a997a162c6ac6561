"""REST gateway of Cosmos SDK chains, which translates requests to ``abci_query`` queries."""
