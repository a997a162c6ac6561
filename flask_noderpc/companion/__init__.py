"""The companion of a node: imports a chain from upstreams, and verifies it."""
