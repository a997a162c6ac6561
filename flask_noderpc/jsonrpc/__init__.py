"""JSON-RPC core without I/O: routes, parameters, sessions and dispatch, without sockets and
Flask."""
