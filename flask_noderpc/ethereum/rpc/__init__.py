"""The EVM-compatible JSON-RPC layer over the node's own blocks and events."""
