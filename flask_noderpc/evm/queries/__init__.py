"""Methods that read the node's blocks and what waits for one."""
