"""Methods that are there with NODERPC_DEV alone."""
