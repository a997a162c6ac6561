"""Helpers of all tests: waiting for a state, HTTP, websockets, raw sockets, ports."""
