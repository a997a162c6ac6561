"""The EVM-compatible JSON-RPC layer over the node's blocks and events."""
