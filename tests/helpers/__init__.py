"""Helpers that all tests share: waiting for a state, HTTP, websockets, raw sockets, ports."""
