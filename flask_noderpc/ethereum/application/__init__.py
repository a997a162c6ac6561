"""An embedded chain that runs Ethereum's transactions."""
